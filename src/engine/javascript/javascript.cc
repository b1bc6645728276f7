// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/javascript.h"

#include <fmt/format.h>

#include "engine/javascript/guest.h"
#include "engine/javascript/host_api.h"
#include "engine/javascript/modules.h"
#include "engine/javascript/time_zone.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/wasi/archive.h"
#include "sandbox_workers/wasi/layout.h"

namespace sw::engine {

namespace javascript {
namespace {

JavaScriptGuest& guest_of(wasm::Caller& caller) {
  return static_cast<JavaScriptGuest&>(caller.host());
}

/// Guest memory that lacks while the host works for the guest is an exception that the guest sees.
Result<std::uint32_t> or_out_of_memory(JavaScriptGuest& guest, Result<std::uint32_t> result) {
  if (result.ok() || result.error().code != ErrorCode::kLimitExceeded ||
      guest.instance().poisoned())
    return result;
  SW_CHECK_OK(guest.js().throw_out_of_memory());
  return std::uint32_t{0};
}

class JavaScript final : public Language {
 public:
  explicit JavaScript(Manifest manifest) : Language(std::move(manifest)) {}

  Result<std::shared_ptr<const wasi::Layout>> make_layout(
      const std::filesystem::path& package) const override {
    wasi::LayoutBuilder builder = wasi::standard_layout();
    for (const Package& library : manifest().libraries) {
      SW_TRY(wasi::SharedBytes archive, wasi::map_file(package / library.archive));
      const std::string name = std::filesystem::path(library.archive).stem();
      SW_CHECK_OK(wasi::add_archive(builder, fmt::format("{}/{}", kLibraryFolder, name),
                                    std::move(archive)));
    }
    return builder.build();
  }

  Result<void> add_imports(wasm::Linker& linker) const override {
    SW_CHECK_OK(linker.define(
        "env", "host_call",
        [](wasm::Caller& caller, std::uint32_t name, std::int32_t /*length*/, std::int32_t /*self*/,
           std::uint32_t count, std::uint32_t arguments) {
          JavaScriptGuest& guest = guest_of(caller);
          const wasm::HostMemoryScope host_memory(caller.instance());
          return or_out_of_memory(guest, call_host_function(guest, name, count, arguments));
        }));
    SW_CHECK_OK(linker.define("env", "host_interrupt", [](wasm::Caller& caller) {
      return static_cast<std::int32_t>(guest_of(caller).should_interrupt());
    }));
    SW_CHECK_OK(linker.define("env", "host_promise_rejection",
                              [](wasm::Caller& caller, std::uint32_t promise, std::uint32_t reason,
                                 std::int32_t handled) {
                                return guest_of(caller).note_rejection(promise, reason,
                                                                       handled != 0);
                              }));
    SW_CHECK_OK(linker.define("env", "host_module_normalize",
                              [](wasm::Caller& caller, std::uint32_t base, std::uint32_t name) {
                                JavaScriptGuest& guest = guest_of(caller);
                                const wasm::HostMemoryScope host_memory(caller.instance());
                                return or_out_of_memory(guest, normalize_module(guest, base, name));
                              }));
    SW_CHECK_OK(linker.define("env", "host_module_load",
                              [](wasm::Caller& caller, std::uint32_t name, std::uint32_t length) {
                                JavaScriptGuest& guest = guest_of(caller);
                                const wasm::HostMemoryScope host_memory(caller.instance());
                                return or_out_of_memory(guest, load_module(guest, name, length));
                              }));
    return linker.define(
        "env", "host_get_timezone_offset",
        [](wasm::Caller& caller, std::uint32_t high, std::uint32_t low) {
          const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
          return guest_of(caller).time_zone().offset_at(static_cast<std::int64_t>(bits));
        });
  }

  std::unique_ptr<Guest> make_guest(std::shared_ptr<const wasi::Layout> layout,
                                    const wasi::Clocks& clocks) const override {
    return std::make_unique<JavaScriptGuest>(std::move(layout), clocks, manifest());
  }
};

}  // namespace
}  // namespace javascript

std::unique_ptr<Language> make_javascript(Manifest manifest) {
  manifest.recipe = SW_BOOT_RECIPE;
  return std::make_unique<javascript::JavaScript>(std::move(manifest));
}

}  // namespace sw::engine
