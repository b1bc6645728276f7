// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/ask_owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string_view>

#include "base/standard_streams.h"
#include "cli/asked_message.h"
#include "cli/owner_socket.h"
#include "cli/statuses.h"

namespace sw::cli {

namespace {

constexpr std::chrono::milliseconds kPatience{30'000};

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

bool answers(int owner) {
  pollfd watched = {.fd = owner, .events = POLLIN, .revents = 0};
  int ready = 0;
  do ready = ::poll(&watched, 1, static_cast<int>(kPatience.count()));
  while (ready < 0 && errno == EINTR);
  return ready != 0;
}

/// Waits for the command's end. An interruption is passed on.
int await(int owner, const Caller& caller) {
  const auto interrupt = caller.interrupts.take();
  const std::stop_callback pass_on(
      interrupt->token(), [owner] { (void)send_all(owner, std::string_view(&kInterrupt, 1)); });
  const auto process = peer_of(owner).value_or(0);
  const auto reply = next_reply(owner);
  if (reply && reply->kind == Reply::Kind::kEnded) return reply->status;
  caller.streams.complain(
      reply
          ? fmt::format("process {}, which ran this command, is ending and interrupted it", process)
          : fmt::format("process {}, which ran this command, ended before it was done", process));
  return kStatusOwnerEnded;
}

}  // namespace

Result<std::optional<int>> ask_owner(const UniqueFd& owner, const Caller& caller,
                                     const std::vector<std::string>& arguments, bool reads_input) {
  SW_TRY(const UniqueFd input, input_for_owner(caller, reads_input));
  SW_TRY(const bool sent, send_command(owner.get(), caller, arguments, input.get()));
  if (!sent) return std::optional<int>();
  if (!answers(owner.get())) {
    return Error{.code = ErrorCode::kUnreachable,
                 .message = fmt::format("process {}, which has the data folder, does not answer",
                                        peer_of(owner.get()).value_or(0))};
  }
  const auto reply = next_reply(owner.get());
  if (!reply || reply->kind != Reply::Kind::kBegins) return std::optional<int>();
  return std::optional(await(owner.get(), caller));
}

}  // namespace sw::cli
