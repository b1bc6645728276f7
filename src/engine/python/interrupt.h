// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interrupting CPython from another thread, its state kept: the interpreter looks at `eval_breaker`
// of its thread state at function calls and at the end of loops; with the asynchronous-exception
// bit set it raises what `async_exc` holds. We set both words while it runs, as
// PyThreadState_SetAsyncExc would from a thread of its own.

#include <cstdint>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/wasm/memory_view.h"

namespace sw::engine {

/// Where the words are. Good for every instance that starts from the same image.
class Interrupt {
 public:
  /// Finds them by the table of offsets that CPython publishes for debuggers.
  /// Errors: kNotFound without that table, kInvalidArgument for another version of it, kCorrupt
  /// when it leads to nothing.
  static Result<Interrupt> find(wasm::MemoryView memory);
  /// Errors: kCorrupt when a fact is missing or is no address of a word.
  static Result<Interrupt> load(const BakeFacts& facts);
  void save(BakeFacts& facts) const;

  /// The thread's state that was found; 0 after load.
  std::uint32_t thread_state() const { return thread_state_; }

  /// The exception class to raise: an immortal object, so nobody counts references to it.
  void set_exception(std::uint32_t address) { exception_ = address; }

  /// Asks the running interpreter to raise the exception. Called while it runs.
  void request(wasm::MemoryView memory) const;
  /// Takes back a request that no code has met. Called while it does not run.
  /// Errors: kCorrupt when the words do not lie in memory.
  Result<void> withdraw(wasm::MemoryView memory) const;

 private:
  /// The host reaches them with atomic operations.
  Result<void> check_aligned() const;

  std::uint32_t thread_state_ = 0;
  std::uint32_t eval_breaker_ = 0;
  std::uint32_t async_exc_ = 0;
  std::uint32_t exception_ = 0;
};

}  // namespace sw::engine
