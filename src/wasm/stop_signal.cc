// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/stop_signal.h"

#include <signal.h>
#include <ucontext.h>

#include <mutex>
#include <utility>

#include "wasm/slot.h"

namespace sw::wasm {

namespace {

thread_local RunningGuest running_guest;

// Written once, before the handler is installed.
struct sigaction next_action;

std::uintptr_t program_counter(const void* context) {
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine->gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(machine->pc);
#else
#error "say where this architecture keeps its program counter"
#endif
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((next_action.sa_flags & SA_SIGINFO) != 0) {
    next_action.sa_sigaction(signal, info, context);
  } else if (next_action.sa_handler == SIG_DFL) {
    // Returning with the default disposition in place repeats the fault and ends the process as usual.
    ::sigaction(signal, &next_action, nullptr);
  } else if (next_action.sa_handler != SIG_IGN) {
    next_action.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const RunningGuest& guest = running_guest;
  if (guest.slot != nullptr && guest.slot->is_blocked() && guest.slot->contains(info->si_addr)) {
    const std::uintptr_t at = program_counter(context);
    if (at < guest.code_begin || at >= guest.code_end) {
      guest.slot->allow_access();
      return;
    }
  }
  pass_on(signal, info, context);
}

}  // namespace

RunningGuest exchange_running_guest(const RunningGuest& guest) { return std::exchange(running_guest, guest); }

void install_stop_signal_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::sigaction(SIGSEGV, nullptr, &next_action);
    struct sigaction action = {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, nullptr);
  });
}

}  // namespace sw::wasm
