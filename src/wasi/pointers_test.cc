// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Every pointer that a guest passes to any function, put at the last place where it fits, one byte
// further, and at the end of the address space. A bad one is EFAULT and changes nothing.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "wasi/guest_support.h"

namespace sw::wasi {
namespace {

/// A pointer among a call's arguments and how many bytes it must cover.
struct Pointer {
  std::size_t argument;
  std::uint32_t bytes;
};

struct Case {
  const char* name;
  std::vector<std::uint64_t> arguments;  // a call that succeeds (sockets: that finds no socket)
  std::vector<Pointer> pointers;
};

// What set_up makes: workspace/f open as 4, the directory workspace as 5; "f" at kPath, "g" at
// kPath2.
constexpr std::uint64_t kFile = 4;
constexpr std::uint64_t kFolder = 5;

class Pointers : public GuestTest {
 protected:
  void set_up() {
    start({.args = {"prog", "a"}, .env = {"K=V"}});
    ASSERT_EQ(host_write("/workspace/f", "content"), Errno::kSuccess);
    ASSERT_EQ(files().symlink("f", "/workspace/l"), Errno::kSuccess);
    ASSERT_EQ(files().make_directory("/workspace/d"), Errno::kSuccess);
    ASSERT_EQ(open("workspace/f"), kFile);
    ASSERT_EQ(open_directory("workspace"), kFolder);
    put(kPath, "f");
    put(kPath + 1, "l");
    put(kPath + 2, "d");
    put(kPath2, "g");
    put(kBuffer, "buffer");
    buffer(6);
    memory().range(kSubscription, 48).value();
    store(kSubscription + 16, std::uint64_t{1});  // the monotonic clock, no time at all
  }

  /// What a call must leave alone if one of its pointers is bad.
  std::string state() {
    std::string state;
    const auto visit = [&](const std::string& path, Node& node) {
      state += path + " " + std::to_string(node.links) + " " + std::to_string(node.times.modified) +
               " " + node.target;
      if (node.type == FileType::kRegularFile) state += as_text(node.content.view().value());
      state += "\n";
      return true;
    };
    EXPECT_EQ(workspace_->walk(visit), Errno::kSuccess);
    state += std::to_string(wasi().descriptors().open_count()) + " open, at " +
             std::to_string(wasi().descriptors().find(kFile)->position) + "\n" + output_.out;
    return state;
  }

  static constexpr std::uint32_t kSubscription = 2048;

