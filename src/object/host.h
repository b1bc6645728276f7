// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where durable objects live: which of them are in memory, who holds them, and when their alarms go off.

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
  std::size_t resident_max = 1000;  ///< objects in memory; those used longest ago are dropped first
  /// An object not used for so long is dropped from memory.
  std::chrono::milliseconds idle_max = std::chrono::minutes(10);
  std::size_t alarm_threads = 2;
  std::size_t alarms_at_once = 64;
  /// Doubled with each failure.
  std::chrono::milliseconds alarm_retry_first = std::chrono::seconds(2);
  std::chrono::milliseconds alarm_retry_longest = std::chrono::hours(1);
  /// Told what an operator should know. From any thread.
  std::function<void(std::string_view)> on_notice = {};
};

/// A class of objects.
struct ObjectClass {
  storage::Schema schema;
  /// Makes the object. The storage outlives it.
  std::function<Result<std::unique_ptr<Object>>(storage::ObjectStorage&)> make;
};

/// Threads: any. `storage` and `clock` have to outlive it.
class ObjectHost {
 public:
  ObjectHost(storage::Storage& storage, Clock& clock, HostOptions options);
  /// Shuts down.
  ~ObjectHost();
  ObjectHost(const ObjectHost&) = delete;
  ObjectHost& operator=(const ObjectHost&) = delete;

  /// All classes are added before the first `get` and before `start_alarms`.
  void add_class(std::string class_name, ObjectClass object_class);

  /// Alarms go off from now on, also those that came due while nothing ran.
  void start_alarms();

  /// A lease of the object, which is opened if it is not in memory: it stays there until the lease is
  /// let go. An object whose storage was lost (another owner took it over, or a commit failed) is not
  /// leased any more; the next lease is of one that is made anew.
  /// Errors: kNotFound for an unknown class; kUnavailable when shutting down; those of opening it.
  Result<std::shared_ptr<Object>> get(const storage::ObjectName& name);

  /// The same for objects of a known type.
  template <class T>
  Result<std::shared_ptr<T>> get(const storage::ObjectName& name) {
    SW_TRY(auto object, get(name));
    return std::static_pointer_cast<T>(std::move(object));
  }

  /// Objects in memory.
  std::size_t resident() const;

  /// Gives no more leases, waits until those there are have been let go, and drops the objects, the
  /// youngest first. `on_notice` is told whom it waits for.
  void shut_down();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sw::object
