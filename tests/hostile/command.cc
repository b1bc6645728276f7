// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "hostile/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern "C" {  // the header of glibc 2.36 does not say so itself
#include <sys/pidfd.h>
}

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::hostile {

namespace {

constexpr std::size_t kOutputBytesMax = std::size_t{64} << 20;

Result<pid_t> start(const std::vector<std::string>& command, const std::filesystem::path& in,
                    const std::filesystem::path& out) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, words.front(), &files, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return errno_error(failed, fmt::format("cannot start {}", command.front()));
  return pid;
}

/// Whether the process ended in time. If not, it is killed.
bool wait_for(pid_t pid, std::chrono::milliseconds patience) {
  const UniqueFd process(::pidfd_open(pid, 0));
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, static_cast<int>(patience.count())) == 1) return true;
  ::kill(pid, SIGKILL);
  return false;
}

std::chrono::nanoseconds to_duration(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

Result<Ended> run_command(const std::vector<std::string>& command, std::string_view input,
                          const std::filesystem::path& folder, std::chrono::milliseconds patience) {
  SW_CHECK_OK(write_file_atomically(folder / "in", as_bytes(input)));
  SW_TRY(const pid_t pid, start(command, folder / "in", folder / "out"));
  const bool in_time = wait_for(pid, patience);
  int status = 0;
  rusage used{};
  if (::wait4(pid, &status, 0, &used) != pid) return errno_error(errno, "cannot wait");
  if (!in_time)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("it did not end within {} ms", patience.count()), 0};
  Ended ended;
  ended.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ended.resident_bytes_max = static_cast<std::uint64_t>(used.ru_maxrss) << 10;
  ended.cpu = to_duration(used.ru_utime) + to_duration(used.ru_stime);
  SW_TRY(ended.out, read_text_file(folder / "out", kOutputBytesMax));
  return ended;
}

}  // namespace sw::hostile
