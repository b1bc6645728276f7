// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_access.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <memory>
#include <vector>

namespace sw::wasi {
namespace {

constexpr std::string_view kTemporaryPrefix = ".sandbox-workers-";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
// Deeper folders are not looked into. A tree has fewer levels.
constexpr std::ptrdiff_t kDepthMax = 512;

int openat2(int folder, const std::string& path, int flags, std::uint64_t resolve,
            mode_t mode = 0) {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags) | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  // EAGAIN: something was renamed meanwhile. Somebody who renames without end does not hold us for
  // ever.
  for (int attempt = 0;; ++attempt) {
    const auto fd =
        static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || attempt == 1000) return fd;
  }
}

/// The kernel is too old, or a filter forbids the call. EPERM may also be about the file: then the
/// other way fails too.
bool lacks_openat2(int error) { return error == ENOSYS || error == EPERM; }

UniqueFd open_by_components(int folder, std::string_view path, int flags, mode_t mode = 0) {
  UniqueFd at;
  for (;;) {
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    const int step = path.empty() ? flags : O_PATH | O_DIRECTORY;
    UniqueFd next(
        ::openat(at ? at.get() : folder, name.c_str(), step | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!next || path.empty()) return next;
    at = std::move(next);
  }
}

UniqueFd open_step(int folder, const std::string& path, int flags, mode_t mode = 0) {
  UniqueFd fd(openat2(folder, path, flags | O_NOFOLLOW, kInside | RESOLVE_NO_SYMLINKS, mode));
  if (!fd && lacks_openat2(errno)) return open_by_components(folder, path, flags, mode);
  return fd;
}

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using DirHandle = std::unique_ptr<DIR, CloseDir>;

Result<std::vector<std::string>> names_in(int fd, const std::string& path) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  const DirHandle directory(copy < 0 ? nullptr : ::fdopendir(copy));
  if (!directory) return errno_error(errno, "read folder " + shown(path));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return errno_error(errno, "read folder " + shown(path));
  return names;
}

template <class Container>
Result<Container> read_to_end(int fd, std::size_t bytes_max, const std::string& name) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return errno_error(errno, "stat " + name);
  const Error too_large{ErrorCode::kInvalidArgument,
                        fmt::format("{} is too large: the limit is {} bytes", name, bytes_max), 0};
  const std::size_t size = status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0;
  if (size > bytes_max) return too_large;
  Container bytes;
  bytes.resize(size + 1);  // one more, to find out that it ends there
  std::size_t used = 0;
  for (;;) {
    if (used == bytes.size()) bytes.resize(std::max<std::size_t>(4096, used + used / 2));
    const ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "cannot read " + name);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > bytes_max) return too_large;
  }
  bytes.resize(used);
  return bytes;
}

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

UniqueFd open_beneath(int folder, std::string_view path, int flags, mode_t mode) {
  constexpr std::size_t kStepMax = PATH_MAX - 1;
  UniqueFd at;
  if (path.empty()) path = ".";
  for (;;) {
    const int from = at ? at.get() : folder;
    if (path.size() <= kStepMax) return open_step(from, std::string(path), flags, mode);
    const std::size_t end = path.rfind('/', kStepMax);  // a name is shorter than a step
    if (end == std::string_view::npos) {
      errno = ENAMETOOLONG;
      return {};
    }
    UniqueFd next = open_step(from, std::string(path.substr(0, end)), O_PATH | O_DIRECTORY);
    if (!next) return next;
    at = std::move(next);
    path.remove_prefix(end + 1);
  }
}

UniqueFd open_following_beneath(int folder, const std::string& path, int flags) {
  UniqueFd fd(openat2(folder, path, flags, kInside));
  if (!fd && lacks_openat2(errno)) return open_by_components(folder, path, flags);
  return fd;
}

bool kernel_leaves(int folder, const std::string& path) {
  return !UniqueFd(openat2(folder, path, O_PATH, kInside)) && errno == EXDEV;
}

