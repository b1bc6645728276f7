// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How whoever asked for a command ends it early: by Ctrl-C (SIGINT) and SIGTERM where the command
// is this process's, by a message where another process asked for it.

#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>

namespace sw::cli {

/// While it lives, an interruption does not end the command but requests a stop. One at a time.
class InterruptScope {
 public:
  virtual ~InterruptScope() = default;
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// The same without an interruption.
  void request_stop() { source_.request_stop(); }
  /// Ends the scope. Returns whether not only what is done is to end, but the command.
  virtual bool end() = 0;

 protected:
  InterruptScope() = default;

 private:
  std::stop_source source_;
};

class Interrupts {
 public:
  virtual ~Interrupts() = default;
  virtual std::unique_ptr<InterruptScope> take() = 0;
};

/// While it lives, the signals do not end the process. They are taken by a thread of its own, so
/// nothing happens in a signal handler. Make it before other threads that must not take them.
/// `end` says whether it took a SIGTERM.
///
/// What cannot be stopped must not keep the process for ever: if the scope lives on for `patience`
/// after a request, the process ends, with kStatusCancelled.
class SignalScope final : public InterruptScope {
 public:
  explicit SignalScope(std::chrono::seconds patience = std::chrono::seconds{30});
  ~SignalScope() override;
  bool end() override;

 private:
  std::atomic<bool> terminated_ = false;
  std::thread waiter_;
};

/// Those of this process.
class Signals final : public Interrupts {
 public:
  std::unique_ptr<InterruptScope> take() override { return std::make_unique<SignalScope>(); }
};

/// Threads made while it lives, and those that they make, never take these signals: a SignalScope
/// that is made later gets them all.
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
