// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A real folder for the tests of this room, and processes that have less than the test itself.

#include <grp.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "wasi/host_folder.h"
#include "wasi/test_support.h"

namespace sw::wasi {

class HostFolderFixture : public FileSystemTest {
 protected:
  HostFolderFixture()
      : parent_(TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-folder-")
                    .value()) {
    std::filesystem::create_directory(host());
  }

  std::filesystem::path host() const { return parent_.path() / "folder"; }
  void put(const std::string& name, std::string_view content) {
    std::ofstream(host() / name, std::ios::binary) << content;
  }
  std::string get(const std::string& name) { return read_text_file(host() / name).value(); }

  /// Loads the folder as /workspace.
  HostFolder load(const TreeLimits& limits = {}) {
    HostFolder folder = HostFolder::load(host(), limits, 1).value();
    workspace_ = folder.tree();
    files_->mount(kWorkspaceMount, workspace_);
    return folder;
  }

  TemporaryDirectory parent_;
};

/// What is below a folder: a line for each path, with all that a change of it would show.
inline std::map<std::string, std::string> listing(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat status = {};
    if (::lstat(entry.path().c_str(), &status) != 0) continue;
    std::string line = std::to_string(status.st_mode) + " " + std::to_string(status.st_uid) + ":" +
                       std::to_string(status.st_gid);
    if (S_ISLNK(status.st_mode)) line += " -> " + fs::read_symlink(entry.path()).native();
    if (S_ISREG(status.st_mode)) {
      line += " " + std::to_string(status.st_ino) + " " + std::to_string(status.st_mtim.tv_nsec) +
              " " + read_text_file(entry.path()).value();
    }
    lines[entry.path().lexically_relative(folder)] = line;
  }
  return lines;
}

/// Changes the tree by short names, and writes it back.
class WriteBackFixture : public HostFolderFixture {
 protected:
  void folder(const std::string& path) {
    EXPECT_EQ(files().make_directories("/workspace/" + path), Errno::kSuccess);
  }
  void file(const std::string& path) {
    EXPECT_EQ(write("/workspace/" + path, "new"), Errno::kSuccess);
  }
  void link(const std::string& path, const std::string& target) {
    EXPECT_EQ(files().symlink(target, "/workspace/" + path), Errno::kSuccess);
  }
  void remove(const std::string& path) {
    EXPECT_EQ(files().remove_all("/workspace/" + path), Errno::kSuccess);
  }
  void move(const std::string& from, const std::string& to) {
    EXPECT_EQ(files().rename("/workspace/" + from, "/workspace/" + to), Errno::kSuccess);
  }

  /// What was refused, or the error.
  static std::vector<std::string> refused(HostFolder& folder) {
    auto done = folder.write_back();
    if (!done.ok()) return {done.error().message};
    EXPECT_EQ(done->left, std::vector<std::string>());
    return done->refused;
  }
  /// How a refused link is shown.
  static std::string leads_out(const std::string& link, const std::string& target) {
    return link + " -> " + target + ": leads out of the folder";
  }
  /// Nothing is written for this reason, and nothing is left behind.
  void expect_nothing_written(HostFolder& folder, const std::string& reason) {
    const auto before = listing(host());
    const auto done = folder.write_back();
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().message, reason);
    EXPECT_EQ(listing(host()), before);
  }
  struct stat status(const std::string& name) {
    struct stat found = {};
    EXPECT_EQ(::lstat((host() / name).c_str(), &found), 0) << name;
    return found;
  }
  bool exists(const std::string& name) {
    return std::filesystem::exists(std::filesystem::symlink_status(host() / name));
  }
};

/// Runs `work` in a process of its own, which may give up what it likes. Returns what `work`
/// returns: what is wrong.
inline std::string in_child(const std::function<std::string()>& work) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return "pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string wrong = work();
    const ssize_t put = ::write(ends[1], wrong.data(), std::min<std::size_t>(wrong.size(), 4000));
    ::_exit(put < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string wrong;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    wrong.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0)
    wrong += " (the child did not end well)";
  return wrong;
}

/// From now on this process is an ordinary user's. Those who are one already stay who they are.
inline bool become_ordinary_user() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) return true;
  return ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
         ::setresuid(kNobody, kNobody, kNobody) == 0;
}

/// From now on this process's system call `number` fails with `error`.
inline bool forbid_call(int number, int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter = {.len = std::size(program), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace sw::wasi
