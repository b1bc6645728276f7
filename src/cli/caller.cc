// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/caller.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

/// Paths that mean something else in each process, and what they mean in another one's.
struct OwnPath {
  std::string_view prefix;
  std::string_view below_proc;
};
constexpr std::array kOwnPaths = {
    OwnPath{"/dev/fd/", "fd/"},     OwnPath{"/dev/stdin", "fd/0"},
    OwnPath{"/dev/stdout", "fd/1"}, OwnPath{"/dev/stderr", "fd/2"},
    OwnPath{"/proc/self/", ""},     OwnPath{"/proc/thread-self/", ""},
};

}  // namespace

fs::path Caller::reach(const fs::path& name) const {
  if (folder.empty()) return name;
  const std::string path = (folder / name).lexically_normal().native();
  for (const OwnPath& own : kOwnPaths) {
    if (!path.starts_with(own.prefix)) continue;
    return fmt::format("/proc/{}/{}{}", process, own.below_proc, path.substr(own.prefix.size()));
  }
  return folder / name;
}

Result<Bytes> Caller::read_file(const std::string& name, std::size_t bytes_max) const {
  // A FIFO is not waited for here but below, where the wait can end.
  const UniqueFd file(::open(reach(name).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return errno_error(errno, fmt::format("cannot open {}", name));
  Bytes content;
  for (std::size_t used = 0;;) {
    content.resize(used + kBlockBytes);
    if (const int failed = streams.wait(file.get(), POLLIN); failed != 0) {
      return errno_error(failed, fmt::format("cannot read {}", name));
    }
    const ssize_t got = ::read(file.get(), content.data() + used, kBlockBytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return errno_error(errno, fmt::format("cannot read {}", name));
    used += static_cast<std::size_t>(got);
    content.resize(used);
    if (got == 0) return content;
    if (used > bytes_max) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is too large: the limit is {} bytes", name, bytes_max), 0};
    }
  }
}

Result<std::string> Caller::read_text_file(const std::string& name, std::size_t bytes_max) const {
  SW_TRY(const Bytes content, read_file(name, bytes_max));
  return std::string(as_text(content));
}

}  // namespace sw::cli
