// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/alarms.h"

#include <algorithm>
#include <utility>

namespace sw::object {

namespace {

// How long until the index is read again after the storage could not do it.
constexpr std::chrono::milliseconds kStorageRetry{5'000};

}  // namespace

Alarms::Alarms(storage::Storage& storage, Clock& clock, Limits limits, Hooks hooks)
    : storage_(storage), clock_(clock), limits_(limits), hooks_(std::move(hooks)) {}

void Alarms::start() {
  {
    const MutexLock lock(mutex_);
    stopped_ = false;
    timer_ = clock_.make_timer([this] { look(); });
  }
  look();
}

void Alarms::stop() {
  std::unique_ptr<Timer> timer;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    timer = std::move(timer_);
  }
  // Its destructor waits for its function, which takes the mutex.
}

void Alarms::consider(Time time) {
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    if (looking_) {
      look_again_ = true;  // it may have read the index before this alarm was in it
      return;
    }
    if (timer_time_ && *timer_time_ <= time) return;
    if (time > clock_.now()) return set_timer(time);
  }
  look();
}

void Alarms::set_timer(std::optional<Time> time) {
  timer_time_ = time;
  if (timer_) timer_->set(time);
}

void Alarms::look() {
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    if (std::exchange(looking_, true)) {
      look_again_ = true;
      return;
    }
  }
  hooks_.run([this] { look_once(); });
}

Result<std::vector<storage::DueAlarm>> Alarms::read_alarms(std::size_t count_max) {
  for (std::size_t count = count_max;; count *= 2) {
    SW_TRY(auto alarms, storage_.alarms_until(Time::max(), count));
    const bool all = alarms.size() < count;
    std::erase_if(alarms,
                  [this](const storage::DueAlarm& alarm) { return !hooks_.mine(alarm.name); });
    if (all || alarms.size() >= count_max) return alarms;
  }
}

void Alarms::look_once() {
  std::size_t known = 0;
  {
    const MutexLock lock(mutex_);
    look_again_ = false;
    known = under_way_.size() + retries_.size();
  }
  const Time now = clock_.now();
  // More than those that are passed over below, so that the earliest of the others is among them.
  const auto alarms = read_alarms(known + limits_.at_once + 1);
  std::vector<storage::DueAlarm> due;
  bool again = false;
  {
    const MutexLock lock(mutex_);
    std::optional<Time> next;
    if (!alarms.ok()) next = now + kStorageRetry;
    for (const storage::DueAlarm& alarm :
         alarms.ok() ? *alarms : std::vector<storage::DueAlarm>()) {
      if (under_way_.contains(alarm.name)) continue;
      const auto retry = retries_.find(alarm.name);
      const Time time =
          retry != retries_.end() ? std::max(alarm.time, retry->second.not_before) : alarm.time;
      if (time > now) {
        next = next ? std::min(*next, time) : time;
      } else if (under_way_.size() < limits_.at_once) {
        under_way_.insert(alarm.name);
        due.push_back(alarm);
      }  // the others wait until one under way has ended
    }
    looking_ = false;
    again = std::exchange(look_again_, false);
    if (stopped_) {
      due.clear();
    } else {
      set_timer(next);
    }
  }
  if (!alarms.ok()) hooks_.notice("cannot read the alarms: " + alarms.error().message);
  for (storage::DueAlarm& alarm : due) {
    const storage::ObjectName name = alarm.name;
    hooks_.deliver(std::move(alarm), [this, name](Result<void> outcome) { done(name, outcome); });
  }
  if (again) look();
}

void Alarms::done(const storage::ObjectName& name, const Result<void>& outcome) {
  bool look_for_more = false;
  {
    const MutexLock lock(mutex_);
    under_way_.erase(name);
    if (outcome.ok()) {
      retries_.erase(name);
    } else {
      Retry& retry = retries_[name];
      auto wait = limits_.retry_first;
      for (std::size_t i = 0; i < retry.failures && wait < limits_.retry_longest; ++i) wait *= 2;
      ++retry.failures;
      retry.not_before = clock_.now() + std::min(wait, limits_.retry_longest);
    }
    // Not after each one: a look reads all those under way, too.
    look_for_more = under_way_.size() <= limits_.at_once / 2;
  }
  if (!outcome.ok())
    hooks_.notice("alarm of " + storage::to_string(name) + ": " + outcome.error().message);
  if (look_for_more) look();
}

}  // namespace sw::object
