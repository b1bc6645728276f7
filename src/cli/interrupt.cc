// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <pthread.h>
#include <signal.h>

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

}  // namespace

InterruptScope::InterruptScope() {
  const sigset_t set = taken_signals();
  // The new thread inherits this mask, so the signal that ends it never meets it unprepared, however short the
  // scope.
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::thread([this, set] {
    for (int signal = 0; ::sigwait(&set, &signal) == 0 && signal != kEndSignal;) source_.request_stop();
  });
}

InterruptScope::~InterruptScope() {
  ::pthread_kill(waiter_.native_handle(), kEndSignal);
  waiter_.join();
  const sigset_t set = taken_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

SignalFreeThreads::SignalFreeThreads() : before_() {
  const sigset_t set = taken_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalFreeThreads::~SignalFreeThreads() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace sw::cli
