// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/bakeable_language.h"

#include <fmt/format.h>

#include <algorithm>

#include "sandbox_workers/wasm/guest_thread.h"
#include "sandbox_workers/wasm/instance.h"

namespace sw::engine {

namespace {

// A bake may need more memory than a run; the image's size is what counts later.
constexpr std::uint64_t kBakeMemoryBytesMax = std::uint64_t{2} << 30;

Result<void> copy_data(const wasm::PreparedModule& prepared, wasm::MemoryView memory) {
  for (const wasm::DataSegment& segment : prepared.segments) {
    const auto to = memory.range(segment.offset, segment.bytes.size());
    if (!to) return Error{ErrorCode::kCorrupt, "a data segment does not fit into the memory", 0};
    std::ranges::copy(segment.bytes, to->begin());
  }
  return {};
}

}  // namespace

Result<BakeFacts> BakeableLanguage::boot(const bake::BootInput& input,
                                         const bake::KeepMemory& keep) const {
  Result<BakeFacts> facts = BakeFacts();
  SW_CHECK_OK(
      wasm::run_on_guest_thread(runtime_.options(), [&] { facts = boot_here(input, keep); }));
  if (facts.ok()) return facts;
  return std::move(facts).error().while_doing(fmt::format("booting {}", manifest().engine));
}

Result<BakeFacts> BakeableLanguage::boot_here(const bake::BootInput& input,
                                              const bake::KeepMemory& keep) const {
  SW_TRY(const wasm::Linker linker, make_linker(runtime_, language_));
  SW_TRY(const auto pre,
         wasm::InstancePre::create(runtime_, linker, input.code, input.prepared.facts, nullptr));
  SW_TRY(auto layout, language_.make_layout(input.package));
  const auto guest = language_.make_guest(std::move(layout), clocks_);
  SW_TRY(const auto instance, pre->instantiate(*guest, {.memory_bytes_max = kBakeMemoryBytesMax}));
  guest->set_instance(*instance);
  SW_CHECK_OK(copy_data(input.prepared, instance->memory()));
  BakeFacts facts;
  SW_CHECK_OK(guest->wasi().start_run({}));
  SW_CHECK_OK(guest->boot(facts));
  if (const std::string reason = instance->reason_not_at_rest(); !reason.empty()) {
    return Error{ErrorCode::kInternal,
                 fmt::format("the booted memory does not hold the whole state: {}", reason), 0};
  }
  SW_CHECK_OK(keep(instance->memory().bytes()));
  return facts;
}

Result<wasm::Linker> make_linker(wasm::Runtime& runtime, const Language& language) {
  wasm::Linker linker(runtime);
  SW_CHECK_OK(wasi::add_to_linker(linker, [](wasm::HostState& host) -> wasi::Wasi& {
    return static_cast<Guest&>(host).wasi();
  }));
  SW_CHECK_OK(language.add_imports(linker));
  return linker;
}

}  // namespace sw::engine
