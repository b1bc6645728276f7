// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "executor/guest_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <thread>
#include <vector>

#include "base/thread_safety.h"

namespace sw::executor {
namespace {

using testing::ElementsAre;

constexpr std::size_t kSmallStack = std::size_t{1} << 20;

/// Waits until something is so; a test that waits too long is killed by its runner.
void wait_until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

/// Jobs that hold their slot until they are let go, and note the order they began in.
class Jobs {
 public:
  GuestPool::Job job(const std::string& name) {
    return [this, name](const Result<GuestPool::Slot*>& slot) {
      {
        const MutexLock lock(mutex_);
        begun_.push_back(slot.ok() ? name : name + ": " + slot.error().message);
      }
      if (slot.ok()) gate_.get_future().wait();
    };
  }
  GuestPool::Job quick(const std::string& name) {
    return [this, name](const Result<GuestPool::Slot*>& slot) {
      const MutexLock lock(mutex_);
      begun_.push_back(slot.ok() ? name : name + ": " + slot.error().message);
    };
  }
  void let_go() { gate_.set_value(); }
  std::vector<std::string> begun() const {
    const MutexLock lock(mutex_);
    return begun_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> begun_ SW_GUARDED_BY(mutex_);
  std::promise<void> gate_;
};

GuestPoolOptions options(std::size_t slots) {
  GuestPoolOptions options;
  options.slots = slots;
  options.stack_bytes = kSmallStack;
  return options;
}

TEST(GuestPool, RunsAJobOnAThreadOfItsOwn) {
  GuestPool pool(options(1));
  std::thread::id ran_on;
  ASSERT_TRUE(pool.run({}, [&](GuestPool::Slot&) { ran_on = std::this_thread::get_id(); }).ok());
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(GuestPool, ItsThreadsTakeNoSignalsOfTheProcess) {
  GuestPool pool(options(1));
  sigset_t blocked{};
  ASSERT_TRUE(
      pool.run({}, [&](GuestPool::Slot&) { ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked); })
          .ok());
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    EXPECT_EQ(::sigismember(&blocked, signal), 1) << signal;
  }
  EXPECT_EQ(::sigismember(&blocked, SIGSEGV), 0);
}

TEST(GuestPool, KeepsItsThreads) {
  GuestPool pool(options(1));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.run({}, [](GuestPool::Slot&) {}).ok());
  EXPECT_EQ(pool.stats().threads, 1U);
}

TEST(GuestPool, AsManyComputeAtOnceAsThereAreSlots) {
  GuestPool pool(options(2));
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  std::latch all(50);
  for (int i = 0; i < 50; ++i) {
    pool.submit({}, [&](const Result<GuestPool::Slot*>&) {
      const int here = ++now;
      for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
      }
      --now;
      all.count_down();
    });
  }
  all.wait();
  EXPECT_LE(most, 2);
}

TEST(GuestPool, AGuestThatWaitsGivesItsSlotToAnother) {
  GuestPool pool(options(1));
  std::promise<void> other_ran;
  std::promise<void> resumed;
  pool.submit({}, [&](const Result<GuestPool::Slot*>& slot) {
    (*slot)->on_wait();
    other_ran.get_future().wait();
    (*slot)->on_resume();
    resumed.set_value();
  });
  ASSERT_TRUE(pool.run({}, [&](GuestPool::Slot&) { other_ran.set_value(); }).ok());
  resumed.get_future().wait();
  EXPECT_EQ(pool.stats().threads, 2U);
}

TEST(GuestPool, AGuestThatHasWaitedGoesOnWhenASlotIsFree) {
  Jobs jobs;
  GuestPool pool(options(1));
  std::promise<void> go_on;
  std::atomic<bool> waits = false;
  pool.submit({}, [&](const Result<GuestPool::Slot*>& slot) {
    (*slot)->on_wait();
    waits = true;
    go_on.get_future().wait();
    (*slot)->on_resume();
    jobs.quick("resumed")(slot);
  });
  wait_until([&] { return waits.load(); });
  pool.submit({}, jobs.job("first"));
  wait_until([&] { return jobs.begun().size() == 1; });
  pool.submit({}, jobs.quick("second"));
  go_on.set_value();
  jobs.let_go();
  wait_until([&] { return jobs.begun().size() == 3; });
  EXPECT_EQ(jobs.begun().front(), "first");
}

TEST(GuestPool, ManyGuestsThatWaitHoldNoMoreThreadsThanTheBound) {
  GuestPoolOptions limits = options(2);
  limits.guests_max = 8;
  GuestPool pool(limits);
  std::promise<void> morning;
  const std::shared_future<void> awake = morning.get_future().share();
  std::latch done(100);
  for (int i = 0; i < 100; ++i) {
    pool.submit({}, [&, awake](const Result<GuestPool::Slot*>& slot) {
      (*slot)->on_wait();
      awake.wait();
      (*slot)->on_resume();
      done.count_down();
    });
  }
  wait_until([&] { return pool.stats().in_progress == 8; });
  EXPECT_EQ(pool.stats().queued, 92U);
  morning.set_value();
  done.wait();
  EXPECT_LE(pool.stats().threads, 8U);
}

