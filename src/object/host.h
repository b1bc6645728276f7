// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where durable objects live: their mailboxes, threads, alarms, and when they are dropped from
// memory.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "object/clock.h"
#include "object/object.h"
#include "storage/storage.h"

namespace sw::object {

struct HostOptions {
  std::size_t threads = 2;           ///< that objects run on
  std::size_t storage_threads = 8;   ///< that wait for the storage
  std::size_t blocking_threads = 8;  ///< for `run_blocking`
  /// Objects in memory; those used longest ago are dropped first
  std::size_t resident_max = 1000;
  /// An object not used for so long is dropped
  std::chrono::milliseconds idle_max = std::chrono::minutes(10);
  /// Messages waiting for one object
  std::size_t mailbox_max = 1000;
  std::size_t alarms_at_once = 64;
  /// Doubled with each failure
  std::chrono::milliseconds alarm_retry_first = std::chrono::seconds(2);
  std::chrono::milliseconds alarm_retry_longest = std::chrono::hours(1);
  /// At shutdown; then messages are cancelled
  std::chrono::milliseconds drain_max = std::chrono::seconds(10);
  /// Told what an operator should know. From any thread.
  std::function<void(std::string_view)> on_notice = {};
};

/// A class of objects.
struct ObjectClass {
  storage::Schema schema;
  /// Makes the object; its state is read in `Object::start`. The context outlives it.
  std::function<std::unique_ptr<Object>(ObjectContext&)> make;
};

/// Started by a message; the task must not use anything that its starter's stack holds.
using Message = std::function<Task<Result<void>>(Object&)>;
/// Called once, when the reply may leave, on one of the host's threads, or within `send` if the
/// message is refused. It must not wait.
using Reply = std::function<void(Result<void>)>;

/// A message under way. Letting go of it changes nothing.
class Call {
 public:
  virtual ~Call() = default;
  /// Takes the message out of the mailbox, or tells its task (`ObjectContext::cancelled`). The
  /// reply comes all the same.
  virtual void cancel() = 0;
};

/// Threads: any. `storage` and `clock` have to outlive it.
class ObjectHost {
 public:
  ObjectHost(storage::Storage& storage, Clock& clock, HostOptions options);
  /// Shuts down.
  ~ObjectHost();
  ObjectHost(const ObjectHost&) = delete;
  ObjectHost& operator=(const ObjectHost&) = delete;

  /// All classes are added before the first message and before `start_alarms`.
  void add_class(std::string class_name, ObjectClass object_class);

  /// Alarms go off from now on, also those that came due while nothing ran.
  void start_alarms();

  /// Puts a message into the object's mailbox. Messages of one object run one at a time in the
  /// order of these calls, and a failed one does not stop the next. Errors, in the reply: those of
  /// the message; kNotFound for an unknown class; kLimitExceeded for a full mailbox; kUnavailable
  /// when cancelled in the mailbox or shutting down.
  std::shared_ptr<Call> send(const storage::ObjectName& name, Message message, Reply reply);

  /// The same, and waits for the reply. Not from a thread of the host.
  Result<void> ask(const storage::ObjectName& name, Message message);

  /// Objects in memory.
  std::size_t resident() const;

  /// Takes no more messages, lets those in the mailboxes finish (at most `drain_max`), cancels what
  /// is left, and drops the objects in reverse order of their making. Cancelled work has to end by
  /// itself: a thread cannot be taken from it. While one does not, `on_notice` is told whose it is.
  /// Not from a thread of the host.
  void shut_down();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sw::object
