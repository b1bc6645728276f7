// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wasmtime's C API as our .cc files use it: owners for its handles and its errors as ours. Private
// to this room.

#include <wasmtime.h>

#include <memory>
#include <string>

#include "sandbox_workers/base/result.h"

namespace sw::wasm {

template <auto kDelete>
struct Deleter {
  template <class T>
  void operator()(T* handle) const {
    kDelete(handle);
  }
};

using EnginePtr = std::unique_ptr<wasm_engine_t, Deleter<&wasm_engine_delete>>;
using ErrorPtr = std::unique_ptr<wasmtime_error_t, Deleter<&wasmtime_error_delete>>;
using InstancePrePtr =
    std::unique_ptr<wasmtime_instance_pre_t, Deleter<&wasmtime_instance_pre_delete>>;
using LinkerPtr = std::unique_ptr<wasmtime_linker_t, Deleter<&wasmtime_linker_delete>>;
using ModulePtr = std::unique_ptr<wasmtime_module_t, Deleter<&wasmtime_module_delete>>;
using StorePtr = std::unique_ptr<wasmtime_store_t, Deleter<&wasmtime_store_delete>>;
using TrapPtr = std::unique_ptr<wasm_trap_t, Deleter<&wasm_trap_delete>>;

inline std::string take_text(wasm_byte_vec_t& bytes) {
  std::string text(bytes.data, bytes.size);
  wasm_byte_vec_delete(&bytes);
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  return text;
}

inline std::string message_of(const wasmtime_error_t* error) {
  wasm_byte_vec_t bytes;
  wasmtime_error_message(error, &bytes);
  return take_text(bytes);
}

inline std::string message_of(const wasm_trap_t* trap) {
  wasm_byte_vec_t bytes;
  wasm_trap_message(trap, &bytes);
  return take_text(bytes);
}

/// Takes the error; null is success.
inline Result<void> check(wasmtime_error_t* raw, ErrorCode code) {
  const ErrorPtr error(raw);
  if (!error) return {};
  return Error{code, message_of(error.get()), 0};
}

}  // namespace sw::wasm
