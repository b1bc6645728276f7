// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/instance.h"

#include <fmt/format.h>

#include "sandbox_workers/wasm/guest_thread.h"
#include "wasm/dirty_pages.h"
#include "wasm/instance_state.h"
#include "wasm/linker_state.h"
#include "wasm/runtime_state.h"
#include "wasm/stop_signal.h"

namespace sw::wasm {

namespace {

std::size_t declared_memory_bytes(const wasmtime_module_t* module) {
  wasm_exporttype_vec_t types;
  wasmtime_module_exports(module, &types);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < types.size; ++i) {
    const auto* memory = wasm_externtype_as_memorytype_const(wasm_exporttype_type(types.data[i]));
    if (memory != nullptr) bytes = wasmtime_memorytype_minimum(memory) * kWasmPageBytes;
  }
  wasm_exporttype_vec_delete(&types);
  return bytes;
}

/// Called on the guest's thread when the engine's counter was raised, for whichever of its
/// instances.
wasmtime_error_t* at_epoch(wasmtime_context_t* /*context*/, void* state, std::uint64_t* delta,
                           wasmtime_update_deadline_kind_t* kind) {
  auto& instance = *static_cast<Instance::State*>(state);
  const MutexLock lock(instance.run_mutex);
  if (instance.stop_requested) return wasmtime_error_new("stopped by the host");
  *delta = 1;
  *kind = WASMTIME_UPDATE_DEADLINE_CONTINUE;
  return nullptr;
}

Signature signature_of(const wasm_functype_t* type, bool& supported) {
  Signature signature;
  const auto convert = [&](const wasm_valtype_vec_t& from, std::vector<ValueType>& to) {
    for (std::size_t i = 0; i < from.size; ++i) {
      switch (wasm_valtype_kind(from.data[i])) {
        case WASM_I32: to.push_back(ValueType::kI32); break;
        case WASM_I64: to.push_back(ValueType::kI64); break;
        case WASM_F32: to.push_back(ValueType::kF32); break;
        case WASM_F64: to.push_back(ValueType::kF64); break;
        default: supported = false;
      }
    }
  };
  convert(*wasm_functype_params(type), signature.params);
  convert(*wasm_functype_results(type), signature.results);
  return signature;
}

}  // namespace

InstancePre::InstancePre(std::shared_ptr<State> state) : state_(std::move(state)) {}
InstancePre::~InstancePre() = default;

Result<std::shared_ptr<InstancePre>> InstancePre::create(Runtime& runtime, const Linker& linker,
                                                         const Module& module,
                                                         const StateFacts& facts,
                                                         std::shared_ptr<const Image> image) {
  wasmtime_instance_pre_t* pre = nullptr;
  SW_CHECK_OK(check(wasmtime_linker_instantiate_pre(linker.state_->linker.get(),
                                                    module.state().module.get(), &pre),
                    ErrorCode::kInvalidArgument));
  auto slots = std::make_shared<SlotPool>(image);
  auto state = std::make_shared<State>(
      State{.engine = runtime.state().engine.get(),
            .pre = InstancePrePtr(pre),
            .module = module,
            .facts = facts,
            .image = std::move(image),
            .slots = std::move(slots),
            .memory_bytes_min = declared_memory_bytes(module.state().module.get()),
            .stack_bytes_max = runtime.options().stack_bytes_max,
            .stop_means = runtime.options().stop_means,
            .faults = runtime.state().faults});
  return std::shared_ptr<InstancePre>(new InstancePre(std::move(state)));
}

Result<std::unique_ptr<Instance>> InstancePre::instantiate(HostState& host,
                                                           const InstanceLimits& limits) {
  auto state = std::make_unique<Instance::State>();
  state->pre = state_;
  state->host = &host;
  std::unique_ptr<Instance> instance(new Instance(std::move(state)));
  SW_CHECK_OK(instance->start(limits));
  return instance;
}

