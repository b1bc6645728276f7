// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Every function of preview 1 with the largest arguments it takes, stopped while it works: it must
// end after little more CPU time, and take little memory of the host.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "wasi/largest_calls_fixture.h"

namespace sw::wasi {

std::vector<LargestCalls::Case> LargestCalls::cases() {
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
         return Arguments{
             workspace_fd(),           1,         long_path(kPath, "f"), kPathBytes, workspace_fd(),
             long_path(kPath2, "new"), kPathBytes};
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

namespace {

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
