// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/watched_storage.h"

#include <optional>

namespace sw::object {

namespace {

/// Remembers the alarm that was set.
class WatchedTransaction final : public storage::Transaction {
 public:
  explicit WatchedTransaction(storage::Transaction& inner) : inner_(inner) {}

  Result<std::optional<Bytes>> get(storage::TableId table, std::string_view key) override {
    return inner_.get(table, key);
  }
  Result<void> scan(const storage::Range& range, storage::Order order,
                    const storage::RowCallback& each) override {
    return inner_.scan(range, order, each);
  }
  Result<void> scan_keys(const storage::Range& range, storage::Order order,
                         const storage::KeyCallback& each) override {
    return inner_.scan_keys(range, order, each);
  }
  Result<std::optional<storage::Time>> alarm() override { return inner_.alarm(); }
  Result<void> put(storage::TableId table, std::string_view key, BytesView value) override {
    return inner_.put(table, key, value);
  }
  Result<void> erase(storage::TableId table, std::string_view key) override {
    return inner_.erase(table, key);
  }
  Result<void> erase_range(const storage::Range& range) override {
    return inner_.erase_range(range);
  }
  Result<void> set_alarm(std::optional<storage::Time> time) override {
    alarm_set_ = time;
    return inner_.set_alarm(time);
  }

  std::optional<storage::Time> alarm_set() const { return alarm_set_; }

 private:
  storage::Transaction& inner_;
  std::optional<storage::Time> alarm_set_;
};

}  // namespace

Result<void> WatchedStorage::read(const std::function<Result<void>(storage::Reader&)>& body) {
  const MutexLock lock(mutex_);
  auto outcome = inner_->read(body);
  if (!outcome.ok() && outcome.error().code == ErrorCode::kConflict) lost_ = true;
  return outcome;
}

Result<void> WatchedStorage::transact(
    const std::function<Result<void>(storage::Transaction&)>& body) {
  bool body_failed = false;
  std::optional<storage::Time> alarm;
  MutexLock lock(mutex_);
  auto outcome = inner_->transact([&](storage::Transaction& transaction) {
    WatchedTransaction watched(transaction);
    auto done = body(watched);
    body_failed = !done.ok();
    alarm = watched.alarm_set();
    return done;
  });
  // An error of the body undoes its work and loses nothing.
  if (!outcome.ok() && !body_failed) lost_ = true;
  lock.unlock();
  if (outcome.ok() && alarm) on_alarm_set_(*alarm);
  return outcome;
}

Result<void> WatchedStorage::destroy() {
  const MutexLock lock(mutex_);
  auto outcome = inner_->destroy();
  if (!outcome.ok()) lost_ = true;
  return outcome;
}

}  // namespace sw::object
