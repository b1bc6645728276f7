// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "wasi/host_access.h"

namespace sw::wasi {
namespace {

constexpr mode_t kPermissions = 0777;

/// File capabilities and the like are not kept: the content is another.
bool is_kept(std::string_view attribute) {
  return attribute == "system.posix_acl_access" || attribute.starts_with("user.");
}

/// The kernel's limits are 64 KiB for the names and for a value, so buffers of that size hold all
/// there is.
Result<void> copy_extended_attributes(int from, int to, const std::string& path) {
  std::vector<char> names(64 << 10);
  std::vector<char> value(64 << 10);
  const ssize_t length = ::flistxattr(from, names.data(), names.size());
  if (length < 0 && errno != ENOTSUP)
    return errno_error(errno, "read the attributes of " + shown(path));
  const std::string_view all(names.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  for (std::size_t at = 0; at < all.size();) {
    const std::string name(names.data() + at);
    at += name.size() + 1;
    if (!is_kept(name)) continue;
    const ssize_t size = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (size < 0 && errno == ENODATA) continue;
    if (size < 0 ||
        ::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(size), 0) != 0) {
      return errno_error(errno, fmt::format("keep the attribute {} of {}", name, shown(path)));
    }
  }
  return {};
}

}  // namespace

Result<void> write_content(int fd, BytesView content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "write " + shown(path));
    content = content.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> keep_attributes(int from, int to, const std::string& path) {
  struct stat old = {};
  struct stat made = {};
  if (::fstat(from, &old) != 0 || ::fstat(to, &made) != 0)
    return errno_error(errno, "stat " + shown(path));
  const bool same_owner = old.st_uid == made.st_uid && old.st_gid == made.st_gid;
  if (!same_owner && ::fchown(to, old.st_uid, old.st_gid) != 0) {
    return errno_error(errno, fmt::format("keep the owner {} and group {} of {}", old.st_uid,
                                          old.st_gid, shown(path)));
  }
  if (::fchmod(to, old.st_mode & kPermissions) != 0)
    return errno_error(errno, "set the mode of " + shown(path));
  return copy_extended_attributes(from, to, path);
}

Result<void> sync_to_disk(int fd, const std::string& path) {
  if (::fsync(fd) != 0) return errno_error(errno, "sync " + shown(path));
  return {};
}

}  // namespace sw::wasi
