// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One CPython interpreter, and the two ways through which host and driver talk: `turn` carries a
// request in, the import host.call (the "door") carries the answer out.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/python/interrupt.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/wasm/linker.h"

namespace sw::engine {

class PythonGuest final : public Guest {
 public:
  /// `manifest` must outlive this.
  PythonGuest(const Manifest& manifest, std::shared_ptr<const wasi::Layout> layout,
              const wasi::Clocks& clocks)
      : Guest(std::move(layout), clocks), manifest_(manifest) {}

  Result<void> boot(BakeFacts& facts) override;
  Result<void> bind(const BakeFacts& facts) override;
  Result<void> after_restore() override;
  Result<Reply> evaluate(const Run& request, std::string_view file_name) override;
  Result<void> finish() override;
  void soft_stop() override;
  bool is_out_of_memory(const GuestError& error) const override {
    return error.name == "MemoryError";
  }

  /// What the guest sent through the door. Trust: any code in the guest can send anything.
  Result<void> take_answer(wasm::MemoryView memory, std::uint32_t address, std::uint32_t length);

 private:
  Result<void> find_entry_points();
  /// The guest's status, which says nothing that the answer does not.
  Result<std::int32_t> turn(std::string_view request);
  Result<void> prove_interrupt();
  void release_reserve();
  Reply interrupted_before_answer() const;

  const Manifest& manifest_;
  wasm::Function<std::int32_t(std::int32_t)> host_alloc_;
  wasm::Function<std::int32_t(std::int32_t, std::int32_t)> turn_;
  Interrupt interrupt_;
  std::string answer_;
  std::uint64_t answer_bytes_max_ = kReplyHeadBytesMax;
  std::atomic<bool> asked_to_stop_ = false;  // of the cell in progress
  std::atomic<bool> stopping_ = false;       // the cell has noticed that it is to stop
  std::function<Result<void>()> on_answer_;  // at bake only
  bool fresh_ = false;                       // no cell has run since the image or a snapshot
  std::string cwd_;                          // where the last cell left it
};

/// Defines host.call for instances whose HostState is a PythonGuest.
Result<void> define_door(wasm::Linker& linker);

}  // namespace sw::engine
