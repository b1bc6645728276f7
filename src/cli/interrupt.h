// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace sw::cli {

/// While it lives, Ctrl-C (SIGINT) and SIGTERM do not end the process but request a stop. Signals
/// are taken by a thread of its own, so nothing happens in a signal handler. One at a time; make it
/// before other threads that must not take these signals.
///
/// What cannot be stopped must not keep the process for ever: if the scope lives on for `patience`
/// after a request, the process ends, with kStatusCancelled.
class InterruptScope {
 public:
  explicit InterruptScope(std::chrono::seconds patience = std::chrono::seconds{30});
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// The same without a signal, and without the patience.
  void request_stop() { source_.request_stop(); }
  /// Ends the scope. Returns whether it took a SIGTERM, after which the process is to end, not only
  /// what it does.
  bool end();

 private:
  std::stop_source source_;
  std::atomic<bool> terminated_ = false;
  std::thread waiter_;
};

/// Threads made while it lives, and those that they make, never take these signals: an
/// InterruptScope that is made later gets them all.
class SignalFreeThreads {
 public:
  SignalFreeThreads();
  ~SignalFreeThreads();
  SignalFreeThreads(const SignalFreeThreads&) = delete;
  SignalFreeThreads& operator=(const SignalFreeThreads&) = delete;

 private:
  sigset_t before_;
};

}  // namespace sw::cli