Instance::Instance(std::unique_ptr<State> state) : state_(std::move(state)) {}
Instance::~Instance() {
  // What it calls goes away with the state.
  if (state_->slot) (void)state_->slot->end_late_pages();
}

Result<void> Instance::start(const InstanceLimits& limits) {
  InstancePre::State& pre = *state_->pre;
  state_->store.reset(wasmtime_store_new(pre.engine, this, nullptr));
  state_->context = wasmtime_store_context(state_->store.get());
  if (pre.stop_means == StopMeans::kEpoch) {
    wasmtime_context_set_epoch_deadline(state_->context, 1);
    wasmtime_store_epoch_deadline_callback(state_->store.get(), &at_epoch, state_.get(), nullptr);
  }
  MemoryRequest request{.pool = pre.slots,
                        .bytes_at_start = pre.memory_bytes_min,
                        .bytes_max = limits.memory_bytes_max,
                        .made = nullptr};
  wasm_trap_t* raw_trap = nullptr;
  {
    const MemoryRequestScope scope(request);
    SW_CHECK_OK(check(wasmtime_instance_pre_instantiate(pre.pre.get(), state_->context,
                                                        &state_->instance, &raw_trap),
                      ErrorCode::kUnavailable));
  }
  if (const TrapPtr trap(raw_trap); trap)
    return Error{ErrorCode::kGuestTrap, message_of(trap.get()), 0};
  state_->slot = request.made;
  wasmtime_extern_t item;
  if (wasmtime_instance_export_get(state_->context, &state_->instance, "memory", 6, &item) &&
      item.kind == WASMTIME_EXTERN_MEMORY) {
    const auto* data =
        reinterpret_cast<std::byte*>(wasmtime_memory_data(state_->context, &item.of.memory));
    if (state_->slot == nullptr || state_->slot->base() != data) {
      return Error{ErrorCode::kInternal, "the module's memory did not come from its slot", 0};
    }
  }
  for (std::uint32_t i = 0; i < pre.facts.mutable_globals; ++i) {
    const std::string name = fmt::format("{}{}", kGlobalExportPrefix, i);
    if (!wasmtime_instance_export_get(state_->context, &state_->instance, name.data(), name.size(),
                                      &item)) {
      return Error{ErrorCode::kInternal,
                   fmt::format("the prepared module lacks its export {}", name), 0};
    }
    State::Global global{.global = item.of.global, .initial = {}};
    wasmtime_global_get(state_->context, &global.global, &global.initial);
    state_->globals.push_back(global);
  }
  return {};
}

HostState& Instance::host() const { return *state_->host; }

MemoryView Instance::memory() const {
  if (state_->slot == nullptr) return MemoryView();
  return MemoryView(std::span(state_->slot->base(), state_->slot->size()));
}

BytesView Instance::image() const { return state_->slot ? state_->slot->image() : BytesView{}; }

std::uint64_t Instance::memory_bytes_max() const {
  return state_->slot ? state_->slot->bytes_max() : 0;
}
void Instance::set_memory_bytes_max(std::uint64_t bytes) {
  if (state_->slot) state_->slot->set_bytes_max(bytes);
}
Result<void> Instance::charge(std::uint64_t bytes) {
  return state_->slot ? state_->slot->charge(bytes) : Result<void>();
}
std::uint64_t Instance::refused_growths() const {
  return state_->slot ? state_->slot->refused_growths() : 0;
}

HostMemoryScope::HostMemoryScope(Instance& instance)
    : slot_(instance.state_->slot), charged_before_(slot_ ? slot_->charged() : 0) {}
HostMemoryScope::~HostMemoryScope() {
  if (slot_) slot_->uncharge_to(charged_before_);
}