bool look_at(int folder, const std::string& name, HostEntry& entry) {
  if (::fstatat(folder, name.c_str(), &entry.status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (!entry.is_link()) return true;
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(folder, name.c_str(), target, sizeof target);
  entry.opaque = length <= 0 || static_cast<std::size_t>(length) == sizeof target;
  if (!entry.opaque) entry.target.assign(target, static_cast<std::size_t>(length));
  return true;
}

Result<HostEntries> scan_host_folder(int folder) {
  HostEntries entries;
  std::deque<std::string> folders = {""};
  for (; !folders.empty(); folders.pop_front()) {
    const std::string& path = folders.front();
    const UniqueFd fd = open_beneath(folder, path, O_RDONLY | O_DIRECTORY);
    if (!fd) {
      // Not ours to read, or gone or replaced meanwhile.
      const bool fine = errno == EACCES || errno == EPERM || errno == ENOENT || errno == ENOTDIR ||
                        errno == ELOOP;
      if (!fine || path.empty()) return errno_error(errno, "open folder " + shown(path));
      entries.at(path).opaque = true;
      continue;
    }
    SW_TRY(const auto names, names_in(fd.get(), path));
    for (const std::string& name : names) {
      HostEntry entry;
      if (!look_at(fd.get(), name, entry)) {
        if (errno == ENOENT) continue;
        return errno_error(errno, "stat " + shown(path + "/" + name));
      }
      if (entries.size() == kHostEntriesMax) {
        return Error{
            ErrorCode::kLimitExceeded,
            fmt::format("the folder holds more than {} files and folders", kHostEntriesMax), 0};
      }
      const std::string below = path.empty() ? name : path + "/" + name;
      if (entry.is_directory()) {
        if (std::count(below.begin(), below.end(), '/') < kDepthMax) folders.push_back(below);
        else entry.opaque = true;
      }
      entries.insert_or_assign(below, std::move(entry));
    }
  }
  return entries;
}

bool same_but_renamed(const HostEntry& before, const HostEntry& now) {
  const struct stat& a = before.status;
  const struct stat& b = now.status;
  if ((a.st_mode & S_IFMT) != (b.st_mode & S_IFMT)) return false;
  if (before.is_directory()) return true;
  if (before.is_link()) return before.target == now.target && !before.opaque && !now.opaque;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         nanoseconds(a.st_mtim) == nanoseconds(b.st_mtim);
}

bool same_entry(const HostEntry& before, const HostEntry& now) {
  if (!same_but_renamed(before, now)) return false;
  return !before.is_file() || nanoseconds(before.status.st_ctim) == nanoseconds(now.status.st_ctim);
}

std::string_view kind_of(const HostEntry& entry) {
  switch (entry.status.st_mode & S_IFMT) {
    case S_IFREG: return "a file";
    case S_IFDIR: return "a folder";
    case S_IFLNK: return "a link";
    case S_IFIFO: return "a FIFO";
    case S_IFSOCK: return "a socket";
    default: return "a device";
  }
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporaryPrefix) && name.ends_with(kTemporarySuffix);
}

std::string temporary_name(std::size_t number) {
  return fmt::format("{}{}-{}{}", kTemporaryPrefix, ::getpid(), number, kTemporarySuffix);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string parent_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string shown(const std::string& path) {
  constexpr std::size_t kEndMax = 240;
  if (path.size() > 3 * kEndMax) {
    return shown(path.substr(0, kEndMax)) + " … " + shown(path.substr(path.size() - kEndMax));
  }
  std::string quoted = fmt::format("{:?}", path);
  return quoted.size() == path.size() + 2 ? path : quoted;
}

Result<Bytes> read_open_file(int fd, std::size_t bytes_max, const std::string& name) {
  return read_to_end<Bytes>(fd, bytes_max, name);
}
Result<std::string> read_open_text(int fd, std::size_t bytes_max, const std::string& name) {
  return read_to_end<std::string>(fd, bytes_max, name);
}

Result<std::string> read_file_beneath(const std::filesystem::path& folder, const std::string& name,
                                      std::size_t bytes_max) {
  const std::string path = (folder / name).native();
  const UniqueFd at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!at) return errno_error(errno, "open folder " + folder.native());
  // Opening a device may already do something, so it is looked at first.
  for (const int flags : {O_PATH, O_RDONLY | O_NONBLOCK | O_NOCTTY}) {
    const UniqueFd fd = open_following_beneath(at.get(), name, flags);
    if (!fd && errno == EXDEV) {
      return Error{ErrorCode::kInvalidArgument, path + " is a link that leads out of its folder",
                   0};
    }
    if (!fd) return errno_error(errno, "cannot open " + path);
    HostEntry entry;
    if (::fstat(fd.get(), &entry.status) != 0) return errno_error(errno, "stat " + path);
    if (!entry.is_file()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is {}, not a file", path, kind_of(entry)), 0};
    }
    if ((flags & O_PATH) == 0) return read_open_text(fd.get(), bytes_max, path);
  }
  return Error{ErrorCode::kInternal, path, 0};
}

}  // namespace sw::wasi
