// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What two processes say to each other over the socket of a data folder (docs/data-folder.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

/// A command for another process: as it was given, and where.
struct AskedCommand {
  std::filesystem::path folder;  ///< the working directory
  std::vector<std::string> arguments;
};

/// More than a command line can have: the kernel's limit is 6 MiB.
inline constexpr std::size_t kAskedBytesMax = std::size_t{8} << 20;

/// Before the command: a word, and how many bytes follow. The first byte comes with the descriptors
/// of stdin, stdout and stderr.
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kAskedStreams = 3;
using AskedStreams = std::array<UniqueFd, kAskedStreams>;

std::array<char, kHeaderBytes> asked_header(std::size_t body_bytes);
/// How many bytes follow; nothing if this is no header, or too much.
std::optional<std::size_t> parse_asked_header(std::string_view header);

/// Errors: kInvalidArgument for a command that is too long.
Result<std::string> asked_body(const AskedCommand& command);
/// `body` may be anything. Errors: kInvalidArgument.
Result<AskedCommand> parse_asked_body(std::string_view body);

/// What comes back: that the command begins, then how it ended.
struct Reply {
  enum class Kind : char {
    kBegins = 'b',
    kEnded = 'e',
    kOwnerEnds = 'o',  ///< the command was interrupted, because the process that ran it ends
  };
  Kind kind = Kind::kBegins;
  std::uint8_t status = 0;  ///< exit status
};
inline constexpr std::size_t kReplyBytes = 2;

std::array<char, kReplyBytes> reply_bytes(Reply reply);
std::optional<Reply> parse_reply(std::string_view bytes);

/// What the asking process sends while its command runs to interrupt it; any other byte means the
/// same, and so does the end of the connection.
inline constexpr char kInterrupt = 'i';

/// Sends bytes together with descriptors. False if the other end is gone.
bool send_with(int socket, std::string_view bytes, std::span<const int> descriptors);
/// The same without.
bool send_all(int socket, std::string_view bytes);

/// What there is, at most `to.size()` bytes, and the descriptors that came with it. Does not wait.
struct Received {
  ssize_t count = 0;  ///< 0: the other end is gone; below: errno says why
  AskedStreams streams;
  bool has_streams = false;  ///< exactly kAskedStreams of them
};
Received receive(int socket, std::span<char> to);

}  // namespace sw::cli
