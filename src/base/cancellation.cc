// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/cancellation.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <ctime>

namespace sw {
namespace {

std::uint64_t monotonic_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Result<std::unique_ptr<Cancellation>> Cancellation::create() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return errno_error(errno, "eventfd");
  // the constructor is private
  return std::unique_ptr<Cancellation>(new Cancellation(std::move(event)));
}

void Cancellation::signal() noexcept {
  const int saved = errno;  // may run in a signal handler
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the event is readable anyway.
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  errno = saved;
}

void Cancellation::drain() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_.get(), &count, sizeof count);
}

void Cancellation::cancel() noexcept {
  cancelled_.store(true, std::memory_order_release);
  signal();
}

void Cancellation::wake() noexcept {
  woken_.store(true, std::memory_order_release);
  signal();
}

void Cancellation::reset() noexcept {
  cancelled_.store(false, std::memory_order_release);
  woken_.store(false, std::memory_order_release);
  drain();
}

int Cancellation::wait_once(const std::optional<std::uint64_t>& deadline_ns, pollfd* watched,
                            unsigned count) {
  timespec left = {};
  if (deadline_ns) {
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t wait = *deadline_ns > now ? *deadline_ns - now : 0;
    left.tv_sec = static_cast<time_t>(wait / 1'000'000'000);
    left.tv_nsec = static_cast<long>(wait % 1'000'000'000);
  }
  if (!observer_) return ::ppoll(watched, count, deadline_ns ? &left : nullptr, nullptr);
  const timespec at_once = {};
  const int ready = ::ppoll(watched, count, &at_once, nullptr);
  if (ready != 0 || (deadline_ns && left.tv_sec == 0 && left.tv_nsec == 0)) return ready;
  observer_->on_wait();
  const int waited = ::ppoll(watched, count, deadline_ns ? &left : nullptr, nullptr);
  const int saved = errno;
  observer_->on_resume();
  errno = saved;
  return waited;
}

WaitEnd Cancellation::wait_until(std::optional<std::uint64_t> deadline_ns, int fd, WaitTo purpose) {
  for (;;) {
    if (cancelled()) return WaitEnd::kCancelled;
    if (woken_.exchange(false, std::memory_order_acq_rel)) {
      drain();
      // A cancel that came just before the drain left its flag: it is seen at the next wait.
      return cancelled() ? WaitEnd::kCancelled : WaitEnd::kWoken;
    }
    pollfd watched[2] = {{event_.get(), POLLIN, 0},
                         {fd, purpose == WaitTo::kRead ? short{POLLIN} : short{POLLOUT}, 0}};
    const int ready = wait_once(deadline_ns, watched, fd >= 0 ? 2 : 1);
    // an unusable descriptor: let its reader find out
    if (ready < 0 && errno != EINTR) return WaitEnd::kReady;
    if (ready <= 0) {
      if (ready == 0 && deadline_ns && monotonic_ns() >= *deadline_ns) return WaitEnd::kDeadline;
      continue;
    }
    if (watched[0].revents == 0 && watched[1].revents != 0) return WaitEnd::kReady;
    // The event may be left over from a wake that was noticed through its flag.
    if (!cancelled() && !woken_.load(std::memory_order_acquire)) drain();
  }
}

}  // namespace sw
