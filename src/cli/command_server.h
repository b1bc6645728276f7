// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes commands of other processes over the socket of a data folder, and runs them here.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/thread_safety.h"
#include "cli/owner_socket.h"
#include "cli/served_command.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

struct CommandServerOptions {
  /// A program that ends sooner does not begin what it could not finish.
  std::chrono::milliseconds begins_after{300};
  /// For a command to come in once somebody has connected.
  std::chrono::milliseconds request_patience{10'000};
  /// Connections; more wait.
  std::size_t connections_max = 128;
};

/// One thread speaks with all that connect, and never waits for one of them; each command has a
/// thread of its own.
/// Threads: one.
class CommandServer {
 public:
  static Result<std::unique_ptr<CommandServer>> start(OwnerSocket socket, Perform perform,
                                                      const CommandServerOptions& options = {});
  /// Waits for all that is under way.
  ~CommandServer();
  CommandServer(const CommandServer&) = delete;
  CommandServer& operator=(const CommandServer&) = delete;

  /// From now on nothing is begun; who waits is told to try elsewhere. Returns the number of
  /// commands under way.
  std::size_t close() SW_EXCLUDES(mutex_);
  /// Waits until the commands under way have ended, but not after `patience` or a stop. Returns
  /// whether they have.
  bool wait(std::chrono::milliseconds patience, const std::stop_token& stop) SW_EXCLUDES(mutex_);
  /// Interrupts what is under way, because this process is about to end.
  void interrupt_all() SW_EXCLUDES(mutex_) { change(Phase::kInterrupting); }
  /// And no longer waits for whoever reads what they print.
  void abandon_all() SW_EXCLUDES(mutex_) { change(Phase::kAbandoning); }

 private:
  struct Connection;
  using Clock = std::chrono::steady_clock;
  enum class Phase : std::uint8_t { kOpen, kClosing, kInterrupting, kAbandoning };

  CommandServer(OwnerSocket socket, Perform perform, const CommandServerOptions& options,
                UniqueFd wake);
  void serve();
  void turn();
  Phase phase() SW_EXCLUDES(mutex_);
  void change(Phase phase) SW_EXCLUDES(mutex_);
  void count() SW_EXCLUDES(mutex_);
  bool accepts() const;
  int patience_ms() const;
  void accept_one();
  void hear(Connection& connection);
  void read_request(Connection& connection);
  void begin(Connection& connection);
  void wake() const;

  OwnerSocket socket_;
  const Perform perform_;
  const CommandServerOptions options_;
  const UniqueFd wake_;  // readable when the thread is to look around
  const std::function<void()> on_done_ = [this] { wake(); };
  Clock::time_point accepts_from_ = Clock::now() + options_.begins_after;  // of the thread
  std::list<Connection> connections_;                                      // the same
  Phase seen_ = Phase::kOpen;                                              // the same

  Mutex mutex_;
  CondVar changed_;
  Phase phase_ SW_GUARDED_BY(mutex_) = Phase::kOpen;
  Phase reached_ SW_GUARDED_BY(mutex_) = Phase::kOpen;  // by the thread
  std::size_t under_way_ SW_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace sw::cli
