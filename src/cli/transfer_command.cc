// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/transfer_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/standard_streams.h"
#include "cli/sandbox_command.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

namespace {

Error invalid(std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

/// Reads an open file, as long as somebody waits for the command.
ReadBytes reader_of(const Caller& caller, const UniqueFd& file, const std::string& name) {
  return [&caller, fd = file.get(), name](std::span<std::byte> buffer) -> Result<std::size_t> {
    while (true) {
      if (const int failed = caller.streams.wait(fd, POLLIN); failed != 0) {
        return errno_error(failed, fmt::format("cannot read {}", name));
      }
      const ssize_t got = ::read(fd, buffer.data(), buffer.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR && errno != EAGAIN) {
        return errno_error(errno, fmt::format("cannot read {}", name));
      }
    }
  };
}

ReadBytes reader_of(BytesView left) {
  return [left](std::span<std::byte> buffer) mutable -> Result<std::size_t> {
    const BytesView now = left.first(std::min(left.size(), buffer.size()));
    std::ranges::copy(now, buffer.begin());
    left = left.subspan(now.size());
    return now.size();
  };
}

}  // namespace

Result<int> export_command(const Caller& caller, DataFolder& folder,
                           const TransferOptions& options) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, options.sandbox));
  const ExportOptions selection{.contexts = options.contexts, .history = !options.without_history};
  if (options.file != "-") {
    SW_CHECK_OK(sandbox.export_to(caller.reach(options.file), selection));
    return 0;
  }
  const int out = caller.streams.fd(wasi::Stream::kStdout);
  if (::isatty(out) == 1) {
    return invalid("an export is not for a terminal: pass a file, or redirect stdout");
  }
  const auto exported = sandbox.export_to(
      [&](BytesView bytes) -> Result<void> {
        const int failed = caller.streams.write(wasi::Stream::kStdout, bytes);
        return failed == 0 ? Result<void>() : cannot_print(failed);
      },
      selection);
  if (!exported.ok()) return exported.error();
  return 0;
}

Result<int> import_command(const Caller& caller, DataFolder& folder,
                           const TransferOptions& options) {
  SW_CHECK_OK(check_sandbox_id(options.sandbox));
  SW_TRY(const Host host, folder.open());
  if (options.file == "-") {
    SW_TRY(const std::string_view input, caller.streams.read_input(kInputBytesMax));
    SW_CHECK_OK(host.import_sandbox(options.sandbox, reader_of(as_bytes(input))));
    return 0;
  }
  const UniqueFd file(
      ::open(caller.reach(options.file).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return errno_error(errno, fmt::format("cannot open {}", options.file));
  auto imported = host.import_sandbox(options.sandbox, reader_of(caller, file, options.file));
  if (!imported.ok()) return std::move(imported).error().while_doing(options.file);
  return 0;
}

}  // namespace sw::cli
