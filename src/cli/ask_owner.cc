// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/ask_owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include "base/standard_streams.h"
#include "base/thread_safety.h"
#include "cli/asked_message.h"
#include "cli/owner_socket.h"
#include "cli/statuses.h"

namespace sw::cli {

using namespace std::chrono_literals;

namespace {

// For the command to begin.
constexpr std::chrono::milliseconds kPatience{30'000};
constexpr std::chrono::milliseconds kInterruptedPatience{1'000};
constexpr std::chrono::milliseconds kSlice{100};

/// What there is on stdin, or nothing.
Result<UniqueFd> input_for_owner(const Caller& caller, bool reads_input) {
  UniqueFd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file) return errno_error(errno, "memfd_create");
  if (!reads_input) return file;
  SW_TRY(const std::string_view input, caller.streams.read_input(kInputBytesMax));
  const int failed = write_all(file.get(), as_bytes(input));
  if (failed != 0) return errno_error(failed, "cannot keep the input");
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return errno_error(errno, "lseek");
  return file;
}

/// False: the other end is gone.
Result<bool> send_command(int owner, const Caller& caller,
                          const std::vector<std::string>& arguments, int input) {
  std::error_code failed;
  const AskedCommand command{.folder = std::filesystem::current_path(failed),
                             .arguments = arguments};
  if (failed) return errno_error(failed.value(), "the working directory");
  SW_TRY(const std::string body, asked_body(command));
  const std::array<int, kAskedStreams> streams = {input, caller.streams.fd(wasi::Stream::kStdout),
                                                  caller.streams.fd(wasi::Stream::kStderr)};
  const auto header = asked_header(body.size());
  return send_with(owner, std::string_view(header.data(), header.size()), streams) &&
         send_all(owner, body);
}

std::optional<Reply> next_reply(int owner) {
  std::array<char, kReplyBytes> bytes = {};
  for (std::size_t known = 0; known < bytes.size();) {
    const ssize_t got = ::recv(owner, bytes.data() + known, bytes.size() - known, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    known += static_cast<std::size_t>(got);
  }
  return parse_reply(std::string_view(bytes.data(), bytes.size()));
}

/// One command at the owner.
class Asking {
 public:
  Asking(int owner, const Caller& caller)
      : owner_(owner), caller_(caller), interrupt_(caller.interrupts.take()) {}

  Result<std::optional<int>> ask(const std::vector<std::string>& arguments, int input) {
    SW_TRY(const bool sent, send(arguments, input));
    if (sent && !answers()) {
      if (is_interrupted()) return std::optional(kStatusCancelled);
      return Error{.code = ErrorCode::kUnreachable,
                   .message = fmt::format("process {}, which has the data folder, does not answer",
                                          process_)};
    }
    const auto begins = sent ? next_reply(owner_) : std::nullopt;
    if (begins && begins->kind == Reply::Kind::kBegins) return std::optional(await());
    if (is_interrupted()) return std::optional(kStatusCancelled);
    return std::optional<int>();
  }

 private:
  bool is_interrupted() const { return interrupt_->token().stop_requested(); }

  /// Whether there is a reply, or will be none.
  bool answers() const {
    for (auto left = kPatience; left > 0ms; left -= kSlice) {
      if (is_interrupted()) left = std::min(left, kInterruptedPatience);
      pollfd watched = {.fd = owner_, .events = POLLIN, .revents = 0};
      if (::poll(&watched, 1, static_cast<int>(kSlice.count())) > 0) return true;
    }
    return false;
  }

  int await() {
    const auto reply = next_reply(owner_);
    if (reply && reply->kind == Reply::Kind::kEnded) return reply->status;
    const std::string_view how =
        reply ? "is ending and interrupted it" : "ended before it was done";
    caller_.streams.complain(fmt::format("process {}, which ran this command, {}", process_, how));
    return kStatusOwnerEnded;
  }

  Result<bool> send(const std::vector<std::string>& arguments, int input) SW_EXCLUDES(sending_) {
    const MutexLock lock(sending_);
    return send_command(owner_, caller_, arguments, input);
  }

  /// Not in the midst of the command, where it would be a part of that.
  void pass_on() SW_EXCLUDES(sending_) {
    const MutexLock lock(sending_);
    (void)send_all(owner_, std::string_view(&kInterrupt, 1));
  }

  const int owner_;
  const Caller& caller_;
  const pid_t process_ = peer_of(owner_).value_or(0);
  Mutex sending_;
  const std::unique_ptr<InterruptScope> interrupt_;
  const std::stop_callback<std::function<void()>> on_interrupt_{interrupt_->token(),
                                                                [this] { pass_on(); }};
};

}  // namespace

Result<std::optional<int>> ask_owner(const UniqueFd& owner, const Caller& caller,
                                     const std::vector<std::string>& arguments, bool reads_input) {
  SW_TRY(const UniqueFd input, input_for_owner(caller, reads_input));
  return Asking(owner.get(), caller).ask(arguments, input.get());
}

}  // namespace sw::cli
