// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Clocks, sleeping, waiting, and what ends a wait.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <thread>

#include "sandbox_workers/base/unique_fd.h"
#include "wasi/guest_support.h"

namespace sw::wasi {
namespace {

constexpr std::uint64_t kHour = 3'600'000'000'000;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint32_t kSubscriptions = 2048;
constexpr std::uint32_t kEvents = 4096;

struct Event {
  std::uint64_t userdata;
  Errno error;
  std::uint8_t type;
  std::uint64_t bytes;
  std::uint16_t flags;
};

class Clock : public GuestTest {
 protected:
  Clock() { start({}); }  // the base's instance got the base's clocks

  const Clocks& clocks() override {
    return use_fixed_ ? static_cast<const Clocks&>(fixed_clocks_) : system_clocks_;
  }

  struct Timer {
    std::uint64_t userdata = 1;
    std::uint32_t id = 1;
    std::uint64_t timeout = 0;
    std::uint16_t flags = 0;
  };
  void subscribe(const Timer& timer) {
    const std::uint32_t at = kSubscriptions + 48 * count_++;
    store(at, timer.userdata);
    store(at + 8, std::uint64_t{0});
    store(at + 16, std::uint64_t{timer.id});
    store(at + 24, timer.timeout);
    store(at + 32, std::uint64_t{0});
    store(at + 40, std::uint64_t{timer.flags});
  }
  void subscribe_fd(std::uint64_t userdata, std::uint8_t type, std::uint32_t fd) {
    const std::uint32_t at = kSubscriptions + 48 * count_++;
    store(at, userdata);
    store(at + 8, std::uint64_t{type});
    store(at + 16, std::uint64_t{fd});
  }
  Errno poll() {
    return call("poll_oneoff", {kSubscriptions, kEvents, std::exchange(count_, 0), kResult});
  }
  Result<Errno> poll_raw() {
    return call_raw("poll_oneoff", {kSubscriptions, kEvents, std::exchange(count_, 0), kResult});
  }
  Event event(std::uint32_t index) {
    const std::uint32_t at = kEvents + 32 * index;
    return {u64(at), static_cast<Errno>(load<std::uint16_t>(at + 8)), load<std::uint8_t>(at + 10),
            u64(at + 16), load<std::uint16_t>(at + 24)};
  }

  void start_cancellable(InputSource* input = nullptr) {
    cancellation_ = Cancellation::create().value();
    start({.input = input, .cancellation = cancellation_.get()});
  }

