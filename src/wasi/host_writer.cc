// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace sw::wasi {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Result<void> write_all(int fd, BytesView content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "write " + path);
    content = content.subspan(static_cast<std::size_t>(count));
  }
  if (::fsync(fd) != 0) return errno_error(errno, "sync " + path);
  return {};
}

}  // namespace

bool leads_out(std::string_view path, std::string_view target) {
  if (target.empty() || target.front() == '/') return true;
  std::ptrdiff_t depth = 0;
  for (const char c : path) depth += c == '/' ? 1 : 0;
  while (!target.empty()) {
    const std::size_t end = std::min(target.find('/'), target.size());
    const std::string_view part = target.substr(0, end);
    target.remove_prefix(std::min(end + 1, target.size()));
    if (part == "..") --depth;
    else if (!part.empty() && part != ".") ++depth;
    if (depth < 0) return true;
  }
  return false;
}

Result<HostWriter> HostWriter::open(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "open folder " + folder.string());
  return HostWriter(std::move(fd));
}

Result<UniqueFd> HostWriter::parent_of(const std::string& path) const {
  UniqueFd at(::openat(folder_.get(), ".", kDirectoryFlags));
  if (!at) return errno_error(errno, "open folder");
  for (std::size_t begin = 0, end = 0; (end = path.find('/', begin)) != std::string::npos; begin = end + 1) {
    UniqueFd next(::openat(at.get(), path.substr(begin, end - begin).c_str(), kDirectoryFlags));
    if (!next) return errno_error(errno, "open folder " + path.substr(0, end));
    at = std::move(next);
  }
  return at;
}

Result<void> HostWriter::make_directory(const std::string& path) {
  SW_TRY(const UniqueFd parent, parent_of(path));
  if (::mkdirat(parent.get(), name_of(path).c_str(), 0777) == 0) return {};
  if (errno != EEXIST) return errno_error(errno, "make folder " + path);
  const UniqueFd there(::openat(parent.get(), name_of(path).c_str(), kDirectoryFlags));
  if (!there) return errno_error(errno, "make folder " + path);
  return {};
}

Result<void> HostWriter::write_file(const std::string& path, BytesView content) {
  SW_TRY(const UniqueFd parent, parent_of(path));
  const std::string name = name_of(path);
  struct stat old = {};
  const bool existed =
      ::fstatat(parent.get(), name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(old.st_mode);
  // Names may be as long as the host allows, so the temporary one cannot be built from it.
  std::string temporary;
  UniqueFd fd;
  for (int attempt = 0; !fd && attempt < 100; ++attempt) {
    temporary = fmt::format(".sandbox-workers-{}-{}.tmp", ::getpid(), attempt);
    fd = UniqueFd(
        ::openat(parent.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd && errno != EEXIST) return errno_error(errno, "create " + path);
  }
  if (!fd) return errno_error(EEXIST, "create " + path);
  Result<void> written = write_all(fd.get(), content, path);
  if (written.ok() && existed && ::fchmod(fd.get(), old.st_mode & 07777) != 0) {
    written = errno_error(errno, "set the mode of " + path);
  }
  if (written.ok() && ::renameat(parent.get(), temporary.c_str(), parent.get(), name.c_str()) != 0) {
    written = errno_error(errno, "replace " + path);
  }
  if (!written.ok()) ::unlinkat(parent.get(), temporary.c_str(), 0);
  return written;
}

Result<void> HostWriter::make_link(const std::string& path, const std::string& target) {
  SW_TRY(const UniqueFd parent, parent_of(path));
  const std::string name = name_of(path);
  struct stat old = {};
  if (::fstatat(parent.get(), name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(old.st_mode)) {
    ::unlinkat(parent.get(), name.c_str(), 0);
  }
  if (::symlinkat(target.c_str(), parent.get(), name.c_str()) != 0) return errno_error(errno, "make link " + path);
  return {};
}

Result<void> HostWriter::remove(const std::string& path, FileType type) {
  auto parent = parent_of(path);
  if (!parent.ok())
    return parent.error().code == ErrorCode::kNotFound ? Result<void>() : std::move(parent).error();
  const int flags = type == FileType::kDirectory ? AT_REMOVEDIR : 0;
  if (::unlinkat(parent->get(), name_of(path).c_str(), flags) == 0) return {};
  const bool fine = errno == ENOENT || (flags != 0 && (errno == ENOTEMPTY || errno == EEXIST));
  return fine ? Result<void>() : errno_error(errno, "remove " + path);
}

}  // namespace sw::wasi
