// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/standard_streams.h"
#include "cli/statuses.h"

namespace sw::cli {

namespace {

// Tells the waiting thread to end; it has no meaning to anyone else.
constexpr int kEndSignal = SIGUSR2;

sigset_t taken_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, kEndSignal);
  return set;
}

[[noreturn]] void end_process(std::chrono::seconds patience) {
  tell("sandbox-workers: could not stop the run within {} s; exiting\n", patience.count());
  std::fflush(nullptr);
  ::_exit(kStatusCancelled);
}

}  // namespace

SignalScope::SignalScope(std::chrono::seconds patience) {
  const sigset_t set = taken_signals();
  // The new thread inherits this mask, so the signal that ends it never meets it unprepared,
  // however short the scope.
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::thread([this, set, patience] {
    int signal = 0;
    if (::sigwait(&set, &signal) != 0 || signal == kEndSignal) return;
    terminated_ = signal == SIGTERM;
    request_stop();
    const auto end = std::chrono::steady_clock::now() + patience;
    while (true) {
      const auto left =
          std::chrono::ceil<std::chrono::seconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) end_process(patience);
      const timespec wait{.tv_sec = left.count(), .tv_nsec = 0};
      if (::sigtimedwait(&set, nullptr, &wait) == kEndSignal) return;
    }
  });
}

SignalScope::~SignalScope() { SignalScope::end(); }

bool SignalScope::end() {
  if (!waiter_.joinable()) return terminated_;
  ::pthread_kill(waiter_.native_handle(), kEndSignal);
  waiter_.join();
  const sigset_t set = taken_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return terminated_;
}

SignalFreeThreads::SignalFreeThreads() : before_() {
  const sigset_t set = taken_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalFreeThreads::~SignalFreeThreads() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace sw::cli
