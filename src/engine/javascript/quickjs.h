// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interpreter's own functions, called from the host.
//
// Failure has two levels. An Error means that the guest is gone (it trapped, was stopped). A
// JavaScript exception is the value JsValue::exception(), and the thrown value waits in the
// interpreter for take_exception.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/javascript/value.h"
#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/instance.h"

namespace sw::engine::javascript {

class QuickJs;

/// Owns one reference to a value and gives it back.
class Owned {
 public:
  Owned() = default;
  Owned(QuickJs& js, JsValue value) : js_(&js), value_(value) {}
  Owned(Owned&& other) noexcept : js_(other.js_), value_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(js_, other.js_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Owned();

  JsValue get() const { return value_; }
  JsValue release() { return std::exchange(value_, JsValue::undefined()); }

 private:
  QuickJs* js_ = nullptr;
  JsValue value_ = JsValue::undefined();
};

/// Addresses in the guest that stay the same from bake on.
struct Anchors {
  std::uint32_t context = 0;
  std::uint32_t runtime = 0;
  /// KScratchBytes for results of calls and, in slots behind them, arguments
  std::uint32_t scratch = 0;
};
inline constexpr std::uint32_t kResultBytes = 64;
// A call inside a call has a slot of its own.
inline constexpr std::uint32_t kSlotBytes = 32;
inline constexpr std::uint32_t kSlots = 6;
inline constexpr std::uint32_t kScratchBytes = kResultBytes + kSlots * kSlotBytes;

/// Flags of `compile`.
enum EvalFlag : std::int32_t { kModuleFlag = 1, kCompileOnlyFlag = 1 << 5, kAsyncFlag = 1 << 7 };

class QuickJs {
 public:
  /// Finds the functions. `instance` outlives this.
  Result<void> bind(wasm::Instance& instance);
  void set_anchors(const Anchors& anchors) { anchors_ = anchors; }
  const Anchors& anchors() const { return anchors_; }

  wasm::Instance& instance() const { return *instance_; }
  wasm::MemoryView memory() const { return instance_->memory(); }
  /// What ends the run in progress; null at bake.
  const Cancellation* cancellation() const;

  // Memory. An address of 0 means that there is none left.

  Result<std::uint32_t> allocate(std::size_t bytes);
  Result<void> deallocate(std::uint32_t address);
  /// The bytes and a NUL, in memory of their own. Errors: kLimitExceeded when memory is short.
  Result<std::uint32_t> place(std::string_view bytes);
  /// Where bytes lie that are the guest's already.
  std::optional<std::uint32_t> address_of(std::span<const std::byte> bytes) const;

  // Values.

  Result<JsValue> duplicate(JsValue value);
  Result<void> free(JsValue value);
  /// Memory that the interpreter itself allocated.
  Result<void> free_raw(std::uint32_t address);
  /// A value in a heap cell of its own, as host functions return it, and back.
  Result<std::uint32_t> box(JsValue value);
  JsValue unbox(std::uint32_t box) const;
  Result<void> free_box(std::uint32_t box);

  // Neither copies what lies in the guest's memory.
  Result<JsValue> new_string(std::string_view utf8);
  Result<JsValue> new_array_buffer(std::span<const std::byte> bytes);
  Result<JsValue> new_object();
  Result<JsValue> new_host_function(std::string_view name);
  /// UTF-8, with lone surrogates as three bytes each; its first `bytes_max` bytes. Errors:
  /// kLimitExceeded when the guest's limit has no room for the copy.
  Result<std::string> to_text(JsValue value, std::size_t bytes_max = SIZE_MAX);
  /// The text of a number.
  Result<std::string> number_text(JsValue value);
  /// Address and size of an ArrayBuffer's bytes; {0, 0} for a detached one.
  Result<std::span<std::byte>> array_buffer(JsValue value);

  // Properties.

  Result<std::uint32_t> new_atom(std::string_view name);
  Result<JsValue> get(JsValue object, std::uint32_t atom);
  Result<JsValue> get(JsValue object, std::string_view name);
  /// Takes over `value`.
  Result<void> set(JsValue object, std::string_view name, JsValue value);

