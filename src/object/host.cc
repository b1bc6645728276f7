// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/thread_safety.h"
#include "object/alarms.h"
#include "object/worker_pool.h"

namespace sw::object {

namespace {

namespace asio = boost::asio;

// How often an operator is told whom a shutdown waits for.
constexpr std::chrono::seconds kNoticePause{5};

Error shutting_down() { return Error{ErrorCode::kUnavailable, "shutting down", 0}; }

}  // namespace

class ObjectHost::Impl {
 public:
  Impl(storage::Storage& storage, Clock& clock, HostOptions options);
  ~Impl() { shut_down(); }

  void add_class(std::string class_name, ObjectClass object_class) {
    classes_.emplace(std::move(class_name), std::move(object_class));
  }
  void start_alarms() { alarms_.start(); }
  Result<std::shared_ptr<Object>> get(const storage::ObjectName& name) {
    SW_TRY(Lease lease, hold(name));
    return std::move(lease.object);
  }
  std::size_t resident() const;
  void shut_down();

 private:
  /// An object in memory. The host's mutex guards all but the object and its storage.
  struct Entry {
    std::unique_ptr<storage::ObjectStorage> storage;
    std::unique_ptr<Object> object;  // after the storage, which it uses to the end
    bool opening = true;
    std::size_t leases = 0;
    std::weak_ptr<Object> lease;
    std::uint64_t birth = 0;
    Time last_used;
    std::optional<std::list<std::shared_ptr<Entry>>::iterator> idle;  // its place in idle_
    storage::ObjectName name;
  };
  using EntryPtr = std::shared_ptr<Entry>;  // shared by the table and the leases

  struct Lease {
    EntryPtr entry;
    std::shared_ptr<Object> object;
  };

  Result<Lease> hold(const storage::ObjectName& name) SW_EXCLUDES(mutex_);
  /// Gives the mutex up while the object is made.
  Result<Lease> open(const storage::ObjectName& name, const ObjectClass& object_class)
      SW_REQUIRES(mutex_);
  Result<void> make(Entry& entry, const ObjectClass& object_class) SW_EXCLUDES(mutex_);
  Lease lease(const EntryPtr& entry) SW_REQUIRES(mutex_);
  void released(EntryPtr entry) SW_EXCLUDES(mutex_);
  void forget(const EntryPtr& entry) SW_REQUIRES(mutex_);
  void no_longer_idle(Entry& entry) SW_REQUIRES(mutex_);
  std::vector<EntryPtr> take_surplus(Time now) SW_REQUIRES(mutex_);
  void drop_idle(Time now) SW_EXCLUDES(mutex_);
  void arm_idle_timer() SW_REQUIRES(mutex_);
  Result<void> ring(const storage::DueAlarm& alarm) SW_EXCLUDES(mutex_);
  std::string leased() const SW_REQUIRES(mutex_);
  void wait_until_unused(MutexLock& lock) SW_REQUIRES(mutex_);
  void notice(std::string_view text) const {
    if (options_.on_notice) options_.on_notice(text);
  }

  storage::Storage& storage_;
  Clock& clock_;
  const HostOptions options_;
  std::map<std::string, ObjectClass, std::less<>> classes_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<storage::ObjectName, EntryPtr> entries_ SW_GUARDED_BY(mutex_);
  std::list<EntryPtr> idle_ SW_GUARDED_BY(mutex_);  // used longest ago first
  // Objects that are leased or being opened, forgotten ones too.
  std::size_t in_use_ SW_GUARDED_BY(mutex_) = 0;
  std::uint64_t births_ SW_GUARDED_BY(mutex_) = 0;
  bool accepting_ SW_GUARDED_BY(mutex_) = true;
  std::unique_ptr<Timer> idle_timer_ SW_GUARDED_BY(mutex_);

