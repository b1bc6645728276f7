// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "base/standard_streams.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw {
namespace fs = std::filesystem;

namespace {

Error too_large(const fs::path& path, std::size_t bytes_max) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is too large: the limit is {} bytes", path.native(), bytes_max), 0};
}

template <class Container>
Result<Container> read_all(const fs::path& path, std::size_t bytes_max) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, fmt::format("cannot open {}", path.native()));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return errno_error(errno, path.native());
  if (info.st_size > 0 && static_cast<std::size_t>(info.st_size) > bytes_max)
    return too_large(path, bytes_max);
  Container content;
  content.resize(info.st_size > 0 ? static_cast<std::size_t>(info.st_size) : 0);
  std::size_t used = 0;
  for (;;) {
    // One more byte than the size said, so that a file that grew, or a pipe, is read to its end.
    if (used == content.size()) content.resize(used + (used < 4096 ? 4096 : used / 2));
    const ssize_t got = ::read(fd.get(), content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, fmt::format("cannot read {}", path.native()));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > bytes_max) return too_large(path, bytes_max);
  }
  content.resize(used);
  return content;
}

Result<void> sync_directory(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    return errno_error(errno, fmt::format("cannot sync {}", path.native()));
  return {};
}

}  // namespace

Result<Bytes> read_file(const fs::path& path, std::size_t bytes_max) {
  return read_all<Bytes>(path, bytes_max);
}
Result<std::string> read_text_file(const fs::path& path, std::size_t bytes_max) {
  return read_all<std::string>(path, bytes_max);
}

Result<void> write_file_atomically(const fs::path& path, BytesView content) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::string temporary = (folder / ("." + path.filename().native() + ".XXXXXX")).native();
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return errno_error(errno, fmt::format("cannot create a file in {}", folder.native()));
  Result<void> written;
  if (const int failed = write_all(fd.get(), content); failed != 0)
    written = errno_error(failed, "write");
  if (written.ok() && ::fsync(fd.get()) != 0) written = errno_error(errno, "fsync");
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = errno_error(errno, "rename");
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return std::move(written).error().while_doing(fmt::format("writing {}", path.native()));
  }
  return sync_directory(folder);
}

Result<void> make_private_directory(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error)
    return errno_error(error.value(), fmt::format("cannot create {}", path.parent_path().native()));
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return errno_error(errno, fmt::format("cannot create {}", path.native()));
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return errno_error(errno, path.native());
  if (!S_ISDIR(info.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is not a folder", path.native()), 0};
  }
  if ((info.st_mode & 022) != 0 || info.st_uid != ::geteuid()) {
    return Error{
        ErrorCode::kPermission,
        fmt::format("{} must be owned and writable by you only (chmod 700), because its content is "
                    "executed",
                    path.native()),
        0};
  }
  return {};
}

Result<TemporaryDirectory> TemporaryDirectory::create(const fs::path& parent,
                                                      std::string_view prefix) {
  std::string name = (parent / (std::string(prefix) + "XXXXXX")).native();
  if (::mkdtemp(name.data()) == nullptr) {
    return errno_error(errno, fmt::format("cannot create a folder in {}", parent.native()));
  }
  return TemporaryDirectory(fs::path(name));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace sw
