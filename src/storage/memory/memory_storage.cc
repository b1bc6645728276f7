// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/memory/memory_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/thread_safety.h"

namespace sw::storage {

namespace {

using Rows = std::map<std::pair<TableId, std::string>, std::shared_ptr<const Bytes>>;

struct Content {
  bool exists = false;
  std::size_t schema = 0;
  std::optional<Time> alarm;
  // values are shared between a transaction's copy and the original; nobody changes them
  Rows rows;
};

struct Entry {
  Mutex use;                                        // held through every transaction of the object
  std::uint64_t generation SW_GUARDED_BY(use) = 0;  // the owner's
  Content content;  // changed under the disk's mutex and `use`, read under either
};

}  // namespace

struct MemoryDisk::State {
  explicit State(Bodies how_often) : bodies(how_often) {}

  const Bodies bodies;
  Mutex mutex;
  // shared with the handles, which may outlive a removal
  std::map<ObjectName, std::shared_ptr<Entry>> entries SW_GUARDED_BY(mutex);
  std::uint64_t generations SW_GUARDED_BY(mutex) = 0;
  std::optional<Error> failure SW_GUARDED_BY(mutex);
};

MemoryDisk::MemoryDisk(Bodies bodies) : state_(std::make_unique<State>(bodies)) {}
MemoryDisk::~MemoryDisk() = default;

void MemoryDisk::fail_commits(std::optional<Error> error) {
  const MutexLock lock(state_->mutex);
  state_->failure = std::move(error);
}

namespace {

class MemoryTransaction final : public Transaction {
 public:
  explicit MemoryTransaction(Content content) : content_(std::move(content)) {}

  Result<std::optional<Bytes>> get(TableId table, std::string_view key) override {
    const auto found = content_.rows.find({table, std::string(key)});
    if (found == content_.rows.end()) return std::optional<Bytes>();
    return std::optional<Bytes>(*found->second);
  }

  Result<void> scan(const Range& range, Order order, const RowCallback& each) override {
    const auto [first, last] = bounds(range);
    if (order == Order::kAscending) {
      for (auto row = first; row != last; ++row) {
        SW_TRY(const Scan next, each(row->first.second, *row->second));
        if (next == Scan::kStop) break;
      }
    } else {
      for (auto row = last; row != first;) {
        --row;
        SW_TRY(const Scan next, each(row->first.second, *row->second));
        if (next == Scan::kStop) break;
      }
    }
    return {};
  }

  Result<void> scan_keys(const Range& range, Order order, const KeyCallback& each) override {
    return scan(range, order,
                [&](std::string_view key, BytesView value) { return each(key, value.size()); });
  }

  Result<std::optional<Time>> alarm() override { return content_.alarm; }

  Result<void> put(TableId table, std::string_view key, BytesView value) override {
    wrote_ = true;
    if (key.size() > kKeyBytesMax || value.size() > kValueBytesMax) {
      failure_ = Error{ErrorCode::kLimitExceeded,
                       fmt::format("a row of {} + {} bytes: a key has at most {} and a value {}",
                                   key.size(), value.size(), kKeyBytesMax, kValueBytesMax),
                       0};
      return *failure_;
    }
    content_.rows[{table, std::string(key)}] =
        std::make_shared<const Bytes>(value.begin(), value.end());
    return {};
  }

  Result<void> erase(TableId table, std::string_view key) override {
    wrote_ = true;
    content_.rows.erase({table, std::string(key)});
    return {};
  }

  Result<void> erase_range(const Range& range) override {
    wrote_ = true;
    const auto [first, last] = bounds(range);
    content_.rows.erase(first, last);
    return {};
  }

  Result<void> set_alarm(std::optional<Time> time) override {
    wrote_ = true;
    content_.alarm = time;
    return {};
  }

  const std::optional<Error>& failure() const { return failure_; }
  bool wrote() const { return wrote_; }
  void forget_writes() { wrote_ = false; }
  Content& content() { return content_; }

 private:
  std::pair<Rows::iterator, Rows::iterator> bounds(const Range& range) {
    const auto first = content_.rows.lower_bound({range.table, range.from});
    auto last =
        range.to.empty()
            ? content_.rows.upper_bound({range.table, std::string(kKeyBytesMax + 1, '\xff')})
            : content_.rows.lower_bound({range.table, range.to});
    if (!range.to.empty() && range.to < range.from) last = first;
    return {first, last};
  }

  Content content_;
  std::optional<Error> failure_;
  bool wrote_ = false;
};

class MemoryObject final : public ObjectStorage {
 public:
  MemoryObject(MemoryDisk::State& disk, ObjectName name, Schema schema,
               std::shared_ptr<Entry> entry, std::uint64_t generation)
      : disk_(disk),
        name_(std::move(name)),
        schema_(std::move(schema)),
        entry_(std::move(entry)),
        generation_(generation) {}

  const ObjectName& name() const override { return name_; }
  std::uint64_t generation() const override { return generation_; }

  Result<void> read(const std::function<Result<void>(Reader&)>& body) override {
    const MutexLock lock(entry_->use);
    SW_CHECK_OK(check_owner());
    MemoryTransaction transaction(entry_->content);
    SW_CHECK_OK(upgrade(transaction));
    if (entry_->content.exists && transaction.content().schema != entry_->content.schema) {
      SW_CHECK_OK(commit(transaction));
    }
    if (disk_.bodies == Bodies::kTwice) SW_CHECK_OK(body(transaction));
    SW_CHECK_OK(body(transaction));
    if (transaction.failure()) return *transaction.failure();
    return {};
  }