  Alarms alarms_;
  std::unique_ptr<WorkerPool> alarm_pool_;
};

ObjectHost::Impl::Impl(storage::Storage& storage, Clock& clock, HostOptions options)
    : storage_(storage),
      clock_(clock),
      options_(std::move(options)),
      alarms_(
          storage, clock,
          {options_.alarms_at_once, options_.alarm_retry_first, options_.alarm_retry_longest},
          {[this](std::function<void()> work) {
             asio::post(alarm_pool_->executor(), std::move(work));
           },
           [this](storage::DueAlarm alarm, std::function<void(Result<void>)> done) {
             asio::post(alarm_pool_->executor(), [this, alarm = std::move(alarm),
                                                  done = std::move(done)] { done(ring(alarm)); });
           },
           [this](std::string_view text) { notice(text); },
           [this](const storage::ObjectName& name) { return classes_.contains(name.class_name); }}),
      alarm_pool_(std::make_unique<WorkerPool>(options_.alarm_threads)) {
  idle_timer_ = clock_.make_timer([this] { drop_idle(clock_.now()); });
  storage_.on_alarm_set([this](Time time) { alarms_.consider(time); });
}

Result<ObjectHost::Impl::Lease> ObjectHost::Impl::hold(const storage::ObjectName& name) {
  EntryPtr lost;  // may be the last to hold it: its end is not under the mutex
  MutexLock lock(mutex_);
  const auto object_class = classes_.find(name.class_name);
  if (object_class == classes_.end()) {
    return Error{ErrorCode::kNotFound, fmt::format("unknown object class {}", name.class_name), 0};
  }
  for (;;) {
    if (!accepting_) return shutting_down();
    const auto found = entries_.find(name);
    if (found == entries_.end()) return open(name, object_class->second);
    if (found->second->opening) {
      changed_.wait(lock);
    } else if (found->second->storage->lost()) {
      lost = found->second;
      forget(lost);
    } else {
      return lease(found->second);
    }
  }
}

/// Others who ask for the object meanwhile wait.
Result<ObjectHost::Impl::Lease> ObjectHost::Impl::open(const storage::ObjectName& name,
                                                       const ObjectClass& object_class) {
  const auto entry = std::make_shared<Entry>();
  entry->name = name;
  entries_.emplace(name, entry);
  ++in_use_;
  Result<void> made = Error{};
  {
    const Unlocked unlocked(mutex_);
    made = make(*entry, object_class);
  }
  --in_use_;
  entry->opening = false;
  changed_.notify_all();
  if (!made.ok()) {
    entries_.erase(name);
    return std::move(made).error();
  }
  entry->birth = ++births_;
  return lease(entry);
}

Result<void> ObjectHost::Impl::make(Entry& entry, const ObjectClass& object_class) {
  SW_TRY(auto storage, storage_.open(entry.name, object_class.schema));
  SW_TRY(entry.object, object_class.make(*storage));
  entry.storage = std::move(storage);
  return {};
}

ObjectHost::Impl::Lease ObjectHost::Impl::lease(const EntryPtr& entry) {
  if (auto held = entry->lease.lock()) return {entry, std::move(held)};
  no_longer_idle(*entry);
  if (entry->leases++ == 0) ++in_use_;
  // The entry holds on to what the deleter is kept in, so the deleter has to let go of the entry.
  std::shared_ptr<Object> fresh(
      entry->object.get(),
      [this, held = EntryPtr(entry)](Object*) mutable { released(std::move(held)); });
  entry->lease = fresh;
  return {entry, std::move(fresh)};
}

void ObjectHost::Impl::released(EntryPtr entry) {
  std::vector<EntryPtr> dropped;
  {
    const MutexLock lock(mutex_);
    if (--entry->leases != 0) return;
    entry->last_used = clock_.now();
    const auto found = entries_.find(entry->name);
    if (found != entries_.end() && found->second == entry) {
      if (entry->storage->lost()) {
        entries_.erase(found);
      } else {
        entry->idle = idle_.insert(idle_.end(), entry);
        dropped = take_surplus(Time::min());
        if (idle_.size() == 1) arm_idle_timer();
      }
    }
  }
  // What goes is gone before a shutdown is told that nothing is in use any more.
  entry.reset();
  dropped.clear();
  const MutexLock lock(mutex_);
  if (--in_use_ == 0) changed_.notify_all();
}

/// The next `get` makes another.
void ObjectHost::Impl::forget(const EntryPtr& entry) {
  no_longer_idle(*entry);
  entries_.erase(entry->name);
}

void ObjectHost::Impl::no_longer_idle(Entry& entry) {
  if (entry.idle) idle_.erase(*entry.idle);
  entry.idle.reset();
}

/// The idle objects beyond the limit, and those last used `idle_max` before `now`.
std::vector<ObjectHost::Impl::EntryPtr> ObjectHost::Impl::take_surplus(Time now) {
  std::vector<EntryPtr> taken;
  while (!idle_.empty()) {
    const EntryPtr first = idle_.front();
    const bool too_old = now != Time::min() && now - first->last_used >= options_.idle_max;
    if (entries_.size() <= options_.resident_max && !too_old) break;
    forget(first);
    taken.push_back(first);
  }
  return taken;
}

void ObjectHost::Impl::drop_idle(Time now) {
  std::vector<EntryPtr> dropped;
  const MutexLock lock(mutex_);
  dropped = take_surplus(now);
  arm_idle_timer();
}

void ObjectHost::Impl::arm_idle_timer() {
  if (!idle_timer_) return;
  idle_timer_->set(idle_.empty() ? std::nullopt
                                 : std::optional(idle_.front()->last_used + options_.idle_max));
}

Result<void> ObjectHost::Impl::ring(const storage::DueAlarm& alarm) {
  SW_TRY(const Lease lease, hold(alarm.name));
  storage::ObjectStorage& storage = *lease.entry->storage;
  // It may have been moved since the index was read.
  std::optional<Time> current;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(current, reader.alarm());
    return {};
  }));
  if (!current || *current > clock_.now()) return {};
  SW_CHECK_OK(lease.object->on_alarm(*current));
  return storage.transact([&](storage::Transaction& transaction) -> Result<void> {
    SW_TRY(const auto set, transaction.alarm());
    return set == current ? transaction.set_alarm(std::nullopt) : Result<void>();
  });
}