  // Code.

  /// Both texts end with a NUL that does not count.
  Result<JsValue> compile(std::uint32_t code, std::size_t bytes, std::uint32_t file_name,
                          std::int32_t flags);
  Result<JsValue> evaluate(std::string_view code, std::string_view file_name, std::int32_t flags);
  /// Evaluates a script in global scope and leaves its functions without their source text, which
  /// would be kept once for each function that a function lies in.
  Result<JsValue> evaluate_without_source(std::string_view code, std::string_view file_name);
  /// Runs compiled code; takes over `code`.
  Result<JsValue> run(JsValue code);
  /// Needs no memory of the guest's heap, of which there may be none, unless calls lie deep in one
  /// another.
  Result<JsValue> call(JsValue function, std::span<const JsValue> arguments);
  Result<JsValue> take_exception();
  /// Takes over `value`.
  Result<void> throw_value(JsValue value);
  Result<void> throw_out_of_memory();

  // Promises and jobs.

  Result<bool> is_job_pending();
  /// False when it threw.
  Result<bool> run_job();
  enum class PromiseState : std::uint8_t { kPending, kFulfilled, kRejected };
  Result<bool> is_promise(JsValue value);
  Result<PromiseState> promise_state(JsValue promise);
  Result<JsValue> promise_result(JsValue promise);
  Result<void> mark_as_handled(JsValue promise);

 private:
  template <class Signature>
  using Function = wasm::Function<Signature>;
  using i32 = std::int32_t;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;

 public:
  /// Functions that only a few places need, found with the others.
  struct Exports {
    Function<void()> initialize, run_gc;
    Function<u32(u32)> new_context;
    Function<void(u32)> set_gc_threshold;
    Function<i32()> init;
    Function<void(u32)> set_max_stack_size, set_interrupt_handler, set_rejection_handler,
        set_module_loader, free_box, deallocate;
    Function<u32()> context, runtime, allocated_size;
    Function<u32(u32)> allocate;
    Function<u64(u32, u32, u32, u32, i32)> eval;
    Function<u64(u32, u64)> eval_function, throw_value, duplicate, to_string, promise_result,
        proxy_target, proxy_handler;
    Function<u64(u32, u64, u64, i32, u32)> call;
    Function<u64(u32)> get_exception, throw_out_of_memory, new_object, new_error, global_object;
    Function<void(u32, u64)> free_value, mark_as_handled, set_uncatchable;
    Function<u64(u32, u64, u32)> get_property;
    Function<i32(u32, u64, u32, u64)> set_property_str;
    Function<u32(u32, u32, u64, i32)> to_cstring;
    Function<void(u32, u32)> free_cstring, free_atom, free_raw;
    Function<u64(u32, u32, u32)> new_string, new_array_buffer;
    Function<u32(u32, u32, u64)> get_array_buffer;
    Function<u32(u32, u32, u32)> new_atom, new_host_function;
    Function<i32(u32)> is_job_pending;
    Function<i32()> execute_pending_job;
    Function<i32(u32, u64)> promise_state;
    Function<i32(u64)> is_promise, is_proxy, class_id, is_uncatchable;
    Function<i32(u32, u64, u32, i32)> delete_property;
    Function<i32(u32, u32, u64, u32)> get_own_property;
    Function<i32(u32, u64, u32, u64, u64, u64, i32)> define_property;
    Function<u64(u32, u32, u32, u32)> parse_json;
    Function<u32(u32, u32, u32, i32, i32, u32)> compile_to_bytes;
    Function<u32(u32, u32)> eval_bytes;
  };
  const Exports& exports() const { return exports_; }

 private:
  Result<JsValue> make_of_bytes(const Function<u64(u32, u32, u32)>& make,
                                std::span<const std::byte> bytes);

  wasm::Instance* instance_ = nullptr;
  Anchors anchors_;
  std::uint32_t calls_ = 0;  // that have not returned
  Exports exports_;
};

}  // namespace sw::engine::javascript
