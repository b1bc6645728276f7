// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Every function of preview 1 with the largest arguments it takes, stopped while it works: it must
// end after little more CPU time, and take little memory of the host.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/test_allocations.h"
#include "wasi/guest_support.h"

namespace sw::wasi {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30;
// what buffers may cover; the arguments lie below it
constexpr std::uint64_t kAll = kMemoryBytes - 65536;
constexpr std::uint64_t kAllAt = 65536;
constexpr std::uint64_t kFileBytes = TreeLimits{}.file_bytes_max;
constexpr std::uint64_t kBuffers = 1024;
constexpr std::uint64_t kSubscriptions = 65536;
constexpr std::uint64_t kPathBytes = kPathBytesMax;

// A piece takes a millisecond or two, and sanitizers make it ten times slower, ThreadSanitizer a
// hundred times. What is stopped between no pieces takes seconds.
#if defined(__SANITIZE_THREAD__)
constexpr std::chrono::nanoseconds kCpuAfterStopMax = 500ms;
#else
constexpr std::chrono::nanoseconds kCpuAfterStopMax = 100ms;
#endif
constexpr std::uint64_t kHostBytesMax = std::uint64_t{4} << 20;

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

std::chrono::nanoseconds read_clock(clockid_t clock) {
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
        const auto give_up = std::chrono::steady_clock::now() + 50ms;
        while (!over_ && read_clock(clock_) - began < 1ms &&
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
    SCOPED_TRACE(std::string(one.name) + " " + one.what);
    set_up();
    const auto arguments = one.arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i)
      store(static_cast<std::uint32_t>(8 * i), arguments[i]);
    const auto ran = wasm::run_on_guest_thread(engine().options(), [&] {
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

  std::vector<Case> cases() {
    const auto number = [](std::uint64_t value) { return value; };
    const std::uint64_t most = number(UINT64_MAX);
    return {
        {"args_get", "16 MiB",
         [] {
           return Arguments{kResult, kAllAt};
         }},
        {"args_sizes_get", "16 MiB",
         [] {
           return Arguments{kResult, kResult + 8};
         }},
        {"clock_res_get", "",
         [=] {
           return Arguments{most, kResult};
         }},
        {"clock_time_get", "",
         [=] {
           return Arguments{1, most, kResult};
         }},
        {"environ_get", "16 MiB",
         [] {
           return Arguments{kResult, kAllAt};
         }},
        {"environ_sizes_get", "16 MiB",
         [] {
           return Arguments{kResult, kResult + 8};
         }},
        {"fd_advise", "",
         [this] {
           return Arguments{file(kFileBytes), 0, INT64_MAX, 5};
         }},
        // A file that grows is moved once if something is in it.
        {"fd_allocate", "the largest file",
         [this] {
           return Arguments{file(1), 0, kFileBytes};
         },
         2 * kFileBytes},
        {"fd_close", "the last name of the largest file",
         [this] {
           const auto fd = file(kFileBytes);
           EXPECT_EQ(files().remove("/workspace/f"), Errno::kSuccess);
           return Arguments{fd};
         }},
        {"fd_datasync", "", [this] { return Arguments{file(kFileBytes)}; }},
        {"fd_fdstat_get", "",
         [] {
           return Arguments{3, kResult};
         }},
        {"fd_fdstat_set_flags", "",
         [=] {
           return Arguments{3, most};
         }},
        {"fd_fdstat_set_rights", "",
         [=] {
           return Arguments{3, most, most};
         }},
        {"fd_filestat_get", "",
         [this] {
           return Arguments{file(kFileBytes), kResult};
         }},
        {"fd_filestat_set_size", "the largest file",
         [this] {
           return Arguments{file(1), kFileBytes};
         },
         2 * kFileBytes},
        {"fd_filestat_set_times", "",
         [=, this] {
           return Arguments{file(1), most, most, 5};
         }},
        {"fd_pread", "the largest file",
         [this] {
           return Arguments{file(kFileBytes), all_memory(), kBuffers, 0, kResult};
         }},
        {"fd_pread", "random numbers",
         [this] {
           return Arguments{open("dev/urandom"), all_memory(), 1, 0, kResult};
         }},
        {"fd_prestat_dir_name", "",
         [] {
           return Arguments{3, kAllAt, kAll};
         }},
        {"fd_prestat_get", "",
         [] {
           return Arguments{3, kResult};
         }},
        {"fd_pwrite", "a hole",
         [this] {
           return Arguments{file(1), all_memory(), kBuffers, kFileBytes - 1, kResult};
         },
         2 * kFileBytes},
        {"fd_pwrite", "the largest file",
         [this] {
           return Arguments{file(1), all_memory(), kBuffers, 0, kResult};
         },
         2 * kFileBytes},
        {"fd_read", "the largest file",
         [this] {
           return Arguments{file(kFileBytes), all_memory(), kBuffers, kResult};
         }},
        {"fd_read", "random numbers",
         [this] {
           return Arguments{open("dev/urandom"), all_memory(), 1, kResult};
         }},
        {"fd_read", "zeros",
         [this] {
           return Arguments{open("dev/zero"), all_memory(), 1, kResult};
         }},
        {"fd_readdir", "the fullest folder",
         [this] {
           full_folder();
           return Arguments{open_directory("workspace/d"), kAllAt, kAll, 0, kResult};
         }},
        {"fd_renumber", "onto the largest file without a name",
         [this] {
           const auto to = file(kFileBytes);
           EXPECT_EQ(files().remove("/workspace/f"), Errno::kSuccess);
           return Arguments{workspace_fd(), to};
         }},
        {"fd_seek", "",
         [this] {
           return Arguments{file(1), INT64_MAX, 0, kResult};
         }},
        {"fd_sync", "", [this] { return Arguments{file(kFileBytes)}; }},
        {"fd_tell", "",
         [this] {
           return Arguments{file(1), kResult};
         }},
        {"fd_write", "the largest file",
         [this] {
           return Arguments{file(1), all_memory(), kBuffers, kResult};
         },
         2 * kFileBytes},
        {"fd_write", "standard output",
         [this] {
           return Arguments{1, all_memory(), kBuffers, kResult};
         }},
        {"fd_write", "a pipe that nobody reads",
         [this] {
           RunOptions run = wasi().run();
           run.output = &full_pipe_;
           EXPECT_TRUE(wasi().continue_run(std::move(run)).ok());
           return Arguments{1, all_memory(), kBuffers, kResult};
         }},
        {"path_create_directory", "the longest path",
         [this] {
           return Arguments{workspace_fd(), long_path(kPath, "new"), kPathBytes};
         }},
        {"path_create_directory", "a path of all memory",
         [this] {
           return Arguments{workspace_fd(), kAllAt, kAll};
         }},
        {"path_filestat_get", "the longest path",
         [this] {
           return Arguments{workspace_fd(), 1, long_path(kPath, "l0"), kPathBytes, kResult};
         }},
        {"path_filestat_set_times", "the longest path",
         [=, this] {
           return Arguments{workspace_fd(), 1, long_path(kPath, "l0"), kPathBytes, most, most, 5};
         }},
        {"path_link", "the longest paths",
         [this] {
           file(1);
           return Arguments{workspace_fd(),
                            1,
                            long_path(kPath, "f"),
                            kPathBytes,
                            workspace_fd(),
                            long_path(kPath2, "new"),
                            kPathBytes};
         }},
        {"path_open", "the longest path to the largest file, to truncate it",
         [=, this] {
           file(kFileBytes);
           return Arguments{workspace_fd(), 1, long_path(kPath, "f"), kPathBytes, 8, most, most, 0,
                            kResult};
         }},
        {"path_readlink", "the longest path",
         [this] {
           return Arguments{workspace_fd(), long_path(kPath, "l0"), kPathBytes, kAllAt, kAll,
                            kResult};
         }},
        {"path_remove_directory", "the longest path",
         [this] {
           folder();
           return Arguments{workspace_fd(), long_path(kPath, "d"), kPathBytes};
         }},
        {"path_rename", "the fullest folder",
         [this] {
           full_folder();
           EXPECT_EQ(files().make_directory("/workspace/e"), Errno::kSuccess);
           put(kPath, "d");
           put(kPath2, "e/d");
           return Arguments{workspace_fd(), kPath, 1, workspace_fd(), kPath2, 3};
         }},
        {"path_symlink", "the longest target and path",
         [this] {
           const auto path = long_path(kPath, "new");
           put(kPath2, std::string(kPathBytesMax, 'x'));
           return Arguments{kPath2, kPathBytes, workspace_fd(), path, kPathBytes};
         }},
        {"path_unlink_file", "the largest file",
         [this] {
           EXPECT_EQ(host_write("/workspace/f", ""), Errno::kSuccess);
           EXPECT_EQ(files().truncate("/workspace/f", kFileBytes), Errno::kSuccess);
           return Arguments{workspace_fd(), long_path(kPath, "f"), kPathBytes};
         }},
        {"poll_oneoff", "clocks",
         [this] {
           return Arguments{subscriptions(1, 0), kAllAt + (1 << 20), 4096, kResult};
         }},
        {"poll_oneoff", "outputs",
         [this] {
           return Arguments{subscriptions(1, 2), kAllAt + (1 << 20), 4096, kResult};
         }},
        {"proc_exit", "", [=] { return Arguments{most}; }},
        {"proc_raise", "", [=] { return Arguments{most}; }},
        {"random_get", "all memory",
         [] {
           return Arguments{kAllAt, kAll};
         }},
        {"sched_yield", "", [] { return Arguments{}; }},
        {"sock_accept", "",
         [=] {
           return Arguments{1, most, kResult};
         }},
        {"sock_recv", "",
         [this] { return Arguments{1, all_memory(), kBuffers, 0, kResult, kResult + 8}; }},
        {"sock_send", "",
         [this] {
           return Arguments{1, all_memory(), kBuffers, 0, kResult};
         }},
        {"sock_shutdown", "",
         [=] {
           return Arguments{1, most};
         }},
    };
  }
  using Arguments = std::vector<std::uint64_t>;
};

TEST_F(LargestCalls, EveryFunctionThatGuestsGetIsInTheTable) {
  wasm::Linker linker(engine());
  ASSERT_TRUE(add_to_linker(linker, [](wasm::HostState& host) -> Wasi& {
                return static_cast<Host&>(host).wasi;
              }).ok());
  std::set<std::string> defined;
  for (const auto& definition : linker.definitions()) defined.insert(definition.name);
  std::set<std::string> in_table;
  for (const Case& one : cases()) in_table.insert(one.name);
  EXPECT_EQ(in_table, defined);
}

TEST_F(LargestCalls, EndSoonAfterAStopAndTakeLittleMemoryOfTheHost) {
  for (const Case& one : cases()) expect_end(one);
}

}  // namespace
}  // namespace sw::wasi
