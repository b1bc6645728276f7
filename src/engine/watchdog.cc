// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>

namespace sw::engine {

namespace {

using namespace std::chrono_literals;

// How late a limit may be noticed. While runs come one after the other the thread keeps looking, so
// that starting a run need not wake it.
constexpr auto kTick = 5ms;
constexpr auto kForceTick = 1ms;
// A host function that is in guest memory when it is blocked goes on with it. Asked again at every
// tick, one that copies a gigabyte would get no further: each time costs as much as the tick. So
// the pauses double up to this, and are counted in CPU time of the run: on a busy machine it has
// got no further in a pause of the clock on the wall.
constexpr std::chrono::nanoseconds kForcePauseMax = 128ms;
constexpr int kIdleTicks = 200;
// An interpreter can lose an interrupt: an error that its own code raises at that moment takes the
// interrupt's place. So it is asked again, after a time in which most programs have cleaned up.
constexpr auto kAskAgain = 50ms;

std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

std::chrono::nanoseconds thread_cpu_time() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

Watchdog::Watchdog() {
  // The thread inherits the mask. A signal that it took would not reach who waits for it (or would
  // end the process).
  sigset_t all_but_faults;
  ::sigfillset(&all_but_faults);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigdelset(&all_but_faults, fault);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &all_but_faults, &before);
  thread_ = std::thread([this] { loop(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::loop() {
  MutexLock lock(mutex_);
  int idle_ticks = 0;
  bool forcing = false;
  while (!ending_) {
    idle_ticks = watches_.empty() ? idle_ticks + 1 : 0;
    if (idle_ticks > kIdleTicks) {
      sleeping_ = true;
      while (!ending_ && watches_.empty()) changed_.wait(lock);
      sleeping_ = false;
    } else {
      changed_.wait_for(lock, forcing ? kForceTick : kTick);
    }
    forcing = look();
  }
}

bool Watchdog::look() {
  const auto now = Watch::Clock::now();
  bool forcing = false;
  for (Watch* watch : watches_) {
    watch->watchdog_.mutex_.assert_held();  // this one's
    if (watch->reason_ == StopReason::kNone) {
      watch->reason_ = watch->reason_to_stop(now);
      if (watch->reason_ == StopReason::kNone) continue;
      watch->first_asked_at_ = watch->asked_at_ = now;
      watch->target_.soft_stop();
    } else if (now - watch->first_asked_at_ >= watch->limits_.grace) {
      forcing = true;
      const auto cpu = read_clock(watch->cpu_clock_);
      if (cpu < watch->force_again_at_) continue;
      watch->target_.hard_stop();
      watch->force_pause_ =
          std::clamp<std::chrono::nanoseconds>(2 * watch->force_pause_, kForceTick, kForcePauseMax);
      watch->force_again_at_ = cpu + watch->force_pause_;
    } else if (now - watch->asked_at_ >= kAskAgain) {
      watch->asked_at_ = now;
      watch->target_.soft_stop();
    }
  }
  return forcing;
}

Watchdog::Watch::Watch(Watchdog& watchdog, Stoppable& target, const RunLimits& limits,
                       std::stop_token cancel)
    : watchdog_(watchdog),
      target_(target),
      limits_(limits),
      cancel_(std::move(cancel)),
      start_(Clock::now()) {
  ::pthread_getcpuclockid(::pthread_self(), &cpu_clock_);
  if (limits_.cpu_max.count() != 0) cpu_at_start_ = read_clock(cpu_clock_);
  bool wake = false;
  {
    const MutexLock lock(watchdog_.mutex_);
    watchdog_.watches_.push_back(this);
    wake = watchdog_.sleeping_;
  }
  if (wake) watchdog_.changed_.notify_one();
}

Watchdog::Watch::~Watch() { finish(); }

StopReason Watchdog::Watch::finish() {
  const MutexLock lock(watchdog_.mutex_);
  if (watching_) std::erase(watchdog_.watches_, this);
  watching_ = false;
  return reason_;
}

StopReason Watchdog::Watch::reason_to_stop(Clock::time_point now) const {
  if (cancel_.stop_requested()) return StopReason::kCancelled;
  if (limits_.wall_max.count() != 0 && now - start_ >= limits_.wall_max)
    return StopReason::kWallLimit;
  if (limits_.cpu_max.count() != 0 && read_clock(cpu_clock_) - cpu_at_start_ >= limits_.cpu_max) {
    return StopReason::kCpuLimit;
  }
  return StopReason::kNone;
}

}  // namespace sw::engine
