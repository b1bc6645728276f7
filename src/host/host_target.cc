// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "host/host_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "wasi/host_file.h"

namespace sw::host {

namespace fs = std::filesystem;

namespace {

constexpr const char* kName = "new";

fs::path parent_of(const fs::path& place) {
  return place.has_parent_path() ? place.parent_path() : fs::path(".");
}

Error in_the_way(const fs::path& place) {
  return Error{ErrorCode::kFileExists, fmt::format("{} exists", place.native()), 0};
}

/// A new file in the place of an old one is the same to everybody but those who have it open.
Result<void> keep_attributes(const fs::path& place, const fs::path& made) {
  const UniqueFd old(::open(place.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!old || ::fstat(old.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const UniqueFd file(::open(made.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return errno_error(errno, fmt::format("cannot open {}", made.native()));
  return wasi::keep_attributes(old.get(), file.get(), place.native());
}

bool rename_if_free(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // A file system that cannot do it at once.
  struct stat status = {};
  if (::lstat(to.c_str(), &status) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::rename(from.c_str(), to.c_str()) == 0;
}

}  // namespace

Result<HostTarget> HostTarget::create(const fs::path& place) {
  SW_TRY(TemporaryDirectory folder,
         TemporaryDirectory::create(parent_of(place), ".sandbox-workers-"));
  return HostTarget(place, std::move(folder));
}

fs::path HostTarget::made(const std::string& path) const {
  const fs::path target = folder_.path() / kName;
  return path.empty() ? target : target / path;
}

Result<void> HostTarget::make_folder(const std::string& path) const {
  if (::mkdir(made(path).c_str(), 0777) == 0) return {};
  return errno_error(errno, fmt::format("cannot create the folder {}", (place_ / path).native()));
}

Result<void> HostTarget::write_file(const std::string& path, BytesView content) const {
  const std::string shown = path.empty() ? place_.native() : (place_ / path).native();
  const UniqueFd file(
      ::open(made(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) return errno_error(errno, fmt::format("cannot create {}", shown));
  SW_CHECK_OK(wasi::write_content(file.get(), content, shown));
  // What replaces another file must not be less durable than that was.
  return path.empty() ? wasi::sync_to_disk(file.get(), shown) : Result<void>();
}

Result<UniqueFd> HostTarget::create_file() const {
  UniqueFd file(
      ::open(made("").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno_error(errno, fmt::format("cannot create {}", place_.native()));
  return file;
}

Result<void> HostTarget::put(IfThere if_there) const {
  const fs::path from = made("");
  if (if_there == IfThere::kFail) {
    if (rename_if_free(from, place_)) return {};
    if (errno == EEXIST) return in_the_way(place_);
  } else {
    struct stat status = {};
    if (::lstat(place_.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
        !S_ISLNK(status.st_mode)) {
      return Error{ErrorCode::kFileExists,
                   fmt::format("{} exists, and only files can be replaced", place_.native()), 0};
    }
    SW_CHECK_OK(keep_attributes(place_, from));
    if (::rename(from.c_str(), place_.c_str()) == 0) return {};
  }
  return errno_error(errno, fmt::format("cannot create {}", place_.native()));
}

}  // namespace sw::host