  Result<void> transact(const std::function<Result<void>(Transaction&)>& body) override {
    const MutexLock lock(entry_->use);
    SW_CHECK_OK(check_owner());
    if (disk_.bodies == Bodies::kTwice) {
      MemoryTransaction undone(entry_->content);
      SW_CHECK_OK(upgrade(undone));
      SW_CHECK_OK(body(undone));
    }
    MemoryTransaction transaction(entry_->content);
    SW_CHECK_OK(upgrade(transaction));
    transaction.forget_writes();
    SW_CHECK_OK(body(transaction));
    if (transaction.failure()) return *transaction.failure();
    if (!entry_->content.exists && !transaction.wrote()) return {};
    return commit(transaction);
  }

  Result<void> destroy() override {
    const MutexLock lock(entry_->use);
    SW_CHECK_OK(check_owner());
    const MutexLock disk_lock(disk_.mutex);
    if (disk_.failure) return *disk_.failure;
    entry_->content = Content();
    return {};
  }

 private:
  Result<void> check_owner() const SW_REQUIRES(entry_->use) {
    if (entry_->generation == generation_) return {};
    return Error{ErrorCode::kConflict,
                 fmt::format("{} is now owned by another opener", to_string(name_)), 0};
  }

  Result<void> upgrade(MemoryTransaction& transaction) const {
    std::size_t& version = transaction.content().schema;
    if (version > schema_.steps.size()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} has schema version {}, but this program supports at most {}: it "
                               "was written by a newer version",
                               to_string(name_), version, schema_.steps.size()),
                   0};
    }
    for (; version < schema_.steps.size(); ++version) {
      auto done = schema_.steps[version](transaction);
      if (!done.ok()) {
        return std::move(done).error().while_doing(
            fmt::format("bringing {} to schema version {}", to_string(name_), version + 1));
      }
    }
    if (transaction.failure()) return *transaction.failure();
    return {};
  }

  Result<void> commit(MemoryTransaction& transaction) SW_REQUIRES(entry_->use) {
    const MutexLock lock(disk_.mutex);
    if (disk_.failure) return *disk_.failure;
    entry_->content = transaction.content();
    entry_->content.exists = true;
    return {};
  }

  MemoryDisk::State& disk_;
  const ObjectName name_;
  const Schema schema_;
  const std::shared_ptr<Entry> entry_;  // shared with the disk and other handles
  const std::uint64_t generation_;
};

class MemoryStorage final : public Storage {
 public:
  explicit MemoryStorage(MemoryDisk::State& disk) : disk_(disk) {}

  Result<std::unique_ptr<ObjectStorage>> open(const ObjectName& name,
                                              const Schema& schema) override {
    SW_CHECK_OK(check_name(name));
    const std::shared_ptr<Entry> entry = entry_of(name);
    const MutexLock lock(entry->use);
    entry->generation = next_generation();
    return std::unique_ptr<ObjectStorage>(
        std::make_unique<MemoryObject>(disk_, name, schema, entry, entry->generation));
  }

  Result<std::optional<ObjectInfo>> find(const ObjectName& name) override {
    SW_CHECK_OK(check_name(name));
    const MutexLock lock(disk_.mutex);
    const auto found = disk_.entries.find(name);
    if (found == disk_.entries.end() || !found->second->content.exists)
      return std::optional<ObjectInfo>();
    return std::optional<ObjectInfo>(ObjectInfo{name, found->second->content.alarm});
  }

  Result<std::vector<ObjectInfo>> list(std::string_view class_name, std::string_view after_id,
                                       std::size_t count_max) override {
    const MutexLock lock(disk_.mutex);
    std::vector<ObjectInfo> found;
    auto entry = disk_.entries.upper_bound({std::string(class_name), std::string(after_id)});
    for (; entry != disk_.entries.end() && entry->first.class_name == class_name; ++entry) {
      if (found.size() == count_max) break;
      if (entry->second->content.exists)
        found.push_back({entry->first, entry->second->content.alarm});
    }
    return found;
  }

  Result<void> remove(const ObjectName& name) override {
    SW_CHECK_OK(check_name(name));
    const std::shared_ptr<Entry> entry = entry_of(name);
    const MutexLock lock(entry->use);
    if (!entry->content.exists) {
      return Error{ErrorCode::kNotFound, fmt::format("no object {}", to_string(name)), 0};
    }
    entry->generation = next_generation();
    const MutexLock disk_lock(disk_.mutex);
    entry->content = Content();
    return {};
  }

  Result<std::vector<DueAlarm>> alarms_until(Time until, std::size_t count_max) override {
    const MutexLock lock(disk_.mutex);
    std::vector<DueAlarm> due;
    for (const auto& [name, entry] : disk_.entries) {
      const std::optional<Time>& alarm = entry->content.alarm;
      if (alarm && *alarm <= until) due.push_back({name, *alarm});
    }
    std::stable_sort(due.begin(), due.end(),
                     [](const DueAlarm& a, const DueAlarm& b) { return a.time < b.time; });
    if (due.size() > count_max) due.resize(count_max);
    return due;
  }

 private:
  std::shared_ptr<Entry> entry_of(const ObjectName& name) {
    const MutexLock lock(disk_.mutex);
    std::shared_ptr<Entry>& entry = disk_.entries[name];
    if (!entry) entry = std::make_shared<Entry>();
    return entry;
  }

  std::uint64_t next_generation() {
    const MutexLock lock(disk_.mutex);
    return ++disk_.generations;
  }

  MemoryDisk::State& disk_;
};

}  // namespace

std::unique_ptr<Storage> open_memory_storage(MemoryDisk& disk) {
  return std::make_unique<MemoryStorage>(disk.state());
}

}  // namespace sw::storage