Result<void> Instance::grow_memory_to(std::uint64_t bytes) {
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(state_->context, &state_->instance, "memory", 6, &item) ||
      item.kind != WASMTIME_EXTERN_MEMORY) {
    return Error{ErrorCode::kNotFound, "the module exports no memory", 0};
  }
  const std::uint64_t now = memory().size();
  if (bytes <= now) return {};
  // Through Wasmtime, never by changing the slot alone: the instance keeps a copy of its memory's
  // length.
  std::uint64_t previous = 0;
  return check(wasmtime_memory_grow(state_->context, &item.of.memory,
                                    (bytes - now + kWasmPageBytes - 1) / kWasmPageBytes, &previous),
               ErrorCode::kLimitExceeded);
}

Result<void> Instance::leave_out_pages(std::span<const ByteRange> parts) {
  if (!state_->pre->faults || state_->slot == nullptr) {
    return Error{ErrorCode::kUnavailable, "this memory cannot be filled as it is touched", 0};
  }
  // To compare is to touch.
  if (state_->dirty_scanner().method() == DirtyMethod::kCompare) {
    return Error{ErrorCode::kUnavailable, "the kernel does not say which pages are present", 0};
  }
  return state_->slot->leave_out_pages(state_->pre->faults, parts);
}

Result<PageSpan> Instance::room_for(std::uint32_t page) {
  if (LatePages* const late = state_->slot->late_pages()) return late->write(page);
  return memory().bytes().subspan(std::size_t{page} * kPageBytes).first<kPageBytes>();
}

Result<void> Instance::supply_pages(PageSupply supply, std::function<void()> on_damage) {
  state_->on_damage = std::move(on_damage);
  return state_->slot->late_pages()->start(std::move(supply), *state_);
}

void Instance::State::note(const Error& error) {
  const MutexLock lock(damage_mutex);
  if (!damage) damage = error;
  is_damaged.store(true, std::memory_order_release);
  if (on_damage) on_damage();
}

void Instance::State::end_call() {
  const MutexLock lock(run_mutex);
  if (depth != 0) end_run();
}

bool Instance::is_damaged() const { return state_->is_damaged.load(std::memory_order_acquire); }

std::optional<Error> Instance::damage() const {
  const MutexLock lock(state_->damage_mutex);
  return state_->damage;
}

bool Instance::has_export(std::string_view name) {
  wasmtime_extern_t item;
  return wasmtime_instance_export_get(state_->context, &state_->instance, name.data(), name.size(),
                                      &item);
}

Result<std::size_t> Instance::find_function_raw(std::string_view name, const Signature& signature) {
  const std::string key(name);
  auto known = state_->function_indices.find(key);
  if (known == state_->function_indices.end()) {
    wasmtime_extern_t item;
    if (!wasmtime_instance_export_get(state_->context, &state_->instance, name.data(), name.size(),
                                      &item) ||
        item.kind != WASMTIME_EXTERN_FUNC) {
      return Error{ErrorCode::kNotFound, fmt::format("the module exports no function '{}'", name),
                   0};
    }
    const TypePtr type(wasmtime_func_type(state_->context, &item.of.func));
    bool supported = true;
    Signature actual = signature_of(type.get(), supported);
    if (!supported) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' has unsupported types", name), 0};
    }
    known = state_->function_indices.emplace(key, state_->functions.size()).first;
    state_->functions.push_back({std::move(actual), item.of.func});
  }
  if (state_->functions[known->second].signature != signature) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' has a different signature", name),
                 0};
  }
  return known->second;
}

Result<void> Instance::enter() {
  if (auto damaged = damage()) return *std::move(damaged);
  if (poisoned_)
    return Error{ErrorCode::kInternal, "an instance was called after it ended abnormally", 0};
  const MutexLock lock(state_->run_mutex);
  if (state_->depth == 0) {
    if (stack_bytes_left() < state_->pre->stack_bytes_max + kHostStackReserve) {
      return Error{ErrorCode::kInternal,
                   "a guest was called on a thread whose stack is too small for it", 0};
    }
    state_->stop_requested = false;
  }
  ++state_->depth;
  return {};
}

