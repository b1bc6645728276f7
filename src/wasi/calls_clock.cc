// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Clocks, sleeping and waiting.

#include <algorithm>
#include <memory>
#include <optional>

#include "wasi/calls_support.h"
#include "wasi/descriptors.h"

namespace sw::wasi::calls {
namespace {

enum ClockId : u32 { kRealtime = 0, kMonotonic = 1, kProcessCpu = 2, kThreadCpu = 3 };
enum EventType : std::uint8_t { kClock = 0, kFdRead = 1, kFdWrite = 2 };

constexpr u32 kSubscriptionsMax = 4096;
constexpr std::uint16_t kAbsolute = 1;
constexpr std::uint16_t kHangup = 1;

struct GuestSubscription {
  u64 userdata = 0;
  std::uint8_t type = 0;
  std::uint8_t padding[7] = {};
  u32 id = 0;  // of the clock, or the descriptor
  std::uint8_t more_padding[4] = {};
  u64 timeout = 0;
  u64 precision = 0;
  std::uint16_t flags = 0;
  std::uint8_t end_padding[6] = {};
};
static_assert(sizeof(GuestSubscription) == 48);

struct GuestEvent {
  u64 userdata = 0;
  std::uint16_t error = 0;
  std::uint8_t type = 0;
  std::uint8_t padding[5] = {};
  u64 bytes = 0;
  std::uint16_t flags = 0;
  std::uint8_t end_padding[6] = {};
};
static_assert(sizeof(GuestEvent) == 32);

std::optional<u64> read_clock(Wasi& wasi, u32 clock) {
  switch (clock) {
    case kRealtime: return wasi.clocks().realtime_ns();
    case kMonotonic: return wasi.monotonic_ns();
    // The guest is the only work of its thread; time asleep does not count.
    case kProcessCpu:
    case kThreadCpu: return wasi.cpu_ns();
    default: return std::nullopt;
  }
}

/// One poll_oneoff: what is ready now, and until when to wait if nothing is.
class Poll {
 public:
  explicit Poll(Wasi& wasi) : wasi_(wasi), start_ns_(wasi.clocks().monotonic_ns()) {}

  void add(const GuestSubscription& subscription);
  /// Fills `events`; an Errno only when nothing can be reported.
  Result<Errno> run();
  const std::vector<GuestEvent>& events() const { return events_; }

 private:
  struct Timer {
    u64 deadline_ns;  // by the host's monotonic clock
    u64 userdata;
  };

  void add_clock(const GuestSubscription& subscription);
  void add_descriptor(const GuestSubscription& subscription);
  void report(u64 userdata, std::uint8_t type, Errno error, u64 bytes = 0, std::uint16_t flags = 0);
  void report_timers(u64 until_ns);
  Result<WaitEnd> wait();

