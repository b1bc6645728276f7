// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A host of objects that count, over a storage in memory and a clock that the test sets.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_safety.h"
#include "object/host.h"
#include "storage/memory/memory_storage.h"

namespace sw::object {

inline Time at(std::int64_t ms) { return Time(std::chrono::milliseconds(ms)); }

/// Notes what happens, and lets a test wait until something has.
class Log {
 public:
  void add(const std::string& line) {
    {
      const MutexLock lock(mutex_);
      lines_.push_back(line);
    }
    changed_.notify_all();
  }
  std::vector<std::string> lines() const {
    const MutexLock lock(mutex_);
    return lines_;
  }
  std::size_t count(const std::string& line) const {
    const auto all = lines();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), line));
  }
  void wait_for(std::size_t count) const {
    MutexLock lock(mutex_);
    while (lines_.size() < count) changed_.wait(lock);
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<std::string> lines_ SW_GUARDED_BY(mutex_);
};

/// A door that blocks whoever comes to it until the test opens it.
class Door {
 public:
  void open() { promise_.set_value(); }
  void pass() { future_.wait(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

inline Result<std::int64_t> number(storage::Reader& reader) {
  SW_TRY(const auto value, reader.get(1, "n"));
  return value ? std::stoll(std::string(as_text(*value))) : 0;
}

inline Result<void> store(storage::Transaction& transaction, std::int64_t n) {
  return transaction.put(1, "n", as_bytes(std::to_string(n)));
}

/// Counts, and keeps its count in the storage.
class Counter final : public Object {
 public:
  static Result<std::unique_ptr<Object>> open(storage::ObjectStorage& storage, Log& log) {
    auto counter = std::make_unique<Counter>(storage, log);
    std::int64_t count = 0;
    SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
      SW_TRY(count, number(reader));
      return {};
    }));
    const MutexLock lock(counter->mutex_);
    counter->count_ = count;
    return std::unique_ptr<Object>(std::move(counter));
  }

  Counter(storage::ObjectStorage& storage, Log& log) : storage_(storage), log_(log) {
    log_.add("start " + storage_.name().id);
  }
  ~Counter() override { log_.add("drop " + storage_.name().id); }

  Result<std::int64_t> add(std::int64_t by) {
    const MutexLock lock(mutex_);
    const std::int64_t wanted = count_ + by;
    SW_CHECK_OK(storage_.transact([&](storage::Transaction& t) { return store(t, wanted); }));
    count_ = wanted;
    return count_;
  }

  std::int64_t get() const {
    const MutexLock lock(mutex_);
    return count_;
  }

  Result<void> fail_in_transaction() {
    return storage_.transact([](storage::Transaction& transaction) -> Result<void> {
      SW_CHECK_OK(store(transaction, 999));
      return Error{ErrorCode::kInvalidArgument, "thought better of it", 0};
    });
  }

  Result<void> end() {
    const MutexLock lock(mutex_);
    count_ = 0;
    return storage_.destroy();
  }

  Result<void> set_alarm(std::optional<Time> time) {
    return storage_.transact([time](storage::Transaction& t) { return t.set_alarm(time); });
  }

  Result<void> on_alarm(Time scheduled) override {
    log_.add("alarm " + storage_.name().id + "@" +
             std::to_string(scheduled.time_since_epoch().count()));
    if (door != nullptr) door->pass();
    if (alarm_failures > 0) {
      --alarm_failures;
      return Error{ErrorCode::kUnavailable, "not now", 0};
    }
    if (next_alarm) return set_alarm(std::exchange(next_alarm, std::nullopt));
    return {};
  }

  int alarm_failures = 0;
  std::optional<Time> next_alarm;
  Door* door = nullptr;  ///< where an alarm waits

 private:
  storage::ObjectStorage& storage_;
  Log& log_;
  mutable Mutex mutex_;
  std::int64_t count_ SW_GUARDED_BY(mutex_) = 0;
};

class HostTest : public testing::Test {
 protected:
  HostTest() { restart({}); }

  void restart(HostOptions options) {
    host_.reset();
    storage_ = storage::open_memory_storage(disk_);
    options.on_notice = [this](std::string_view notice) { notices_.add(std::string(notice)); };
    host_ = std::make_unique<ObjectHost>(*storage_, clock_, std::move(options));
    host_->add_class(
        "counter", {{}, [this](storage::ObjectStorage& storage) -> Result<std::unique_ptr<Object>> {
                      if (while_opening) SW_CHECK_OK(while_opening(storage.name().id));
                      return Counter::open(storage, log_);
                    }});
  }

  std::shared_ptr<Counter> counter(const std::string& id) {
    return host_->get<Counter>({"counter", id}).value();
  }
  Result<std::int64_t> add(const std::string& id, std::int64_t by) { return counter(id)->add(by); }
  std::int64_t get(const std::string& id) { return counter(id)->get(); }
  void set_alarm(const std::string& id, std::optional<Time> time) {
    ASSERT_TRUE(counter(id)->set_alarm(time).ok());
  }
  void wait_for_timer(Time time) {
    while (clock_.next() != time) std::this_thread::yield();
  }
  void wait_until_no_alarms() {
    while (!(*storage_->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
  }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  ManualClock clock_{at(1'000'000)};
  Log log_;
  Log notices_;
  std::function<Result<void>(const std::string& id)> while_opening;
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<ObjectHost> host_;  // last, since its threads use the others until it is gone
};

}  // namespace sw::object