std::size_t ObjectHost::Impl::resident() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

std::string ObjectHost::Impl::leased() const {
  std::string names;
  for (const auto& [name, entry] : entries_) {
    if (!entry->idle) names += (names.empty() ? "" : ", ") + storage::to_string(name);
  }
  return names;
}

void ObjectHost::Impl::wait_until_unused(MutexLock& lock) {
  auto notice_at = std::chrono::steady_clock::now() + kNoticePause;
  while (in_use_ != 0) {
    if (changed_.wait_until(lock, notice_at) || in_use_ == 0) continue;
    const std::string names = leased();
    const Unlocked unlocked(mutex_);
    notice(fmt::format("shutting down: waiting for {}", names));
    notice_at = std::chrono::steady_clock::now() + kNoticePause;
  }
}

void ObjectHost::Impl::shut_down() {
  std::unique_ptr<Timer> idle_timer;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(accepting_, false)) return;
    idle_timer = std::move(idle_timer_);
  }
  changed_.notify_all();
  idle_timer.reset();
  storage_.on_alarm_set({});
  alarms_.stop();
  alarm_pool_->join();
  std::vector<EntryPtr> left;
  {
    MutexLock lock(mutex_);
    wait_until_unused(lock);
    left.assign(idle_.begin(), idle_.end());
    for (const EntryPtr& entry : left) forget(entry);
  }
  std::ranges::sort(left, std::greater<>(), [](const EntryPtr& entry) { return entry->birth; });
  for (EntryPtr& entry : left) entry.reset();
}

// ---- ObjectHost

ObjectHost::ObjectHost(storage::Storage& storage, Clock& clock, HostOptions options)
    : impl_(std::make_unique<Impl>(storage, clock, std::move(options))) {}
ObjectHost::~ObjectHost() = default;

void ObjectHost::add_class(std::string class_name, ObjectClass object_class) {
  impl_->add_class(std::move(class_name), std::move(object_class));
}

void ObjectHost::start_alarms() { impl_->start_alarms(); }

Result<std::shared_ptr<Object>> ObjectHost::get(const storage::ObjectName& name) {
  return impl_->get(name);
}

std::size_t ObjectHost::resident() const { return impl_->resident(); }

void ObjectHost::shut_down() { impl_->shut_down(); }

}  // namespace sw::object