  Wasi& wasi_;
  const u64 start_ns_;
  u64 waited_until_ns_ = 0;
  std::vector<Timer> timers_;
  std::vector<u64> input_waiters_;  // userdata of those who wait for standard input
  std::vector<GuestEvent> events_;
};

void Poll::report(u64 userdata, std::uint8_t type, Errno error, u64 bytes, std::uint16_t flags) {
  GuestEvent event;
  event.userdata = userdata;
  event.error = static_cast<std::uint16_t>(error);
  event.type = type;
  event.bytes = bytes;
  event.flags = flags;
  events_.push_back(event);
}

void Poll::add(const GuestSubscription& subscription) {
  if (subscription.type == kClock) add_clock(subscription);
  else add_descriptor(subscription);
}

void Poll::add_clock(const GuestSubscription& subscription) {
  if (subscription.id != kRealtime && subscription.id != kMonotonic) {
    return report(subscription.userdata, kClock,
                  subscription.id > kThreadCpu ? Errno::kInval : Errno::kNotsup);
  }
  if ((subscription.flags & ~kAbsolute) != 0)
    return report(subscription.userdata, kClock, Errno::kInval);
  u64 left = subscription.timeout;
  if ((subscription.flags & kAbsolute) != 0) {
    const u64 now = *read_clock(wasi_, subscription.id);
    left = left > now ? left - now : 0;
  }
  const u64 deadline = left > UINT64_MAX - start_ns_ ? UINT64_MAX : start_ns_ + left;
  timers_.push_back({deadline, subscription.userdata});
}

void Poll::add_descriptor(const GuestSubscription& subscription) {
  const auto file = open_file(wasi_, subscription.id, rights::kPollFdReadwrite);
  if (!file.ok()) return report(subscription.userdata, subscription.type, file.error());
  const OpenFile& open = **file;
  if (open.type() == FileType::kDirectory)
    return report(subscription.userdata, subscription.type, Errno::kBadf);
  const Device device = open.is_stream() ? open.device : open.at.node->device;
  if (subscription.type == kFdWrite || device != Device::kStdin) {
    const u64 size = open.type() == FileType::kRegularFile ? open.at.node->size() : 0;
    const u64 readable = size > open.position ? size - open.position : 0;
    return report(subscription.userdata, subscription.type, Errno::kSuccess,
                  subscription.type == kFdRead ? readable : kTransferMax);
  }
  const InputSource* const input = wasi_.run().input;
  if (input && input->poll_fd() >= 0) return input_waiters_.push_back(subscription.userdata);
  const u64 bytes = input ? input->ready_bytes() : 0;
  report(subscription.userdata, kFdRead, Errno::kSuccess, bytes, bytes == 0 ? kHangup : 0);
}

void Poll::report_timers(u64 until_ns) {
  for (const Timer& timer : timers_) {
    if (timer.deadline_ns <= until_ns) report(timer.userdata, kClock, Errno::kSuccess);
  }
}

Result<WaitEnd> Poll::wait() {
  std::optional<u64> deadline;
  for (const Timer& timer : timers_)
    deadline = std::min(deadline.value_or(UINT64_MAX), timer.deadline_ns);
  // With something to report already, only look whether input has come too.
  if (!events_.empty()) deadline = 0;
  waited_until_ns_ = deadline.value_or(0);
  const int input = input_waiters_.empty() ? -1 : wasi_.run().input->poll_fd();
  if (Cancellation* const cancellation = wasi_.run().cancellation) {
    return cancellation->wait_until(deadline, input);
  }
  SW_TRY(const auto nobody, Cancellation::create());
  return nobody->wait_until(deadline, input);
}

Result<Errno> Poll::run() {
  WaitEnd end = WaitEnd::kDeadline;
  if (events_.empty() || !input_waiters_.empty()) {
    if (events_.empty() && timers_.empty() && input_waiters_.empty()) return Errno::kInval;
    SW_TRY(end, wait());
  }
  switch (end) {
    case WaitEnd::kCancelled: return Error{ErrorCode::kGuestStopped, "stopped while sleeping", 0};
    case WaitEnd::kReady:
      for (const u64 userdata : input_waiters_) report(userdata, kFdRead, Errno::kSuccess, 1);
      break;
    case WaitEnd::kWoken: {
      // wasi-libc turns any failure of a sleep into ENOTSUP, which interpreters raise as an error
      // of the program's. So the sleep ends early as if its time had come; the interpreter then
      // finds its interrupt.
      const auto first = std::min_element(
          timers_.begin(), timers_.end(),
          [](const Timer& a, const Timer& b) { return a.deadline_ns < b.deadline_ns; });
      if (first == timers_.end()) return events_.empty() ? Errno::kIntr : Errno::kSuccess;
      report(first->userdata, kClock, Errno::kSuccess);
      return Errno::kSuccess;
    }
    case WaitEnd::kDeadline: break;
  }
  report_timers(
      std::max(wasi_.clocks().monotonic_ns(), end == WaitEnd::kDeadline ? waited_until_ns_ : 0));
  return Errno::kSuccess;
}

}  // namespace

Errno clock_res_get(Wasi& wasi, const Memory& memory, u32 clock, u32 result) {
  if (!read_clock(wasi, clock)) return Errno::kInval;
  return memory.store(result, u64{1}) ? Errno::kSuccess : Errno::kFault;
}

Errno clock_time_get(Wasi& wasi, const Memory& memory, u32 clock, u64, u32 result) {
  const auto now = read_clock(wasi, clock);
  if (!now) return Errno::kInval;
  return memory.store(result, *now) ? Errno::kSuccess : Errno::kFault;
}

Result<Errno> poll_oneoff(Wasi& wasi, const Memory& memory, u32 subscriptions, u32 events,
                          u32 count, u32 result) {
  if (count == 0 || count > kSubscriptionsMax) return Errno::kInval;
  if (!memory.range(subscriptions, u64{count} * sizeof(GuestSubscription)) ||
      !memory.range(events, u64{count} * sizeof(GuestEvent)) || !memory.range(result, 4)) {
    return Errno::kFault;
  }
  Poll poll(wasi);
  for (u32 i = 0; i < count; ++i) {
    const auto subscription =
        memory.load<GuestSubscription>(subscriptions + i * u32{sizeof(GuestSubscription)});
    if (!subscription) return Errno::kFault;
    if (subscription->type > kFdWrite) return Errno::kInval;
    poll.add(*subscription);
  }
  SW_TRY(const Errno answer, poll.run());
  if (answer != Errno::kSuccess) return answer;
  u32 at = events;
  for (const GuestEvent& event : poll.events()) {
    if (!memory.store(at, event)) return Errno::kFault;
    at += u32{sizeof(GuestEvent)};
  }
  return memory.store(result, static_cast<u32>(poll.events().size())) ? Errno::kSuccess
                                                                      : Errno::kFault;
}

}  // namespace sw::wasi::calls
