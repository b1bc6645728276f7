// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One Ruby interpreter. Requests go into a buffer of the driver's (guests/ruby/driver/main.c has the form),
// answers come through the import sw.answer. Words of guest memory stop a running cell or ring its timer: Ruby
// looks at one of them wherever it looks for interrupts (guests/ruby/patches/0005-interrupts.patch).

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/alarm.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/wasm/linker.h"

namespace sw::engine {

class RubyGuest final : public Guest {
 public:
  /// `manifest` must outlive this.
  RubyGuest(const Manifest& manifest, std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks);

  Result<void> boot(BakeFacts& facts) override;
  Result<void> bind(const BakeFacts& facts) override;
  Result<void> after_restore() override;
  Result<Reply> evaluate(const RunRequest& request, std::string_view file_name) override;
  Result<void> finish() override;
  std::optional<std::int32_t> exit_status() const override { return exit_status_; }
  void soft_stop() override;
  bool is_out_of_memory(const GuestError& error) const override;

  /// For the imports. Trust: any code in the guest can call them.
  Result<void> take_answer(wasm::MemoryView memory, std::uint32_t address, std::uint32_t length);
  void set_alarm(std::uint64_t milliseconds);

 private:
  Result<void> find_entry_points();
  /// Copies to the driver's buffer and returns the size, as the entry points want it.
  Result<std::int32_t> send(std::string_view request);
  Result<void> start_driver();
  Result<void> warm_up();
  Result<void> prove_interrupt();
  void raise(std::uint32_t flag);

  const Manifest& manifest_;
  wasm::Function<std::int32_t(std::int32_t)> buffer_;
  wasm::Function<void(std::int32_t)> run_;
  wasm::Function<void()> renew_;
  wasm::Function<std::int32_t()> finish_;
  // Addresses of ints in guest memory.
  std::uint32_t interrupt_flag_ = 0;
  std::uint32_t stop_flag_ = 0;
  std::uint32_t timer_flag_ = 0;
  bool fresh_ = false;                       // no cell has run since the image or a saved state
  std::optional<std::int32_t> exit_status_;  // of the last finish
  std::string answer_;
  std::uint64_t answer_bytes_max_ = kReplyHeadBytesMax;
  Alarm alarm_;  // last: its thread uses what is above
};

/// Defines sw.answer, sw.alarm and sw.fd_dup for instances whose HostState is a RubyGuest.
Result<void> define_ruby_imports(wasm::Linker& linker);

}  // namespace sw::engine
