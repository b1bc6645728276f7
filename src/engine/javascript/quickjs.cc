// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/quickjs.h"

#include <algorithm>

#include "base/pieces.h"
#include "engine/javascript/guest_text.h"
#include "sandbox_workers/engine/language.h"

namespace sw::engine::javascript {

namespace {

Error out_of_memory() {
  return Error{ErrorCode::kLimitExceeded, "the guest has no memory left for the host's data", 0};
}
Error bad_address() {
  return Error{ErrorCode::kCorrupt, "the guest gave an address outside its memory", 0};
}

}  // namespace

Owned::~Owned() {
  // A guest that is gone needs no bookkeeping.
  if (js_ != nullptr && value_ != JsValue::undefined()) (void)js_->free(value_);
}

Result<void> QuickJs::bind(wasm::Instance& instance) {
  instance_ = &instance;
  const auto find = [&]<class Signature>(wasm::Function<Signature>& function,
                                         std::string_view name) -> Result<void> {
    SW_TRY(function, instance.function<Signature>(name));
    return {};
  };
  auto& e = exports_;
  SW_CHECK_OK(find(e.initialize, "_initialize"));
  SW_CHECK_OK(find(e.run_gc, "qjs_run_gc"));
  SW_CHECK_OK(find(e.init, "qjs_init"));
  SW_CHECK_OK(find(e.set_gc_threshold, "qjs_set_gc_threshold"));
  SW_CHECK_OK(find(e.new_context, "JS_NewContext"));
  SW_CHECK_OK(find(e.set_max_stack_size, "qjs_set_max_stack_size"));
  SW_CHECK_OK(find(e.set_interrupt_handler, "qjs_set_interrupt_handler"));
  SW_CHECK_OK(find(e.set_rejection_handler, "qjs_set_promise_rejection_handler"));
  SW_CHECK_OK(find(e.set_module_loader, "qjs_set_module_loader"));
  SW_CHECK_OK(find(e.free_box, "qjs_free_value"));
  SW_CHECK_OK(find(e.deallocate, "wasm_free"));
  SW_CHECK_OK(find(e.context, "qjs_get_context_ptr"));
  SW_CHECK_OK(find(e.runtime, "qjs_get_runtime_ptr"));
  SW_CHECK_OK(find(e.allocated_size, "qjs_get_allocated_size"));
  SW_CHECK_OK(find(e.allocate, "wasm_malloc"));
  SW_CHECK_OK(find(e.eval, "JS_Eval"));
  SW_CHECK_OK(find(e.eval_function, "JS_EvalFunction"));
  SW_CHECK_OK(find(e.throw_value, "JS_Throw"));
  SW_CHECK_OK(find(e.duplicate, "JS_DupValue"));
  SW_CHECK_OK(find(e.to_string, "JS_ToString"));
  SW_CHECK_OK(find(e.promise_result, "JS_PromiseResult"));
  SW_CHECK_OK(find(e.proxy_target, "JS_GetProxyTarget"));
  SW_CHECK_OK(find(e.proxy_handler, "JS_GetProxyHandler"));
  SW_CHECK_OK(find(e.call, "JS_Call"));
  SW_CHECK_OK(find(e.get_exception, "JS_GetException"));
  SW_CHECK_OK(find(e.throw_out_of_memory, "JS_ThrowOutOfMemory"));
  SW_CHECK_OK(find(e.new_object, "JS_NewObject"));
  SW_CHECK_OK(find(e.new_error, "JS_NewError"));
  SW_CHECK_OK(find(e.global_object, "JS_GetGlobalObject"));
  SW_CHECK_OK(find(e.free_value, "JS_FreeValue"));
  SW_CHECK_OK(find(e.mark_as_handled, "JS_PromiseMarkAsHandled"));
  SW_CHECK_OK(find(e.set_uncatchable, "JS_SetUncatchableError"));
  SW_CHECK_OK(find(e.get_property, "JS_GetProperty"));
  SW_CHECK_OK(find(e.set_property_str, "JS_SetPropertyStr"));
  SW_CHECK_OK(find(e.to_cstring, "JS_ToCStringLen2"));
  SW_CHECK_OK(find(e.free_cstring, "JS_FreeCString"));
  SW_CHECK_OK(find(e.free_atom, "JS_FreeAtom"));
  SW_CHECK_OK(find(e.free_raw, "js_free_rt"));
  SW_CHECK_OK(find(e.new_string, "JS_NewStringLen"));
  SW_CHECK_OK(find(e.new_array_buffer, "JS_NewArrayBufferCopy"));
  SW_CHECK_OK(find(e.get_array_buffer, "JS_GetArrayBuffer"));
  SW_CHECK_OK(find(e.new_atom, "JS_NewAtomLen"));
  SW_CHECK_OK(find(e.new_host_function, "qjs_new_host_function"));
  SW_CHECK_OK(find(e.is_job_pending, "JS_IsJobPending"));
  SW_CHECK_OK(find(e.execute_pending_job, "qjs_execute_pending_job"));
  SW_CHECK_OK(find(e.promise_state, "JS_PromiseState"));
  SW_CHECK_OK(find(e.is_promise, "JS_IsPromise"));
  SW_CHECK_OK(find(e.is_proxy, "JS_IsProxy"));
  SW_CHECK_OK(find(e.class_id, "JS_GetClassID"));
  SW_CHECK_OK(find(e.is_uncatchable, "JS_IsUncatchableError"));
  SW_CHECK_OK(find(e.delete_property, "JS_DeleteProperty"));
  SW_CHECK_OK(find(e.get_own_property, "JS_GetOwnProperty"));
  SW_CHECK_OK(find(e.define_property, "JS_DefineProperty"));
  SW_CHECK_OK(find(e.compile_to_bytes, "qjs_compile"));
  SW_CHECK_OK(find(e.eval_bytes, "qjs_eval_bytecode"));
  return find(e.parse_json, "JS_ParseJSON");
}

Result<std::uint32_t> QuickJs::allocate(std::size_t bytes) {
  if (bytes > UINT32_MAX - 16) return std::uint32_t{0};
  return instance_->call(exports_.allocate, static_cast<std::uint32_t>(bytes));
}

Result<void> QuickJs::deallocate(std::uint32_t address) {
  return instance_->call(exports_.deallocate, address);
}

Result<std::uint32_t> QuickJs::place(std::string_view bytes) {
  SW_TRY(const std::uint32_t address, allocate(bytes.size() + 1));
  if (address == 0) return out_of_memory();
  const auto to = memory().range(address, bytes.size() + 1);
  if (!to) return bad_address();
  std::byte* at = to->data();
  SW_CHECK_OK(in_pieces(cancellation(), as_bytes(bytes), [&](std::span<const std::byte> piece) {
    at = std::ranges::copy(piece, at).out;
  }));
  to->back() = std::byte{0};
  return address;
}

std::optional<std::uint32_t> QuickJs::address_of(std::span<const std::byte> bytes) const {
  const std::span<const std::byte> all = memory().bytes();
  if (bytes.data() < all.data() || bytes.data() >= all.data() + all.size()) return std::nullopt;
  return static_cast<std::uint32_t>(bytes.data() - all.data());
}

const Cancellation* QuickJs::cancellation() const {
  return static_cast<Guest&>(instance_->host()).wasi().run().cancellation;
}

Result<JsValue> QuickJs::duplicate(JsValue value) {
  SW_TRY(const std::uint64_t bits,
         instance_->call(exports_.duplicate, anchors_.context, value.bits));
  return JsValue{bits};
}

Result<void> QuickJs::free(JsValue value) {
  // Only the negative tags are references.
  if (static_cast<std::int32_t>(value.bits >> 32) >= 0 || value.is(JsValue::kFloat)) return {};
  return instance_->call(exports_.free_value, anchors_.context, value.bits);
}

Result<void> QuickJs::free_raw(std::uint32_t address) {
  return instance_->call(exports_.free_raw, anchors_.runtime, address);
}

Result<std::uint32_t> QuickJs::box(JsValue value) {
  SW_TRY(const std::uint32_t address, allocate(sizeof value.bits));
  if (address == 0) return out_of_memory();
  if (!memory().store(address, value.bits)) return bad_address();
  return address;
}

JsValue QuickJs::unbox(std::uint32_t box) const {
  return {memory().load<std::uint64_t>(box).value_or(JsValue::undefined().bits)};
}

Result<void> QuickJs::free_box(std::uint32_t box) {
  return instance_->call(exports_.free_box, box);
}

Result<JsValue> QuickJs::make_of_bytes(const Function<u64(u32, u32, u32)>& make,
                                       std::span<const std::byte> bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  if (const auto address = address_of(bytes)) {
    SW_TRY(const std::uint64_t bits, instance_->call(make, anchors_.context, *address, size));
    return JsValue{bits};
  }
  SW_TRY(const std::uint32_t address, place(as_text(bytes)));
  SW_TRY(const std::uint64_t bits, instance_->call(make, anchors_.context, address, size));
  SW_CHECK_OK(deallocate(address));
  return JsValue{bits};
}

Result<JsValue> QuickJs::new_string(std::string_view utf8) {
  return make_of_bytes(exports_.new_string, as_bytes(utf8));
}

Result<JsValue> QuickJs::new_array_buffer(std::span<const std::byte> bytes) {
  return make_of_bytes(exports_.new_array_buffer, bytes);
}

Result<JsValue> QuickJs::new_object() {
  SW_TRY(const std::uint64_t bits, instance_->call(exports_.new_object, anchors_.context));
  return JsValue{bits};
}

Result<JsValue> QuickJs::new_host_function(std::string_view name) {
  SW_TRY(const std::uint32_t address, place(name));
  SW_TRY(const std::uint32_t made, instance_->call(exports_.new_host_function, address,
                                                   static_cast<std::uint32_t>(name.size()), 0U));
  SW_CHECK_OK(deallocate(address));
  const JsValue value = unbox(made);
  SW_CHECK_OK(deallocate(made));  // the box only: the reference is ours now
  return value;
}

Result<std::string> QuickJs::to_text(JsValue value, std::size_t bytes_max) {
  SW_TRY(const GuestText text, GuestText::of(*this, value));
  return text.copy(bytes_max);
}

Result<std::string> QuickJs::number_text(JsValue value) {
  SW_TRY(const std::uint64_t bits,
         instance_->call(exports_.to_string, anchors_.context, value.bits));
  const Owned text(*this, JsValue{bits});
  return to_text(text.get());
}

Result<std::span<std::byte>> QuickJs::array_buffer(JsValue value) {
  SW_TRY(const std::uint32_t address, instance_->call(exports_.get_array_buffer, anchors_.context,
                                                      anchors_.scratch, value.bits));
  if (address == 0) {  // detached, or none: an exception waits
    SW_TRY(const JsValue problem, take_exception());
    SW_CHECK_OK(free(problem));
    return std::span<std::byte>();
  }
  const auto size = memory().load<std::uint32_t>(anchors_.scratch);
  const auto bytes = size ? memory().range(address, *size) : std::nullopt;
  if (!bytes) return bad_address();
  return *bytes;
}

Result<std::uint32_t> QuickJs::new_atom(std::string_view name) {
  SW_TRY(const std::uint32_t address, place(name));
  SW_TRY(const std::uint32_t atom, instance_->call(exports_.new_atom, anchors_.context, address,
                                                   static_cast<std::uint32_t>(name.size())));
  SW_CHECK_OK(deallocate(address));
  return atom;
}

Result<JsValue> QuickJs::get(JsValue object, std::uint32_t atom) {
  SW_TRY(const std::uint64_t bits,
         instance_->call(exports_.get_property, anchors_.context, object.bits, atom));
  return JsValue{bits};
}

Result<JsValue> QuickJs::get(JsValue object, std::string_view name) {
  SW_TRY(const std::uint32_t atom, new_atom(name));
  SW_TRY(const JsValue value, get(object, atom));
  SW_CHECK_OK(instance_->call(exports_.free_atom, anchors_.context, atom));
  return value;
}

Result<void> QuickJs::set(JsValue object, std::string_view name, JsValue value) {
  SW_TRY(const std::uint32_t address, place(name));
  SW_TRY(const std::int32_t status, instance_->call(exports_.set_property_str, anchors_.context,
                                                    object.bits, address, value.bits));
  SW_CHECK_OK(deallocate(address));
  if (status < 0) return out_of_memory();
  return {};
}

Result<JsValue> QuickJs::compile(std::uint32_t code, std::size_t bytes, std::uint32_t file_name,
                                 std::int32_t flags) {
  SW_TRY(const std::uint64_t bits,
         instance_->call(exports_.eval, anchors_.context, code, static_cast<std::uint32_t>(bytes),
                         file_name, flags));
  return JsValue{bits};
}

Result<JsValue> QuickJs::evaluate(std::string_view code, std::string_view file_name,
                                  std::int32_t flags) {
  SW_TRY(const std::uint32_t code_address, place(code));
  SW_TRY(const std::uint32_t name_address, place(file_name));
  SW_TRY(const JsValue value, compile(code_address, code.size(), name_address, flags));
  SW_CHECK_OK(deallocate(code_address));
  SW_CHECK_OK(deallocate(name_address));
  return value;
}

Result<JsValue> QuickJs::evaluate_without_source(std::string_view code,
                                                 std::string_view file_name) {
  constexpr std::int32_t kStripSource = 1 << 4;
  SW_TRY(const std::uint32_t code_address, place(code));
  SW_TRY(const std::uint32_t name_address, place(file_name));
  SW_TRY(const std::uint32_t compiled,
         instance_->call(exports_.compile_to_bytes, code_address,
                         static_cast<std::uint32_t>(code.size()), name_address, 0, kStripSource,
                         anchors_.scratch));
  const std::uint32_t size = memory().load<std::uint32_t>(anchors_.scratch).value_or(0);
  SW_CHECK_OK(deallocate(code_address));
  SW_CHECK_OK(deallocate(name_address));
  if (compiled == 0) return JsValue::exception();
  SW_TRY(const std::uint32_t box, instance_->call(exports_.eval_bytes, compiled, size));
  const JsValue value = unbox(box);
  SW_CHECK_OK(deallocate(box));
  SW_CHECK_OK(deallocate(compiled));
  return value;
}

Result<JsValue> QuickJs::run(JsValue code) {
  SW_TRY(const std::uint64_t bits,
         instance_->call(exports_.eval_function, anchors_.context, code.bits));
  return JsValue{bits};
}

Result<JsValue> QuickJs::call(JsValue function, std::span<const JsValue> arguments) {
  // The callee reads its arguments where they lie, and may call host functions that come here
  // again.
  const bool has_slot = calls_ < kSlots && arguments.size_bytes() <= kSlotBytes;
  std::uint32_t address = anchors_.scratch + kResultBytes + calls_ * kSlotBytes;
  if (!has_slot) {
    SW_TRY(address, allocate(arguments.size_bytes()));
  }
  const auto to = memory().range(address, arguments.size_bytes());
  if (address == 0 || !to) return out_of_memory();
  std::ranges::copy(std::as_bytes(arguments), to->begin());
  ++calls_;
  const auto bits =
      instance_->call(exports_.call, anchors_.context, function.bits, JsValue::undefined().bits,
                      static_cast<std::int32_t>(arguments.size()), address);
  --calls_;
  if (!bits.ok()) return bits.error();
  if (!has_slot) SW_CHECK_OK(deallocate(address));
  return JsValue{*bits};
}

Result<JsValue> QuickJs::take_exception() {
  SW_TRY(const std::uint64_t bits, instance_->call(exports_.get_exception, anchors_.context));
  return JsValue{bits};
}

Result<void> QuickJs::throw_value(JsValue value) {
  SW_TRY(const std::uint64_t bits,
         instance_->call(exports_.throw_value, anchors_.context, value.bits));
  static_cast<void>(bits);
  return {};
}

Result<void> QuickJs::throw_out_of_memory() {
  SW_TRY(const std::uint64_t bits, instance_->call(exports_.throw_out_of_memory, anchors_.context));
  static_cast<void>(bits);
  return {};
}

Result<bool> QuickJs::is_job_pending() {
  SW_TRY(const std::int32_t pending, instance_->call(exports_.is_job_pending, anchors_.runtime));
  return pending != 0;
}

Result<bool> QuickJs::run_job() {
  SW_TRY(const std::int32_t status, instance_->call(exports_.execute_pending_job));
  return status >= 0;
}

Result<bool> QuickJs::is_promise(JsValue value) {
  if (!value.is(JsValue::kObject)) return false;
  SW_TRY(const std::int32_t answer, instance_->call(exports_.is_promise, value.bits));
  return answer != 0;
}

Result<QuickJs::PromiseState> QuickJs::promise_state(JsValue promise) {
  SW_TRY(const std::int32_t state,
         instance_->call(exports_.promise_state, anchors_.context, promise.bits));
  return static_cast<PromiseState>(std::clamp(state, 0, 2));
}

Result<JsValue> QuickJs::promise_result(JsValue promise) {
  SW_TRY(const std::uint64_t bits,
         instance_->call(exports_.promise_result, anchors_.context, promise.bits));
  return JsValue{bits};
}

Result<void> QuickJs::mark_as_handled(JsValue promise) {
  return instance_->call(exports_.mark_as_handled, anchors_.context, promise.bits);
}

}  // namespace sw::engine::javascript