bool Instance::leave() {
  const MutexLock lock(state_->run_mutex);
  if (--state_->depth == 0 && state_->slot) state_->slot->allow_access();
  return state_->stop_requested;
}

Result<void> Instance::call_raw(std::size_t index, RawValue* values, std::size_t count) {
  SW_CHECK_OK(enter());
  Slot* const outer = exchange_running_slot(state_->slot);
  const wasmtime_func_t function = state_->functions[index].function;
  wasm_trap_t* raw_trap = nullptr;
  const ErrorPtr error(wasmtime_func_call_unchecked(
      state_->context, &function, reinterpret_cast<wasmtime_val_raw_t*>(values), count, &raw_trap));
  const TrapPtr trap(raw_trap);
  exchange_running_slot(outer);
  const bool stopped = leave();
  const bool damaged = is_damaged();
  if (!error && !trap && !damaged) return {};
  poisoned_ = true;
  if (damaged) return *damage();
  return describe_end(trap ? message_of(trap.get()) : message_of(error.get()), stopped, trap.get());
}

Error Instance::describe_end(std::string message, bool stopped, const void* raw_trap) {
  if (state_->host_error) {
    Error reason = *std::move(state_->host_error);
    state_->host_error.reset();
    return reason;
  }
  if (stopped) return Error{ErrorCode::kGuestStopped, "stopped by the host", 0};
  const auto* trap = static_cast<const wasm_trap_t*>(raw_trap);
  wasmtime_trap_code_t code = 0;
  const bool has_code = trap != nullptr && wasmtime_trap_code(trap, &code);
  if (has_code && code == WASMTIME_TRAP_CODE_STACK_OVERFLOW) {
    return Error{ErrorCode::kGuestStackOverflow, "the guest's call stack is exhausted", 0};
  }
  // Wasmtime appends a backtrace of the interpreter's own frames, then the cause on a line of its
  // own.
  if (const auto cause = message.rfind("wasm trap: "); cause != std::string::npos)
    message.erase(0, cause);
  return Error{ErrorCode::kGuestTrap, message.substr(0, message.find('\n')), 0};
}

void* Instance::trap_for(Result<void> result) {
  if (result.ok()) {
    const MutexLock lock(state_->run_mutex);
    if (!state_->stop_requested) return nullptr;
    result = Error{ErrorCode::kGuestStopped, "stopped by the host", 0};
  }
  state_->host_error = std::move(result).error();
  static constexpr std::string_view kText = "ended by a host function";
  return wasmtime_trap_new(kText.data(), kText.size());
}

Result<std::int32_t> Instance::global_i32(std::string_view name) {
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(state_->context, &state_->instance, name.data(), name.size(),
                                    &item) ||
      item.kind != WASMTIME_EXTERN_GLOBAL) {
    return Error{ErrorCode::kNotFound, fmt::format("the module exports no global '{}'", name), 0};
  }
  wasmtime_val_t value;
  wasmtime_global_get(state_->context, &item.of.global, &value);
  if (value.kind != WASMTIME_I32) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("global '{}' is not an i32", name), 0};
  }
  return value.of.i32;
}

void Instance::stop() { state_->end_call(); }

void Instance::State::end_run() {
  stop_requested = true;
  // The counter is the engine's: its other instances look up once and go on.
  if (pre->stop_means == StopMeans::kEpoch) wasmtime_engine_increment_epoch(pre->engine);
  else if (slot != nullptr) slot->block_access();
}

StopMeans Instance::stop_means() const { return state_->pre->stop_means; }

bool Instance::while_running(const std::function<void(MemoryView)>& action) {
  const MutexLock lock(state_->run_mutex);
  if (state_->depth == 0 || state_->stop_requested) return false;
  action(memory());
  return true;
}

}  // namespace sw::wasm
