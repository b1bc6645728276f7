// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/asked_message.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sw::cli {

namespace {

constexpr std::string_view kWord = "SWc1";

Error invalid(std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

// Enough for what is wanted; the kernel closes the rest.
struct alignas(cmsghdr) Control {
  std::array<char, CMSG_SPACE(sizeof(int) * kAskedStreams)> bytes = {};
};

}  // namespace

std::array<char, kHeaderBytes> asked_header(std::size_t body_bytes) {
  std::array<char, kHeaderBytes> header = {};
  std::ranges::copy(kWord, header.begin());
  for (std::size_t i = 0; i < 4; ++i)
    header[4 + i] = static_cast<char>((body_bytes >> (8 * i)) & 0xFF);
  return header;
}

std::optional<std::size_t> parse_asked_header(std::string_view header) {
  if (header.size() != kHeaderBytes || !header.starts_with(kWord)) return std::nullopt;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < 4; ++i)
    bytes |= std::size_t{static_cast<unsigned char>(header[4 + i])} << (8 * i);
  return bytes <= kAskedBytesMax ? std::optional(bytes) : std::nullopt;
}

Result<std::string> asked_body(const AskedCommand& command) {
  std::string body = command.folder.native() + '\0';
  for (const std::string& argument : command.arguments) body += argument + '\0';
  if (body.size() > kAskedBytesMax) return invalid("the command line is too long");
  return body;
}

Result<AskedCommand> parse_asked_body(std::string_view body) {
  if (body.size() > kAskedBytesMax || !body.starts_with('/') || !body.ends_with('\0')) {
    return invalid("not a command");
  }
  AskedCommand command;
  const auto next = [&] {
    const std::size_t end = body.find('\0');
    const std::string_view text = body.substr(0, end);
    body.remove_prefix(end + 1);
    return std::string(text);
  };
  command.folder = next();
  while (!body.empty()) command.arguments.push_back(next());
  return command;
}

std::array<char, kReplyBytes> reply_bytes(Reply reply) {
  return {static_cast<char>(reply.kind), static_cast<char>(reply.status)};
}

std::optional<Reply> parse_reply(std::string_view bytes) {
  if (bytes.size() != kReplyBytes) return std::nullopt;
  const Reply reply{.kind = static_cast<Reply::Kind>(bytes[0]),
                    .status = static_cast<std::uint8_t>(bytes[1])};
  switch (reply.kind) {
    case Reply::Kind::kBegins:
    case Reply::Kind::kEnded:
    case Reply::Kind::kOwnerEnds: return reply;
  }
  return std::nullopt;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool send_with(int socket, std::string_view bytes, std::span<const int> descriptors) {
  iovec data = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  Control control;
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent > 0 && send_all(socket, bytes.substr(static_cast<std::size_t>(sent)));
}

Received receive(int socket, std::span<char> to) {
  iovec data = {.iov_base = to.data(), .iov_len = to.size()};
  Control control;
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  // Without the padding, in which the kernel would put one more.
  message.msg_controllen = CMSG_LEN(sizeof(int) * kAskedStreams);
  Received received;
  received.count = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received.count < 0) return received;
  std::size_t known = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      UniqueFd owned(fd);
      if (known < kAskedStreams) received.streams[known++] = std::move(owned);
    }
  }
  received.has_streams = known == kAskedStreams && (message.msg_flags & MSG_CTRUNC) == 0;
  return received;
}

}  // namespace sw::cli
