// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/clock.h"

#include <algorithm>
#include <thread>

namespace sw::object {

namespace {

// then look at the clock again: it may have been set
constexpr auto kLongestWait = std::chrono::hours(1);

class SystemClock final : public Clock {
 public:
  SystemClock() : thread_([this] { run(); }) {}
  ~SystemClock() override {
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Time now() override {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now());
  }

  std::unique_ptr<Timer> make_timer(std::function<void()> fire) override {
    return std::make_unique<SystemTimer>(*this, std::move(fire));
  }

 private:
  class SystemTimer final : public Timer {
   public:
    SystemTimer(SystemClock& clock, std::function<void()> fire)
        : clock_(clock), fire_(std::move(fire)) {}
    ~SystemTimer() override {
      MutexLock lock(clock_.mutex_);
      clock_.remove(*this);
      while (clock_.firing_ == this) clock_.changed_.wait(lock);
    }
    void set(std::optional<Time> time) override {
      bool earlier = false;
      {
        const MutexLock lock(clock_.mutex_);
        clock_.remove(*this);
        if (time) clock_.set_.emplace(*time, this);
        earlier = time && *time < clock_.wakes_;
      }
      // Timers are moved far more often than they fire: a thread that wakes too early looks again.
      if (earlier) clock_.changed_.notify_all();
    }
    void fire() const { fire_(); }

   private:
    SystemClock& clock_;
    const std::function<void()> fire_;
  };

  void remove(const SystemTimer& timer) SW_REQUIRES(mutex_) {
    const auto found = std::find_if(set_.begin(), set_.end(),
                                    [&](const auto& each) { return each.second == &timer; });
    if (found != set_.end()) set_.erase(found);
  }

  void run() {
    MutexLock lock(mutex_);
    while (!ending_) {
      if (set_.empty()) {
        wakes_ = Time::max();
        changed_.wait(lock);
        continue;
      }
      const Time first = set_.begin()->first;
      const Time present = now();
      if (first > present) {
        const auto wait = std::min<std::chrono::milliseconds>(first - present, kLongestWait);
        wakes_ = present + wait;
        changed_.wait_for(lock, wait);
        continue;
      }
      SystemTimer* const due = set_.begin()->second;
      firing_ = due;
      set_.erase(set_.begin());
      lock.unlock();
      due->fire();
      lock.lock();
      firing_ = nullptr;
      changed_.notify_all();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::multimap<Time, SystemTimer*> set_ SW_GUARDED_BY(mutex_);
  Time wakes_ SW_GUARDED_BY(mutex_) = Time::max();       // until then the thread waits
  SystemTimer* firing_ SW_GUARDED_BY(mutex_) = nullptr;  // whose function runs now
  bool ending_ SW_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all above
};

}  // namespace

std::unique_ptr<Clock> make_system_clock() { return std::make_unique<SystemClock>(); }

class ManualClock::ManualTimer final : public Timer {
 public:
  ManualTimer(ManualClock& clock, std::function<void()> fire)
      : clock_(clock), fire_(std::move(fire)) {}
  ~ManualTimer() override {
    const std::lock_guard firing(clock_.firing_);
    set(std::nullopt);
  }
  void set(std::optional<Time> time) override {
    const MutexLock lock(clock_.mutex_);
    const auto found = std::find_if(clock_.set_.begin(), clock_.set_.end(),
                                    [this](const auto& each) { return each.second == this; });
    if (found != clock_.set_.end()) clock_.set_.erase(found);
    if (time) clock_.set_.emplace(*time, this);
  }
  void fire() const { fire_(); }

 private:
  ManualClock& clock_;
  const std::function<void()> fire_;
};

Time ManualClock::now() {
  const MutexLock lock(mutex_);
  return now_;
}

std::unique_ptr<Timer> ManualClock::make_timer(std::function<void()> fire) {
  return std::make_unique<ManualTimer>(*this, std::move(fire));
}

void ManualClock::advance(std::chrono::milliseconds by) {
  {
    const MutexLock lock(mutex_);
    now_ += by;
  }
  const std::lock_guard firing(firing_);
  for (;;) {
    ManualTimer* due = nullptr;
    {
      const MutexLock lock(mutex_);
      if (set_.empty() || set_.begin()->first > now_) return;
      due = set_.begin()->second;
      set_.erase(set_.begin());
    }
    due->fire();
  }
}

std::optional<Time> ManualClock::next() {
  const MutexLock lock(mutex_);
  return set_.empty() ? std::nullopt : std::optional(set_.begin()->first);
}

}  // namespace sw::object
