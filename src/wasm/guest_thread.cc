// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/guest_thread.h"

#include <pthread.h>

#include <cstdint>

namespace sw::wasm {

namespace {

/// Lowest address of the calling thread's stack; asked once per thread, as the answer costs a file
/// read on the main thread.
std::uintptr_t stack_floor() {
  thread_local const std::uintptr_t floor = [] {
    pthread_attr_t attributes;
    void* address = nullptr;
    std::size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
      ::pthread_attr_getstack(&attributes, &address, &size);
      ::pthread_attr_destroy(&attributes);
    }
    return reinterpret_cast<std::uintptr_t>(address);
  }();
  return floor;
}

}  // namespace

std::size_t stack_bytes_left() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - stack_floor();
}

Result<void> run_on_guest_thread(const RuntimeOptions& options, const std::function<void()>& body) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  int failed =
      ::pthread_attr_setstacksize(&attributes, options.stack_bytes_max + 2 * kHostStackReserve);
  pthread_t thread = {};
  if (failed == 0) {
    failed = ::pthread_create(
        &thread, &attributes,
        [](void* argument) -> void* {
          (*static_cast<const std::function<void()>*>(argument))();
          return nullptr;
        },
        const_cast<std::function<void()>*>(&body));
  }
  ::pthread_attr_destroy(&attributes);
  if (failed != 0) return errno_error(failed, "cannot start a thread with a stack for guests");
  ::pthread_join(thread, nullptr);
  return {};
}

}  // namespace sw::wasm
