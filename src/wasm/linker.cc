// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/linker.h"

#include <fmt/format.h>

#include <exception>

#include "sandbox_workers/wasm/instance.h"
#include "wasm/linker_state.h"
#include "wasm/runtime_state.h"

namespace sw::wasm {

static_assert(sizeof(RawValue) == sizeof(wasmtime_val_raw_t) &&
              alignof(RawValue) == alignof(wasmtime_val_raw_t));

namespace {

wasm_valtype_t* to_wasm(ValueType type) {
  switch (type) {
    case ValueType::kI32: return wasm_valtype_new(WASM_I32);
    case ValueType::kI64: return wasm_valtype_new(WASM_I64);
    case ValueType::kF32: return wasm_valtype_new(WASM_F32);
    case ValueType::kF64: return wasm_valtype_new(WASM_F64);
  }
  return nullptr;
}

wasm_valtype_vec_t to_wasm(const std::vector<ValueType>& types) {
  wasm_valtype_vec_t vector;
  wasm_valtype_vec_new_uninitialized(&vector, types.size());
  for (std::size_t i = 0; i < types.size(); ++i) vector.data[i] = to_wasm(types[i]);
  return vector;
}

Result<void> run_guarded(const HostFunction& function, Caller& caller, RawValue* values) noexcept {
  try {
    return function(caller, values);
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kInternal, fmt::format("a host function threw: {}", problem.what()), 0};
  } catch (...) {
    return Error{ErrorCode::kInternal, "a host function threw", 0};
  }
}

wasm_trap_t* call_host(void* environment, wasmtime_caller_t* wasmtime_caller,
                       wasmtime_val_raw_t* values, std::size_t /*count*/) {
  wasmtime_context_t* context = wasmtime_caller_context(wasmtime_caller);
  auto& instance = *static_cast<Instance*>(wasmtime_context_get_data(context));
  Caller caller(instance);
  auto result = instance.is_damaged() ? Result<void>(*instance.damage())
                                      : run_guarded(*static_cast<HostFunction*>(environment),
                                                    caller, reinterpret_cast<RawValue*>(values));
  return static_cast<wasm_trap_t*>(instance.trap_for(std::move(result)));
}

void delete_host_function(void* environment) { delete static_cast<HostFunction*>(environment); }

}  // namespace

TypePtr to_wasm(const Signature& signature) {
  wasm_valtype_vec_t params = to_wasm(signature.params);
  wasm_valtype_vec_t results = to_wasm(signature.results);
  return TypePtr(wasm_functype_new(&params, &results));
}

Linker::Linker(Runtime& runtime) : state_(std::make_unique<State>()) {
  state_->linker.reset(wasmtime_linker_new(runtime.state().engine.get()));
}
Linker::~Linker() = default;
Linker::Linker(Linker&&) noexcept = default;
Linker& Linker::operator=(Linker&&) noexcept = default;

Result<void> Linker::define_raw(std::string_view module, std::string_view name,
                                const Signature& signature, HostFunction function) {
  definitions_.push_back({std::string(module), std::string(name), signature});
  const TypePtr type = to_wasm(signature);
  // Wasmtime owns the function from here on, also when the definition fails.
  auto owned = std::make_unique<HostFunction>(std::move(function));
  return check(wasmtime_linker_define_func_unchecked(
                   state_->linker.get(), module.data(), module.size(), name.data(), name.size(),
                   type.get(), &call_host, owned.release(), &delete_host_function),
               ErrorCode::kInvalidArgument);
}

Result<void> Linker::define_missing_as_traps(const Module& module) {
  return check(wasmtime_linker_define_unknown_imports_as_traps(state_->linker.get(),
                                                               module.state().module.get()),
               ErrorCode::kInvalidArgument);
}

MemoryView Caller::memory() const { return instance_.memory(); }
HostState& Caller::host() const { return instance_.host(); }

}  // namespace sw::wasm
