// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/stop_signal.h"

#include <signal.h>

#include <mutex>
#include <utility>

#include "wasm/slot.h"

namespace sw::wasm {

namespace {

thread_local Slot* running_slot = nullptr;

// Written once, before the handler is installed.
struct sigaction next_action;

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((next_action.sa_flags & SA_SIGINFO) != 0) {
    next_action.sa_sigaction(signal, info, context);
  } else if (next_action.sa_handler == SIG_DFL) {
    // Returning with the default disposition in place repeats the fault and ends the process as
    // usual.
    ::sigaction(signal, &next_action, nullptr);
  } else if (next_action.sa_handler != SIG_IGN) {
    next_action.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Slot* slot = running_slot;
  if (slot != nullptr && slot->open_access_at(info->si_addr)) return;
  pass_on(signal, info, context);
}

}  // namespace

Slot* exchange_running_slot(Slot* slot) { return std::exchange(running_slot, slot); }

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
