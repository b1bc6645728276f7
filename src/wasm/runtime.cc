// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/runtime.h"

#include <fmt/format.h>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/sha256.h"
#include "wasm/runtime_state.h"
#include "wasm/slot.h"
#include "wasm/stop_signal.h"

namespace sw::wasm {

namespace {

// The whole 32-bit address space, so that compiled code needs no bounds checks.
constexpr std::uint64_t kReservationBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kGuardBytes = std::uint64_t{32} << 20;

constexpr wasmtime_memory_creator_t kMemoryCreator = {
    .env = nullptr,
    .new_memory = &new_linear_memory,
    .finalizer = nullptr,
};

/// The line of features the kernel reports; code compiled for other features must not be reused.
std::string cpu_features() {
  const auto text = read_text_file("/proc/cpuinfo");
  if (!text.ok()) return "unknown";
  for (const std::string_view key : {"\nflags", "\nFeatures"}) {
    const auto begin = text->find(key);
    if (begin != std::string::npos) return text->substr(begin, text->find('\n', begin + 1) - begin);
  }
  return "unknown";
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : options_(options), state_(std::make_unique<State>()) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  // Whatever this runtime uses: Wasmtime's handler comes with the first engine, and must find
  // ours.
  install_stop_signal_handler();
  wasm_config_t* config = wasm_config_new();
  wasmtime_config_wasm_exceptions_set(config, true);
  wasmtime_config_wasm_gc_set(config, true);  // exceptions are GC objects
  wasmtime_config_memory_reservation_set(config, kReservationBytes);
  wasmtime_config_memory_guard_size_set(config, kGuardBytes);
  wasmtime_config_memory_may_move_set(config, false);
  // Slots map images themselves; Wasmtime aborts if it tries to do so in a memory of ours.
  wasmtime_config_memory_init_cow_set(config, false);
  // The asynchronous stack is never made (guests run on threads of ours), but it bounds the other.
  wasmtime_config_async_stack_size_set(config, options.stack_bytes_max);
  wasmtime_config_max_wasm_stack_set(config, options.stack_bytes_max);
  wasmtime_config_cranelift_opt_level_set(config, WASMTIME_OPT_LEVEL_SPEED);
  wasmtime_config_epoch_interruption_set(config, options.stop_means == StopMeans::kEpoch);
  wasmtime_config_host_memory_creator_set(config,
                                          const_cast<wasmtime_memory_creator_t*>(&kMemoryCreator));
  std::unique_ptr<Runtime> runtime(new Runtime(options));
  runtime->state_->engine.reset(wasm_engine_new_with_config(config));
  if (!runtime->state_->engine)
    return Error{ErrorCode::kUnavailable, "Wasmtime refused its configuration", 0};
  if (options.late_pages) {
    if (auto faults = FaultService::create(); faults.ok())
      runtime->state_->faults = *std::move(faults);
  }
  return runtime;
}

std::string Runtime::fingerprint() const {
  Sha256 hash;
  hash.field("wasmtime " WASMTIME_VERSION)
      .field(fmt::format("exceptions gc speed reservation={} guard={} stack={}", kReservationBytes,
                         kGuardBytes, options_.stack_bytes_max))
      .field(cpu_features());
  if (options_.stop_means == StopMeans::kEpoch) hash.field("epoch checks");
  return hash.hex();
}

}  // namespace sw::wasm
