// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One timer for the alarms of all objects. It is set to the earliest alarm in the storage's index;
// when it fires, the objects whose time has come get a message.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/thread_safety.h"
#include "object/clock.h"
#include "storage/storage.h"

namespace sw::object {

/// Threads: any.
class Alarms {
 public:
  struct Hooks {
    /// Runs something on a thread that may wait for the storage.
    std::function<void(std::function<void()>)> run;
    /// Sends the object its alarm; `done` is called when that has ended, from any thread.
    std::function<void(storage::DueAlarm, std::function<void(Result<void>)> done)> deliver;
    std::function<void(std::string_view)> notice;
    /// Whether an object is one of this host's. Hosts that share a storage leave each other's
    /// alarms alone.
    std::function<bool(const storage::ObjectName&)> mine;
  };
  struct Limits {
    std::size_t at_once;
    std::chrono::milliseconds retry_first;
    std::chrono::milliseconds retry_longest;
  };

  Alarms(storage::Storage& storage, Clock& clock, Limits limits, Hooks hooks);

  void start();
  /// An object has set its alarm to `time`.
  void consider(Time time);
  /// No more alarms are delivered once this returns. What was handed to `Hooks::run` has to have
  /// ended before the destructor runs.
  void stop();

 private:
  struct Retry {
    std::size_t failures = 0;
    Time not_before;
  };

  void look() SW_EXCLUDES(mutex_);
  void look_once() SW_EXCLUDES(mutex_);
  /// This host's alarms, earliest first; at least `count_max` if there are as many.
  Result<std::vector<storage::DueAlarm>> read_alarms(std::size_t count_max);
  void done(const storage::ObjectName& name, const Result<void>& outcome) SW_EXCLUDES(mutex_);
  void set_timer(std::optional<Time> time) SW_REQUIRES(mutex_);

  storage::Storage& storage_;
  Clock& clock_;
  const Limits limits_;
  const Hooks hooks_;

  Mutex mutex_;
  bool stopped_ SW_GUARDED_BY(mutex_) = true;
  bool looking_ SW_GUARDED_BY(mutex_) = false;
  bool look_again_ SW_GUARDED_BY(mutex_) = false;
  std::set<storage::ObjectName> under_way_ SW_GUARDED_BY(mutex_);
  std::map<storage::ObjectName, Retry> retries_ SW_GUARDED_BY(mutex_);
  std::optional<Time> timer_time_ SW_GUARDED_BY(mutex_);
  std::unique_ptr<Timer> timer_ SW_GUARDED_BY(mutex_);
};

}  // namespace sw::object
