// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/embedded_interpreter.h"

namespace prolog {

/// One interpreter.
class PrologGuest final : public sw::engine::Guest {
 public:
  PrologGuest(const sw::engine::Manifest& manifest, std::shared_ptr<const sw::wasi::Layout> layout,
              const sw::wasi::Clocks& clocks)
      : Guest(std::move(layout), clocks), manifest_(manifest) {}

  sw::Result<void> boot(sw::engine::BakeFacts& facts) override;
  sw::Result<void> bind(const sw::engine::BakeFacts& facts) override;
  sw::Result<void> after_restore() override;
  sw::Result<sw::engine::Reply> evaluate(const sw::Run& request,
                                         std::string_view file_name) override;
  void soft_stop() override { stop_ = true; }
  void forget_stop() override { stop_ = false; }
  bool is_out_of_memory(const sw::GuestError& error) const override {
    return error.name == "resource_error";
  }

 private:
  template <class F>
  using Function = sw::wasm::Function<F>;
  using i32 = std::int32_t;

  /// `text` in the guest's memory, as C has it; `release` gives it back.
  sw::Result<i32> put(std::string_view text);
  sw::Result<void> release(i32 address, std::size_t bytes);
  /// Runs a goal to its first solution. False if it was stopped.
  sw::Result<bool> query(std::string_view goal);
  sw::Result<sw::engine::Reply> read_answer();

  const sw::engine::Manifest& manifest_;  // the language's, which outlives its guests
  Function<i32()> global_;
  Function<i32(i32, i32, i32, i32)> query_;
  Function<i32(i32)> redo_;
  Function<i32(i32)> did_yield_;
  Function<i32(i32, i32)> yield_at_;
  Function<i32(i32)> done_;
  Function<i32(i32, i32, i32, i32)> realloc_;
  Function<void(i32, i32, i32)> free_;
  Function<i32(i32)> halted_;
  Function<i32(i32)> halt_code_;
  i32 prolog_ = 0;
  std::string cwd_ = "/workspace";  // where the last cell left it
  bool first_cell_ = false;         // since the image or a snapshot
  std::atomic<bool> stop_ = false;
};

}  // namespace prolog