  const std::vector<Case> cases_ = {
      {"args_get", {kResult, kBuffer}, {{0, 8}, {1, 7}}},
      {"args_sizes_get", {kResult, kResult + 8}, {{0, 4}, {1, 4}}},
      {"clock_res_get", {1, kResult}, {{1, 8}}},
      {"clock_time_get", {1, 0, kResult}, {{2, 8}}},
      {"environ_get", {kResult, kBuffer}, {{0, 4}, {1, 4}}},
      {"environ_sizes_get", {kResult, kResult + 8}, {{0, 4}, {1, 4}}},
      {"fd_advise", {kFile, 0, 0, 0}, {}},
      {"fd_allocate", {kFile, 0, 1}, {}},
      {"fd_close", {kFolder}, {}},
      {"fd_datasync", {kFile}, {}},
      {"fd_fdstat_get", {kFile, kResult}, {{1, 24}}},
      {"fd_fdstat_set_flags", {kFile, 0}, {}},
      {"fd_fdstat_set_rights", {kFile, 0, 0}, {}},
      {"fd_filestat_get", {kFile, kResult}, {{1, 64}}},
      {"fd_filestat_set_size", {kFile, 1}, {}},
      {"fd_filestat_set_times", {kFile, 1, 1, 1}, {}},
      {"fd_pread", {kFile, kIovs, 1, 0, kResult}, {{1, 8}, {4, 4}}},
      {"fd_prestat_dir_name", {3, kBuffer, 1}, {{1, 1}}},
      {"fd_prestat_get", {3, kResult}, {{1, 8}}},
      {"fd_pwrite", {kFile, kIovs, 1, 0, kResult}, {{1, 8}, {4, 4}}},
      {"fd_read", {kFile, kIovs, 1, kResult}, {{1, 8}, {3, 4}}},
      {"fd_readdir", {kFolder, kBuffer, 100, 0, kResult}, {{1, 100}, {4, 4}}},
      {"fd_renumber", {kFile, kFolder}, {}},
      {"fd_seek", {kFile, 3, 0, kResult}, {{3, 8}}},
      {"fd_sync", {kFile}, {}},
      {"fd_tell", {kFile, kResult}, {{1, 8}}},
      {"fd_write", {1, kIovs, 1, kResult}, {{1, 8}, {3, 4}}},
      {"path_create_directory", {kFolder, kPath2, 1}, {{1, 1}}},
      {"path_filestat_get", {kFolder, 0, kPath, 1, kResult}, {{2, 1}, {4, 64}}},
      {"path_filestat_set_times", {kFolder, 0, kPath, 1, 1, 1, 5}, {{2, 1}}},
      {"path_link", {kFolder, 0, kPath, 1, kFolder, kPath2, 1}, {{2, 1}, {5, 1}}},
      {"path_open", {kFolder, 0, kPath2, 1, 1, 0, 0, 0, kResult}, {{2, 1}, {8, 4}}},
      {"path_readlink", {kFolder, kPath + 1, 1, kBuffer, 10, kResult}, {{1, 1}, {3, 10}, {5, 4}}},
      {"path_remove_directory", {kFolder, kPath + 2, 1}, {{1, 1}}},
      {"path_rename", {kFolder, kPath, 1, kFolder, kPath2, 1}, {{1, 1}, {4, 1}}},
      {"path_symlink", {kPath, 1, kFolder, kPath2, 1}, {{0, 1}, {3, 1}}},
      {"path_unlink_file", {kFolder, kPath, 1}, {{1, 1}}},
      {"poll_oneoff", {kSubscription, kResult + 64, 1, kResult}, {{0, 48}, {1, 32}, {3, 4}}},
      {"proc_raise", {1}, {}},
      {"random_get", {kBuffer, 100}, {{0, 100}}},
      {"sched_yield", {}, {}},
      {"sock_accept", {kFile, 0, kResult}, {{2, 4}}},
      {"sock_recv", {kFile, kIovs, 1, 0, kResult, kResult + 8}, {{1, 8}, {4, 4}, {5, 2}}},
      {"sock_send", {kFile, kIovs, 1, 0, kResult}, {{1, 8}, {4, 4}}},
      {"sock_shutdown", {kFile, 0}, {}},
  };
};

Errno expected_of(std::string_view name) {
  if (name.starts_with("sock_")) return Errno::kNotsock;
  return name == "proc_raise" ? Errno::kNosys : Errno::kSuccess;
}

TEST_F(Pointers, EveryFunctionIsInTheTable) {
  std::set<std::string> names{"proc_exit"};
  for (const Case& one : cases_) names.insert(one.name);
  for (const FunctionSignature& function : kFunctions)
    EXPECT_TRUE(names.contains(function.name)) << function.name;
  EXPECT_EQ(names.size(), std::size(kFunctions));
}

TEST_F(Pointers, GoodOnesSucceed) {
  for (const Case& one : cases_) {
    set_up();
    EXPECT_EQ(call(one.name, one.arguments), expected_of(one.name)) << one.name;
  }
}

TEST_F(Pointers, TheLastPlaceInMemoryIsGood) {
  for (const Case& one : cases_) {
    for (const Pointer& pointer : one.pointers) {
      set_up();
      auto arguments = one.arguments;
      const auto last = static_cast<std::uint32_t>(kGuestMemoryBytes - pointer.bytes);
      put(last, text(static_cast<std::uint32_t>(arguments[pointer.argument]), pointer.bytes));
      arguments[pointer.argument] = last;
      EXPECT_EQ(call(one.name, arguments), expected_of(one.name))
          << one.name << " argument " << pointer.argument;
    }
  }
}

TEST_F(Pointers, OneByteTooFarIsAFaultAndChangesNothing) {
  for (const Case& one : cases_) {
    for (const Pointer& pointer : one.pointers) {
      for (const std::uint64_t bad :
           {kGuestMemoryBytes - pointer.bytes + 1, std::uint64_t{0xFFFF'FFFF}}) {
        set_up();
        auto arguments = one.arguments;
        arguments[pointer.argument] = bad;
        const std::string before = state();
        EXPECT_EQ(call(one.name, arguments), Errno::kFault)
            << one.name << " argument " << pointer.argument;
        EXPECT_EQ(state(), before) << one.name << " argument " << pointer.argument;
      }
    }
  }
}

TEST_F(Pointers, BuffersMustLieInMemory) {
  struct Buffer {
    std::uint32_t address;
    std::uint32_t length;
    Errno expected;
  };
  const Buffer buffers[] = {
      {65535, 1, Errno::kSuccess},
      {65535, 2, Errno::kFault},
      {65536, 0, Errno::kSuccess},
      {65537, 0, Errno::kFault},
      {0xFFFF'FFFF, 1, Errno::kFault},
      {0xFFFF'FFFF, 0xFFFF'FFFF, Errno::kFault},
      {kBuffer, 0xFFFF'FFFF, Errno::kFault},
      {0, 65536, Errno::kSuccess},
      {0, 65537, Errno::kFault},
  };
  for (const char* name : {"fd_read", "fd_write", "fd_pread", "fd_pwrite"}) {
    const bool positional = std::string_view(name).starts_with("fd_p");
    for (const Buffer& one : buffers) {
      set_up();
      store(kIovs, kBuffer);  // a good one first: nothing of it may be done either
      store(kIovs + 4, 3U);
      store(kIovs + 8, one.address);
      store(kIovs + 12, one.length);
      const std::string before = state();
      const auto answer = positional ? call(name, {kFile, kIovs, 2, 0, kResult})
                                     : call(name, {kFile, kIovs, 2, kResult});
      EXPECT_EQ(answer, one.expected) << name << " " << one.address << " " << one.length;
      if (one.expected == Errno::kFault) {
        EXPECT_EQ(state(), before) << name;
      }
    }
  }
}

TEST_F(Pointers, LengthsThatOverflowAreFaults) {
  set_up();
  EXPECT_EQ(call("random_get", {16, 0xFFFF'FFFF}), Errno::kFault);
  EXPECT_EQ(call("fd_readdir", {kFolder, 16, 0xFFFF'FFFF, 0, kResult}), Errno::kFault);
  EXPECT_EQ(call("path_open", {kFolder, 0, 16, 0xFFFF'FFFF, 0, 0, 0, 0, kResult}), Errno::kFault);
  EXPECT_EQ(call("path_readlink", {kFolder, kPath + 1, 1, 16, 0xFFFF'FFFF, kResult}),
            Errno::kFault);
  EXPECT_EQ(call("fd_read", {kFile, 0xFFFF'FFF8, 2, kResult}), Errno::kFault);
  EXPECT_EQ(call("poll_oneoff", {kSubscription, 0xFFFF'FFE0, 2, kResult}), Errno::kFault);
}

TEST_F(Pointers, OverlappingOnesAreTheGuestsOwnBusiness) {
  set_up();
  store(kIovs, kIovs);  // the buffer covers its own description
  store(kIovs + 4, 16U);
  EXPECT_EQ(call("fd_read", {kFile, kIovs, 1, kIovs}), Errno::kSuccess);
  EXPECT_EQ(u32(kIovs), 7U);
}

}  // namespace
}  // namespace sw::wasi
