// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stops a call while it works, and measures what it takes until it ends.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/test_allocations.h"
#include "sandbox_workers/base/unique_fd.h"
#include "wasi/guest_support.h"

namespace sw::wasi {

inline constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30;
// what buffers may cover; the arguments lie below it
inline constexpr std::uint64_t kAll = kMemoryBytes - 65536;
inline constexpr std::uint64_t kAllAt = 65536;
inline constexpr std::uint64_t kFileBytes = TreeLimits{}.file_bytes_max;
inline constexpr std::uint64_t kBuffers = 1024;
inline constexpr std::uint64_t kSubscriptions = 65536;
inline constexpr std::uint64_t kPathBytes = kPathBytesMax;

// A piece takes a millisecond or two, and up to a hundred times that under ThreadSanitizer.
// AddressSanitizer marks all bytes of the largest file when it is freed, which takes 120 ms. What is
// stopped between no pieces takes seconds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::nanoseconds kCpuAfterStopMax = std::chrono::milliseconds(500);
#else
inline constexpr std::chrono::nanoseconds kCpuAfterStopMax = std::chrono::milliseconds(100);
#endif
inline constexpr std::uint64_t kHostBytesMax = std::uint64_t{4} << 20;

/// Takes everything and keeps nothing.
struct Swallow final : OutputSink {
  Errno write(Stream, BytesView bytes) override {
    taken += bytes.size();
    return Errno::kSuccess;
  }
  std::uint64_t taken = 0;
};

/// A pipe that is full and that nobody reads.
class FullPipe final : public OutputSink {
 public:
  FullPipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    out_ = UniqueFd(ends[0]);
    in_ = UniqueFd(ends[1]);
    const std::vector<char> block(4096);
    while (::write(in_.get(), block.data(), block.size()) > 0) {
    }
  }
  Errno write(Stream, BytesView) override { return Errno::kIo; }
  int poll_fd(Stream) const override { return in_.get(); }

 private:
  UniqueFd out_;
  UniqueFd in_;
};