  SystemClocks system_clocks_;
  bool use_fixed_ = false;
  std::uint32_t count_ = 0;
  std::unique_ptr<Cancellation> cancellation_;
};

TEST_F(Clock, ReadsTheClocksAndTheirResolution) {
  use_fixed_ = true;
  start({.cpu_start_ns = 0, .monotonic_offset_ns = 1000});
  fixed_clocks_.realtime = 42;
  fixed_clocks_.monotonic = 7;
  fixed_clocks_.cpu += 5;
  const std::uint64_t expected[] = {42, 1007, 5, 5};
  for (std::uint64_t id = 0; id < 4; ++id) {
    EXPECT_EQ(call("clock_time_get", {id, 1, kResult}), Errno::kSuccess);
    EXPECT_EQ(u64(kResult), expected[id]) << id;
    EXPECT_EQ(call("clock_res_get", {id, kResult}), Errno::kSuccess);
    EXPECT_EQ(u64(kResult), 1U);
  }
  EXPECT_EQ(call("clock_time_get", {4, 1, kResult}), Errno::kInval);
  EXPECT_EQ(call("clock_res_get", {4, kResult}), Errno::kInval);
}

TEST_F(Clock, CpuTimeCountsFromTheFirstLookUnlessTheStartIsGiven) {
  use_fixed_ = true;
  start({});
  fixed_clocks_.cpu = 100;
  EXPECT_EQ(call("clock_time_get", {2, 0, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 0U);
  fixed_clocks_.cpu = 130;
  EXPECT_EQ(call("clock_time_get", {3, 0, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 30U);
  start({.cpu_start_ns = 110});
  EXPECT_EQ(call("clock_time_get", {3, 0, kResult}), Errno::kSuccess);
  EXPECT_EQ(u64(kResult), 20U);
}

TEST_F(Clock, SystemClocksGoOn) {
  EXPECT_EQ(call("clock_time_get", {1, 0, kResult}), Errno::kSuccess);
  const std::uint64_t before = u64(kResult);
  EXPECT_EQ(call("clock_time_get", {1, 0, kResult}), Errno::kSuccess);
  EXPECT_GE(u64(kResult), before);
  EXPECT_EQ(call("clock_time_get", {0, 0, kResult}), Errno::kSuccess);
  EXPECT_GT(u64(kResult), 1'700'000'000'000'000'000U);
}

TEST_F(Clock, SleepsAsLongAsAskedAndUsesNoCpuTime) {
  for (const std::uint32_t id : {0U, 1U}) {
    const std::uint64_t wall = system_clocks_.monotonic_ns();
    const std::clock_t cpu = std::clock();
    subscribe({.userdata = 9, .id = id, .timeout = 100 * kMillisecond});
    EXPECT_EQ(poll(), Errno::kSuccess);
    EXPECT_GE(system_clocks_.monotonic_ns() - wall, 100 * kMillisecond);
    EXPECT_LT(std::clock() - cpu, CLOCKS_PER_SEC / 20) << "that was a busy wait";
    EXPECT_EQ(u32(kResult), 1U);
    EXPECT_EQ(event(0).userdata, 9U);
    EXPECT_EQ(event(0).error, Errno::kSuccess);
    EXPECT_EQ(event(0).type, 0);
  }
}

TEST_F(Clock, SleepsUntilAnAbsoluteTime) {
  for (const std::uint32_t id : {0U, 1U}) {
    const std::uint64_t now =
        id == 0 ? system_clocks_.realtime_ns() : system_clocks_.monotonic_ns();
    subscribe({.id = id, .timeout = now + 10 * kMillisecond, .flags = 1});
    EXPECT_EQ(poll(), Errno::kSuccess);
    EXPECT_GE(id == 0 ? system_clocks_.realtime_ns() : system_clocks_.monotonic_ns(),
              now + 10 * kMillisecond);
    subscribe({.id = id, .timeout = now, .flags = 1});
    EXPECT_EQ(poll(), Errno::kSuccess);  // long past
    EXPECT_EQ(u32(kResult), 1U);
  }
}

TEST_F(Clock, AnAbsoluteMonotonicTimeCountsTheOffset) {
  start({.monotonic_offset_ns = static_cast<std::int64_t>(kHour)});
  const std::uint64_t wall = system_clocks_.monotonic_ns();
  subscribe({.timeout = wasi().monotonic_ns() + kMillisecond, .flags = 1});
  EXPECT_EQ(poll(), Errno::kSuccess);
  EXPECT_LT(system_clocks_.monotonic_ns() - wall, kHour);
}

TEST_F(Clock, ReportsOnlyTheTimersThatAreDue) {
  use_fixed_ = true;  // long before the real clock's time, so that nothing is waited for
  start({});
  subscribe({.userdata = 1, .timeout = 30});
  subscribe({.userdata = 2, .timeout = 10});
  subscribe({.userdata = 3, .timeout = 10});
  subscribe({.userdata = 4, .timeout = UINT64_MAX});
  EXPECT_EQ(poll(), Errno::kSuccess);
  ASSERT_EQ(u32(kResult), 2U);
  EXPECT_EQ(event(0).userdata, 2U);
  EXPECT_EQ(event(1).userdata, 3U);
}

TEST_F(Clock, RefusesWhatIsNoSubscription) {
  EXPECT_EQ(call("poll_oneoff", {kSubscriptions, kEvents, 0, kResult}), Errno::kInval);
  EXPECT_EQ(call("poll_oneoff", {0, 0, 5000, kResult}), Errno::kInval);
  subscribe_fd(1, 3, 0);
  EXPECT_EQ(poll(), Errno::kInval);
}

TEST_F(Clock, ReportsErrorsAsEvents) {
  subscribe({.userdata = 1, .id = 2});
  subscribe({.userdata = 2, .id = 9});
  subscribe({.userdata = 3, .flags = 2});
  subscribe_fd(4, 1, 99);
  subscribe_fd(5, 2, 3);
  subscribe({.userdata = 6, .timeout = kHour});
  EXPECT_EQ(poll(), Errno::kSuccess);
  ASSERT_EQ(u32(kResult), 5U);
  const Errno expected[] = {Errno::kNotsup, Errno::kInval, Errno::kInval, Errno::kBadf,
                            Errno::kBadf};
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(event(i).userdata, i + 1);
    EXPECT_EQ(event(i).error, expected[i]);
  }
}

TEST_F(Clock, FilesAndOutputsAreReadyAtOnce) {
  ASSERT_EQ(host_write("/workspace/f", "abc"), Errno::kSuccess);
  const auto fd = open("workspace/f");
  subscribe_fd(1, 1, fd);
  subscribe_fd(2, 2, fd);
  subscribe_fd(3, 2, 1);
  subscribe({.userdata = 4, .timeout = kHour});
  EXPECT_EQ(poll(), Errno::kSuccess);
  ASSERT_EQ(u32(kResult), 3U);
  EXPECT_EQ(event(0).bytes, 3U);
  EXPECT_EQ(event(0).type, 1);
  EXPECT_GT(event(1).bytes, 0U);
  EXPECT_EQ(event(2).type, 2);
}

TEST_F(Clock, KnownInputIsReadyAndTheEndHangsUp) {
  BytesInput input("ab");
  start({.input = &input});
  subscribe_fd(1, 1, 0);
  subscribe({.userdata = 2, .timeout = kHour});
  EXPECT_EQ(poll(), Errno::kSuccess);
  ASSERT_EQ(u32(kResult), 1U);
  EXPECT_EQ(event(0).bytes, 2U);
  EXPECT_EQ(event(0).flags, 0);
  EXPECT_EQ(read(0), "ab");
  subscribe_fd(1, 1, 0);
  EXPECT_EQ(poll(), Errno::kSuccess);
  EXPECT_EQ(event(0).bytes, 0U);
  EXPECT_EQ(event(0).flags, 1);
}

class PipeInput final : public InputSource {
 public:
  PipeInput() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    from_ = UniqueFd(ends[0]);
    to_ = UniqueFd(ends[1]);
  }
  ErrnoOr<std::size_t> read(std::span<std::byte> to) override {
    const ssize_t count = ::read(from_.get(), to.data(), to.size());
    return count < 0 ? ErrnoOr<std::size_t>(Errno::kIo) : static_cast<std::size_t>(count);
  }
  int poll_fd() const override { return from_.get(); }
  void send(std::string_view text) {
    EXPECT_EQ(::write(to_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close() { to_ = UniqueFd(); }

 private:
  UniqueFd from_;
  UniqueFd to_;
};

TEST_F(Clock, WaitsForInputThatComes) {
  PipeInput input;
  start_cancellable(&input);
  subscribe_fd(1, 1, 0);
  subscribe({.userdata = 2, .timeout = kHour});
  std::thread sender([&] { input.send("now"); });
  EXPECT_EQ(poll(), Errno::kSuccess);
  sender.join();
  ASSERT_EQ(u32(kResult), 1U);
  EXPECT_EQ(event(0).userdata, 1U);
  EXPECT_EQ(read(0), "now");
  input.close();
  EXPECT_EQ(read(0), "");
}

TEST_F(Clock, WaitsForInputOnlyAsLongAsTheTimer) {
  PipeInput input;
  start_cancellable(&input);
  subscribe_fd(1, 1, 0);
  subscribe({.userdata = 2, .timeout = kMillisecond});
  EXPECT_EQ(poll(), Errno::kSuccess);
  ASSERT_EQ(u32(kResult), 1U);
  EXPECT_EQ(event(0).userdata, 2U);
  subscribe_fd(1, 1, 0);
  subscribe_fd(3, 2, 1);  // ready, so nothing is waited for
  EXPECT_EQ(poll(), Errno::kSuccess);
  ASSERT_EQ(u32(kResult), 1U);
  EXPECT_EQ(event(0).userdata, 3U);
}

TEST_F(Clock, CancellationEndsASleep) {
  start_cancellable();
  subscribe({.timeout = kHour});
  std::thread other([&] { cancellation_->cancel(); });
  const auto ended = poll_raw();
  other.join();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kGuestStopped);
}

TEST_F(Clock, CancellationEndsAWaitForInput) {
  PipeInput input;
  start_cancellable(&input);
  buffer(10);
  std::thread other([&] { cancellation_->cancel(); });
  const auto ended = call_raw("fd_read", {0, kIovs, 1, kResult});
  other.join();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kGuestStopped);
}

TEST_F(Clock, EveryCallEndsACancelledRun) {
  start_cancellable();
  cancellation_->cancel();
  const auto ended = call_raw("sched_yield", {});
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kGuestStopped);
}

TEST_F(Clock, AWakeUpLetsTheEarliestTimerFireEarly) {
  start_cancellable();
  subscribe({.userdata = 1, .timeout = 2 * kHour});
  subscribe({.userdata = 2, .timeout = kHour});
  std::thread other([&] { cancellation_->wake(); });
  EXPECT_EQ(poll(), Errno::kSuccess);
  other.join();
  ASSERT_EQ(u32(kResult), 1U);
  EXPECT_EQ(event(0).userdata, 2U);
  EXPECT_EQ(event(0).error, Errno::kSuccess);
  // The next sleep is a whole one again.
  subscribe({.timeout = 5 * kMillisecond});
  const std::uint64_t wall = system_clocks_.monotonic_ns();
  EXPECT_EQ(poll(), Errno::kSuccess);
  EXPECT_GE(system_clocks_.monotonic_ns() - wall, 5 * kMillisecond);
}

TEST_F(Clock, AWakeUpInterruptsAWaitForInput) {
  PipeInput input;
  start_cancellable(&input);
  cancellation_->wake();
  EXPECT_EQ(read(0), "EINTR");
  cancellation_->wake();
  subscribe_fd(1, 1, 0);
  EXPECT_EQ(poll(), Errno::kIntr);
}

}  // namespace
}  // namespace sw::wasi