TEST(GuestPool, OwnersTakeTurns) {
  Jobs jobs;
  GuestPool pool(options(1));
  pool.submit({.owner = "a"}, jobs.job("a1"));
  wait_until([&] { return jobs.begun().size() == 1; });
  for (const char* name : {"a2", "a3", "a4"}) pool.submit({.owner = "a"}, jobs.quick(name));
  for (const char* name : {"b1", "b2"}) pool.submit({.owner = "b"}, jobs.quick(name));
  jobs.let_go();
  wait_until([&] { return jobs.begun().size() == 6; });
  EXPECT_THAT(jobs.begun(), ElementsAre("a1", "a2", "b1", "a3", "b2", "a4"));
}

TEST(GuestPool, JobsWithOneKeyRunOneAtATimeInOrderAndOthersPassThem) {
  Jobs jobs;
  GuestPool pool(options(2));
  pool.submit({.owner = "a", .turn = "x"}, jobs.job("x1"));
  wait_until([&] { return jobs.begun().size() == 1; });
  pool.submit({.owner = "a", .turn = "x"}, jobs.quick("x2"));
  pool.submit({.owner = "a", .turn = "x"}, jobs.quick("x3"));
  pool.submit({.owner = "a", .turn = "y"}, jobs.quick("y"));
  wait_until([&] { return jobs.begun().size() == 2; });
  EXPECT_THAT(jobs.begun(), ElementsAre("x1", "y"));
  jobs.let_go();
  wait_until([&] { return jobs.begun().size() == 4; });
  EXPECT_THAT(jobs.begun(), ElementsAre("x1", "y", "x2", "x3"));
}

TEST(GuestPool, ACancelledJobLeavesTheQueueAtOnce) {
  Jobs jobs;
  GuestPool pool(options(1));
  pool.submit({}, jobs.job("first"));
  wait_until([&] { return jobs.begun().size() == 1; });
  std::stop_source stop;
  pool.submit({.cancel = stop.get_token()}, jobs.quick("second"));
  stop.request_stop();
  EXPECT_THAT(jobs.begun(), ElementsAre("first", "second: cancelled before it started"));
  EXPECT_EQ(pool.stats().queued, 0U);
  jobs.let_go();
}

TEST(GuestPool, AJobThatIsCancelledBeforeItIsSubmittedDoesNotBegin) {
  GuestPool pool(options(1));
  std::stop_source stop;
  stop.request_stop();
  const auto ran = pool.run({.cancel = stop.get_token()}, [](GuestPool::Slot&) { FAIL(); });
  EXPECT_EQ(ran.error().code, ErrorCode::kUnavailable);
}

TEST(GuestPool, AFullQueueRefuses) {
  GuestPoolOptions limits = options(1);
  limits.queue_max = 1;
  Jobs jobs;
  GuestPool pool(limits);
  pool.submit({}, jobs.job("first"));
  wait_until([&] { return jobs.begun().size() == 1; });
  pool.submit({}, jobs.quick("second"));
  pool.submit({}, jobs.quick("third"));
  EXPECT_THAT(jobs.begun(), ElementsAre("first", "third: 1 runs are waiting"));
  jobs.let_go();
}

TEST(GuestPool, GuestsMayNotUseMoreMemoryTogetherButOneMayAlwaysRun) {
  GuestPoolOptions limits = options(4);
  limits.memory_bytes_max = 100;
  Jobs jobs;
  GuestPool pool(limits);
  pool.submit({.memory_bytes = 500}, jobs.job("large"));
  wait_until([&] { return jobs.begun().size() == 1; });
  pool.submit({.memory_bytes = 1}, jobs.quick("small"));
  EXPECT_EQ(pool.stats().queued, 1U);
  jobs.let_go();
  wait_until([&] { return jobs.begun().size() == 2; });
}

TEST(GuestPool, ShuttingDownRefusesWhatWaitsAndFinishesWhatRuns) {
  Jobs jobs;
  {
    GuestPool pool(options(1));
    pool.submit({}, jobs.job("first"));
    wait_until([&] { return jobs.begun().size() == 1; });
    pool.submit({}, jobs.quick("second"));
    std::thread other([&] { pool.shut_down(); });
    wait_until([&] { return jobs.begun().size() == 2; });
    jobs.let_go();
    other.join();
    pool.submit({}, jobs.quick("late"));
  }
  EXPECT_THAT(jobs.begun(), ElementsAre("first", "second: shutting down", "late: shutting down"));
}

}  // namespace
}  // namespace sw::executor