inline std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class LargestCalls : public GuestTest {
 protected:
  struct Case {
    const char* name;
    const char* what;
    std::function<std::vector<std::uint64_t>()> arguments;
    std::uint64_t host_bytes_max = kHostBytesMax;  // beside guest memory
  };

  const Clocks& clocks() override { return system_clocks_; }

  void set_up() {
    cancellation_ = Cancellation::create().value();
    start({.args = {std::string(16 << 20, 'a')},
           .env = {"K=" + std::string(16 << 20, 'v')},
           .output = &swallow_,
           .cancellation = cancellation_.get(),
           .limits = {.output_bytes_max = UINT64_MAX}});
    instance_->set_memory_bytes_max(kMemoryBytes);
    ASSERT_TRUE(instance_->grow_memory_to(kMemoryBytes).ok());
  }

  std::uint64_t file(std::uint64_t size) {
    EXPECT_EQ(host_write("/workspace/f", ""), Errno::kSuccess);
    EXPECT_EQ(files().truncate("/workspace/f", size), Errno::kSuccess);
    return open("workspace/f");
  }
  /// As many buffers as a call takes, each of them all of the memory.
  std::uint64_t all_memory() {
    for (std::uint64_t i = 0; i < kBuffers; ++i) {
      store(static_cast<std::uint32_t>(kIovs + 8 * i), static_cast<std::uint32_t>(kAllAt));
      store(static_cast<std::uint32_t>(kIovs + 8 * i + 4), static_cast<std::uint32_t>(kAll));
    }
    return kIovs;
  }
  std::uint64_t full_folder() {
    for (std::uint64_t i = 0; i + 2 < TreeLimits{}.entries_max; ++i) {
      EXPECT_TRUE(workspace_->create(folder(), std::to_string(i), FileType::kRegularFile, 0).ok());
    }
    return open_directory("workspace");
  }
  Node& folder() {
    if (!files().exists("/workspace/d")) {
      EXPECT_EQ(files().make_directory("/workspace/d"), Errno::kSuccess);
    }
    return *files().find_at(files().root(), "workspace/d", Follow::kYes)->node;
  }
  /// The longest path, through the longest chain of the longest links; its last name is `last`.
  std::uint64_t long_path(std::uint32_t at, const std::string& last) {
    std::string target = ".";
    for (std::size_t i = 0; i < kSymlinksFollowedMax; ++i) {
      const std::string name = "l" + std::to_string(i);
      std::string text;
      while (text.size() + 2 + target.size() < kPathBytesMax - 1) text += "./";
      (void)files().symlink(text + target, "/workspace/" + name);
      target = name;
    }
    std::string path = target + "/";
    while (path.size() + 2 + last.size() <= kPathBytes) path += "./";
    if (path.size() + last.size() < kPathBytes) path += "/";
    put(at, path + last);
    return at;
  }
  std::uint64_t workspace_fd() { return open_directory("workspace"); }
  std::uint64_t subscriptions(std::uint32_t fd, std::uint8_t type) {
    for (std::uint32_t i = 0; i < 4096; ++i) {
      const auto at = static_cast<std::uint32_t>(kSubscriptions + 48 * i);
      store(at + 8, type);
      store(at + 16, fd);
      store(at + 24, UINT64_MAX);
    }
    return kSubscriptions;
  }

  /// Stops the call on this thread once it has worked for a moment, or waits.
  class Stopper {
   public:
    Stopper(Cancellation& cancellation, wasm::Instance& instance) {
      ::pthread_getcpuclockid(::pthread_self(), &clock_);
      const auto began = read_clock(clock_);
      thread_ = std::thread([this, began, &cancellation, &instance] {
        // it waits, and takes no CPU time
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
        while (!over_ && read_clock(clock_) - began < std::chrono::milliseconds(1) &&
               std::chrono::steady_clock::now() < give_up) {
          std::this_thread::yield();
        }
        cancellation.cancel();
        instance.stop();
        stopped_at_ = read_clock(clock_);
      });
    }
    std::chrono::nanoseconds cpu_after_stop() {
      const auto end = read_clock(clock_);
      over_ = true;
      thread_.join();
      return end - stopped_at_;
    }

   private:
    clockid_t clock_ = {};
    std::atomic<bool> over_ = false;
    std::chrono::nanoseconds stopped_at_{};
    std::thread thread_;
  };

  void expect_end(const Case& one) {
    set_up();
    const auto arguments = one.arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i)
      store(static_cast<std::uint32_t>(8 * i), arguments[i]);
    const auto ran = wasm::run_on_guest_thread(engine().options(), [&] {
      // A trace is of one thread.
      SCOPED_TRACE(std::string(one.name) + " " + one.what);
      const auto function = instance_->function<std::uint32_t()>(one.name).value();
      Result<std::uint32_t> answer = Error{};
      std::chrono::nanoseconds after{};
      const std::size_t host_bytes = allocation_peak([&] {
        Stopper stopper(*cancellation_, *instance_);
        answer = instance_->call(function);
        after = stopper.cpu_after_stop();
      });
      EXPECT_LT(after, kCpuAfterStopMax);
      EXPECT_LT(host_bytes, one.host_bytes_max);
      if (!answer.ok()) {
        EXPECT_THAT(answer.error().code,
                    ::testing::AnyOf(ErrorCode::kGuestStopped, ErrorCode::kGuestExit));
      }
    });
    ASSERT_TRUE(ran.ok());
  }

  SystemClocks system_clocks_;
  Swallow swallow_;
  FullPipe full_pipe_;
  std::unique_ptr<Cancellation> cancellation_;

  std::vector<Case> cases();
  using Arguments = std::vector<std::uint64_t>;
};

}  // namespace sw::wasi
