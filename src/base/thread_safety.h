// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which mutex guards what, written so that clang checks it (-Wthread-safety). The standard
// library's mutexes carry no annotations here, so these thin wrappers of them do.
//
//   Mutex mutex_;
//   CondVar changed_;
//   int count_ SW_GUARDED_BY(mutex_) = 0;
//   void add_locked() SW_REQUIRES(mutex_);
//
//   MutexLock lock(mutex_);
//   while (count_ == 0) changed_.wait(lock);
//
// A wait is a loop, not a predicate: the analysis does not know that a lambda runs under the lock.

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define SW_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SW_THREAD_ATTRIBUTE(x)
#endif

/// On classes: they can be held, as a mutex can; or hold one from construction to destruction.
#define SW_CAPABILITY(name) SW_THREAD_ATTRIBUTE(capability(name))
#define SW_SCOPED_CAPABILITY SW_THREAD_ATTRIBUTE(scoped_lockable)
/// On data: read and written only while the mutex is held. The same for what a pointer points to.
#define SW_GUARDED_BY(mutex) SW_THREAD_ATTRIBUTE(guarded_by(mutex))
#define SW_PT_GUARDED_BY(mutex) SW_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
/// On functions: the caller holds it, or must not.
#define SW_REQUIRES(...) SW_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define SW_EXCLUDES(...) SW_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// On functions: they take it, give it back, or take it if they return the given value.
#define SW_ACQUIRE(...) SW_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SW_RELEASE(...) SW_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SW_TRY_ACQUIRE(...) SW_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
/// On functions: it is held afterwards as far as the analysis is concerned; or returned.
#define SW_ASSERT_CAPABILITY(mutex) SW_THREAD_ATTRIBUTE(assert_capability(mutex))
#define SW_RETURN_CAPABILITY(mutex) SW_THREAD_ATTRIBUTE(lock_returned(mutex))
/// On mutexes: the order in which they are taken.
#define SW_ACQUIRED_BEFORE(...) SW_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define SW_ACQUIRED_AFTER(...) SW_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
/// On functions that are right for a reason the analysis cannot see; a comment gives the reason.
#define SW_NO_THREAD_SAFETY_ANALYSIS SW_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace sw {

class SW_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() SW_ACQUIRE() { mutex_.lock(); }
  void unlock() SW_RELEASE() { mutex_.unlock(); }
  bool try_lock() SW_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  /// For where the mutex is held but known by another name. Does nothing.
  void assert_held() const SW_ASSERT_CAPABILITY(this) {}

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a Mutex from construction to destruction, except between `unlock` and `lock`.
class SW_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SW_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() SW_RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() SW_ACQUIRE() { lock_.lock(); }
  void unlock() SW_RELEASE() { lock_.unlock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

/// Gives a mutex back from its making to its end, however that comes about: whoever has a turn
/// works on, and holds the mutex again when the turn ends.
class SW_SCOPED_CAPABILITY Unlocked {
 public:
  /// `mutex` is held, and outlives it.
  explicit Unlocked(Mutex& mutex) SW_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~Unlocked() SW_RELEASE() { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits give the lock back meanwhile, and may end without a notification.
class CondVar {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

  void wait(MutexLock& lock) { changed_.wait(lock.lock_); }
  /// False once the time has come.
  template <class Clock, class Duration>
  bool wait_until(MutexLock& lock, const std::chrono::time_point<Clock, Duration>& when) {
    return changed_.wait_until(lock.lock_, when) == std::cv_status::no_timeout;
  }
  template <class Rep, class Period>
  bool wait_for(MutexLock& lock, const std::chrono::duration<Rep, Period>& time) {
    return changed_.wait_for(lock.lock_, time) == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable changed_;
};

}  // namespace sw
