// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace sw::cli {

OutputFile::OutputFile(std::filesystem::path path, std::string temporary, UniqueFd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<OutputFile> OutputFile::create(std::filesystem::path path) {
  std::error_code failed;
  const auto status = std::filesystem::symlink_status(path, failed);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_symlink(status)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not a file: pass no name, and redirect stdout", path.native()),
                 0};
  }
  std::string temporary = path.native() + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return errno_error(errno, fmt::format("cannot write {}", path.native()));
  return OutputFile(std::move(path), std::move(temporary), std::move(fd));
}

Result<void> OutputFile::write(BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(errno, fmt::format("cannot write {}", path_.native()));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> OutputFile::commit() {
  if (::fsync(fd_.get()) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return errno_error(errno, fmt::format("cannot write {}", path_.native()));
  }
  temporary_.clear();
  return {};
}

}  // namespace sw::cli
