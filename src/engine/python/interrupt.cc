// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/interrupt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

namespace sw::engine {

namespace {

using wasm::MemoryView;

// CPython's _Py_DebugOffsets, at the start of its runtime state: the cookie, then 64-bit words.
// These are the words of version 3.15 that we need, by their number.
constexpr std::string_view kCookie = "xdebugpy";
constexpr std::uint64_t kVersion = 0x030f;  // the high half of PY_VERSION_HEX
enum Word : std::uint32_t {
  kPyVersion = 0,
  kFreeThreaded = 1,
  kInterpretersHead = 4,
  kThreadsHead = 8,
  kThreadInterpreter = 24,
  kThreadId = 29,
  kWordCount = 30,
};

// Not published; neighbours of published fields (cpython, Include/cpython/pystate.h).
constexpr std::uint32_t kBreakerAfterInterpreter = 4;
constexpr std::uint32_t kAsyncExcBeforeThreadId = 4;
constexpr std::uint32_t kAsyncExceptionBit = 1U << 3;  // _PY_ASYNC_EXCEPTION_BIT

Result<std::uint32_t> load_word(MemoryView memory, std::uint64_t address) {
  const auto word = address <= UINT32_MAX
                        ? memory.load<std::uint32_t>(static_cast<std::uint32_t>(address))
                        : std::nullopt;
  if (!word || *word == 0) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("CPython's structures are invalid at {:#x}", address), 0};
  }
  return *word;
}

/// A word of guest memory that the guest may be using at the same time.
std::atomic_ref<std::uint32_t> shared_word(std::span<std::byte> bytes) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(bytes.data()));
}

}  // namespace

Result<Interrupt> Interrupt::find(MemoryView memory) {
  const std::span<const std::byte> bytes = memory.bytes();
  const auto cookie = std::as_bytes(std::span(kCookie));
  const auto found = std::search(bytes.begin(), bytes.end(), cookie.begin(), cookie.end());
  if (found == bytes.end())
    return Error{ErrorCode::kNotFound, "no table of CPython's offsets in memory", 0};
  const auto runtime = static_cast<std::uint64_t>(found - bytes.begin());
  const auto table = memory.load<std::array<std::uint64_t, kWordCount>>(
      static_cast<std::uint32_t>(runtime + kCookie.size()));
  if (!table || (*table)[kPyVersion] >> 16 != kVersion || (*table)[kFreeThreaded] != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "the table of CPython's offsets is for another version", 0};
  }
  SW_TRY(const std::uint64_t interpreter, load_word(memory, runtime + (*table)[kInterpretersHead]));
  SW_TRY(const std::uint64_t thread, load_word(memory, interpreter + (*table)[kThreadsHead]));
  SW_TRY(const std::uint64_t back, load_word(memory, thread + (*table)[kThreadInterpreter]));
  if (back != interpreter)
    return Error{ErrorCode::kCorrupt, "CPython's thread does not belong to an interpreter", 0};
  Interrupt interrupt;
  interrupt.thread_state_ = static_cast<std::uint32_t>(thread);
  interrupt.eval_breaker_ =
      static_cast<std::uint32_t>(thread + (*table)[kThreadInterpreter] + kBreakerAfterInterpreter);
  interrupt.async_exc_ =
      static_cast<std::uint32_t>(thread + (*table)[kThreadId] - kAsyncExcBeforeThreadId);
  SW_CHECK_OK(interrupt.check_aligned());
  return interrupt;
}

Result<void> Interrupt::check_aligned() const {
  if (eval_breaker_ % alignof(std::uint32_t) == 0 && async_exc_ % alignof(std::uint32_t) == 0)
    return {};
  return Error{ErrorCode::kCorrupt, "CPython's interrupt words are not in its memory", 0};
}

Result<Interrupt> Interrupt::load(const BakeFacts& facts) {
  Interrupt interrupt;
  SW_TRY(interrupt.eval_breaker_, fact<std::uint32_t>(facts, "eval_breaker"));
  SW_TRY(interrupt.async_exc_, fact<std::uint32_t>(facts, "async_exc"));
  SW_TRY(interrupt.exception_, fact<std::uint32_t>(facts, "keyboard_interrupt"));
  SW_CHECK_OK(interrupt.check_aligned());
  return interrupt;
}

void Interrupt::save(BakeFacts& facts) const {
  facts["eval_breaker"] = eval_breaker_;
  facts["async_exc"] = async_exc_;
  facts["keyboard_interrupt"] = exception_;
}

void Interrupt::request(MemoryView memory) const {
  const auto breaker_bytes = memory.range(eval_breaker_, sizeof(std::uint32_t));
  const auto exception_bytes = memory.range(async_exc_, sizeof(std::uint32_t));
  if (!breaker_bytes || !exception_bytes || exception_ == 0) return;
  const auto breaker = shared_word(*breaker_bytes);
  const auto exception = shared_word(*exception_bytes);
  exception.store(exception_);
  // The guest changes other bits of the word by a load and a store, between which ours can be lost.
  // Then the exception is still pending, and we set the bit again.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && exception.load() == exception_; ++i)
    breaker.fetch_or(kAsyncExceptionBit);
}

Result<void> Interrupt::withdraw(MemoryView memory) const {
  const auto breaker_bytes = memory.range(eval_breaker_, sizeof(std::uint32_t));
  const auto exception_bytes = memory.range(async_exc_, sizeof(std::uint32_t));
  if (!breaker_bytes || !exception_bytes)
    return Error{ErrorCode::kCorrupt, "CPython's interrupt words are outside its memory", 0};
  // Another thread may be asking for the interrupt just now.
  const auto breaker = shared_word(*breaker_bytes);
  const auto exception = shared_word(*exception_bytes);
  // Written only when needed: a write makes the page dirty.
  if (exception.load() != 0) exception.store(0);
  if ((breaker.load() & kAsyncExceptionBit) != 0) breaker.fetch_and(~kAsyncExceptionBit);
  return {};
}

}  // namespace sw::engine
