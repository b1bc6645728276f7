// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/data_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "sandbox_workers/base/files.h"

namespace sw::storage {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSuffix = ".sqlite";

// So that the entry of a new folder survives power loss.
Result<void> sync_folder(const fs::path& path) {
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0)
    return errno_error(errno, fmt::format("cannot sync {}", path.native()));
  return {};
}

/// The number of the process that has the folder; empty: it has not written it yet.
std::string owner_of(int lock) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(lock, text.data(), text.size(), 0);
  std::string_view pid(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  pid = pid.substr(0, pid.find_first_not_of("0123456789"));
  return std::string(pid);
}

Error in_use(const fs::path& folder, const std::string& owner) {
  const std::string who = owner.empty() ? "another process" : fmt::format("process {}", owner);
  return {.code = ErrorCode::kUnavailable,
          .message = fmt::format("the data folder {} is in use by {}", folder.native(), who),
          .context = {{"usedBy", owner}}};
}

}  // namespace

Result<DataFolder> DataFolder::own(const fs::path& path) {
  SW_CHECK_OK(make_private_directory(path));
  const fs::path file = path / "lock";
  // The process id is written into it: never into what a link there leads to.
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return errno_error(errno, fmt::format("cannot open {}", file.native()));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return errno_error(errno, fmt::format("cannot lock {}", file.native()));
    return in_use(path, owner_of(lock.get()));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) {
    return errno_error(errno, fmt::format("cannot write {}", file.native()));
  }
  return DataFolder(path, std::move(lock));
}

fs::path DataFolder::object(std::int64_t file) const {
  return path_ / "objects" / fmt::format("{:02x}", file & 0xff) /
         fmt::format("{:x}{}", file, kSuffix);
}

Result<void> DataFolder::make_room_for(std::int64_t file) const {
  const fs::path folder = object(file).parent_path();
  std::error_code error;
  if (fs::is_directory(folder, error)) return {};
  for (const fs::path& missing : {folder.parent_path(), folder}) {
    if (::mkdir(missing.c_str(), 0700) == 0) {
      SW_CHECK_OK(sync_folder(missing.parent_path()));
    } else if (errno != EEXIST) {
      return errno_error(errno, fmt::format("cannot create {}", missing.native()));
    }
  }
  return {};
}

Result<std::vector<std::int64_t>> DataFolder::object_files() const {
  std::vector<std::int64_t> files;
  std::error_code error;
  fs::recursive_directory_iterator entries(path_ / "objects", error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().native();
    if (!name.ends_with(kSuffix)) continue;
    std::int64_t file = 0;
    const char* end = name.data() + name.size() - kSuffix.size();
    const auto parsed = std::from_chars(name.data(), end, file, 16);
    if (parsed.ec == std::errc() && parsed.ptr == end && object(file) == entries->path())
      files.push_back(file);
  }
  if (error) return errno_error(error.value(), fmt::format("cannot list {}", path_.native()));
  return files;
}

}  // namespace sw::storage
