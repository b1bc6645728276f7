// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A command that runs here and was asked for by another process.

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/thread_safety.h"
#include "cli/asked_message.h"
#include "cli/caller.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

/// Runs a command to its exit status. Whatever it prints goes to the caller's streams.
using Perform = std::function<int(const Caller& caller, const std::vector<std::string>& arguments)>;

/// Interruptions that come from another thread.
class ToldInterrupts final : public Interrupts {
 public:
  /// `on_end` is called, once, when the command is to end as a whole.
  explicit ToldInterrupts(std::function<void()> on_end) : on_end_(std::move(on_end)) {}
  std::unique_ptr<InterruptScope> take() override SW_EXCLUDES(mutex_);

  /// As Ctrl-C: stops what is done in a scope; without one, it ends the command. True if it did
  /// that.
  bool interrupt() SW_EXCLUDES(mutex_);
  /// Nobody waits for the command any more.
  void end() SW_EXCLUDES(mutex_);

 private:
  class Scope;
  /// Returns whether the command had not been told yet.
  bool leave(Scope* scope) SW_EXCLUDES(mutex_);

  const std::function<void()> on_end_;
  Mutex mutex_;
  Scope* current_ SW_GUARDED_BY(mutex_) = nullptr;
  bool ended_ SW_GUARDED_BY(mutex_) = false;
};

/// Threads: those of one other, but for `is_done`.
class ServedCommand {
 public:
  struct Asked {
    AskedCommand command;
    AskedStreams streams;
    pid_t process = 0;
    int socket = -1;  ///< for replies; outlives this
  };

  /// Begins it, on a thread of its own. `perform` and `on_done` outlive this; `on_done` is called
  /// on that thread when the command has ended.
  static Result<std::unique_ptr<ServedCommand>> start(Asked asked, const Perform& perform,
                                                      const std::function<void()>& on_done);
  /// Waits for its end.
  ~ServedCommand();
  ServedCommand(const ServedCommand&) = delete;
  ServedCommand& operator=(const ServedCommand&) = delete;

  bool is_done() const { return done_; }
  /// As Ctrl-C where it was asked for.
  void interrupt();
  /// Nobody waits for it any more: it is not to print, nor to wait for a reader.
  void abandon();
  /// This process is about to end: interrupts it, and says so.
  void interrupt_for_end();

 private:
  ServedCommand(Asked asked, UniqueFd gone);
  void perform(const Perform& perform, const std::function<void()>& on_done);
  void reply(Reply reply);

  const Asked asked_;
  const UniqueFd gone_;
  ToldInterrupts interrupts_;
  std::atomic<bool> owner_ends_ = false;
  std::atomic<bool> replied_ = false;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace sw::cli
