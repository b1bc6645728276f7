// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox_workers/wasm/instance.h"
#include "wasm/capi.h"
#include "wasm/late_pages.h"
#include "wasm/slot.h"

namespace sw::wasm {

struct InstancePre::State {
  wasm_engine_t* engine = nullptr;  // outlives everything made from it
  InstancePrePtr pre;
  Module module;
  StateFacts facts;
  std::shared_ptr<const Image> image;  // shared with the slots that map it
  std::shared_ptr<SlotPool> slots;     // shared with the memories that come back to it
  std::size_t memory_bytes_min = 0;
  std::size_t stack_bytes_max = 0;
  StopMeans stop_means = StopMeans::kFault;
  std::shared_ptr<FaultService> faults;  // shared with the runtime; may be null
};

struct Instance::State final : LatePages::Damage {
  // shared by all instances: code and slots outlive each of them
  std::shared_ptr<InstancePre::State> pre;
  HostState* host = nullptr;
  StorePtr store;
  wasmtime_context_t* context = nullptr;
  wasmtime_instance_t instance = {};
  Slot* slot = nullptr;  // owned by the store; null for a module without memory

  struct Entry {
    Signature signature;
    wasmtime_func_t function;
  };
  std::vector<Entry> functions;
  std::unordered_map<std::string, std::size_t> function_indices;

  struct Global {
    wasmtime_global_t global;
    wasmtime_val_t initial;
  };
  std::vector<Global> globals;

  std::unique_ptr<DirtyPageScanner> scanner;  // from the first use on
  DirtyPageScanner& dirty_scanner();
  std::vector<ByteRange> scratch;

  std::optional<Error> host_error;  // why a host function ended the run; Wasmtime only sees a trap

  Mutex run_mutex;                         // keeps a call from ending while it is held
  int depth SW_GUARDED_BY(run_mutex) = 0;  // calls in progress, nested through host functions
  bool stop_requested SW_GUARDED_BY(run_mutex) = false;
  /// Makes the guest trap.
  void end_run() SW_REQUIRES(run_mutex);

  mutable Mutex damage_mutex;
  /// Why a page of the memory could not be had.
  std::optional<Error> damage SW_GUARDED_BY(damage_mutex);
  std::atomic<bool> is_damaged = false;  // to look at without the mutex
  std::function<void()> on_damage;       // set before there can be any
  void note(const Error& error) override;
  /// Does nothing when no call is in progress.
  void end_call() override;
};

}  // namespace sw::wasm
