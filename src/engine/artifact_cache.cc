// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/artifact_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordName = "digests";

/// What the kernel changes whenever a file's content may have changed.
struct Identity {
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const Identity&) const = default;
};

struct Record {
  std::string sha256;
  Identity identity;
  std::string name;
};

std::int64_t to_ns(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

Result<Identity> identity_of(const fs::path& file) {
  struct stat info = {};
  if (::lstat(file.c_str(), &info) != 0) return errno_error(errno, file.native());
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kCorrupt, fmt::format("{} is no file", file.native()), 0};
  return Identity{info.st_ino, info.st_size, to_ns(info.st_mtim), to_ns(info.st_ctim)};
}

Result<void> write_records(const fs::path& folder, const std::vector<Record>& records) {
  std::string text = "1\n";  // the format's version
  for (const Record& record : records) {
    text += fmt::format("{} {} {} {} {} {}\n", record.sha256, record.identity.inode, record.identity.size,
                        record.identity.modified_ns, record.identity.changed_ns, record.name);
  }
  return write_file_atomically(folder / kRecordName, as_bytes(text));
}

Result<std::vector<Record>> read_records(const fs::path& folder) {
  SW_TRY(const std::string text, read_text_file(folder / kRecordName));
  std::istringstream lines(text);
  std::string version;
  std::getline(lines, version);
  std::vector<Record> records;
  Record record;
  while (lines >> record.sha256 >> record.identity.inode >> record.identity.size >> record.identity.modified_ns >>
         record.identity.changed_ns >> record.name) {
    records.push_back(record);
  }
  if (version != "1" || records.empty() || !lines.eof()) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is damaged", (folder / kRecordName).native()), 0};
  }
  return records;
}

/// Records every file of a folder that was just made.
Result<void> seal(const fs::path& folder) {
  std::vector<Record> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    SW_TRY(std::string digest, sha256_file(entry.path()));
    SW_TRY(const Identity identity, identity_of(entry.path()));
    records.push_back({std::move(digest), identity, entry.path().filename().native()});
  }
  if (error) return errno_error(error.value(), folder.native());
  return write_records(folder, records);
}

Result<void> verify(const fs::path& folder) {
  SW_TRY(std::vector<Record> records, read_records(folder));
  bool renewed = false;
  for (Record& record : records) {
    const fs::path file = folder / record.name;
    SW_TRY(const Identity now, identity_of(file));
    if (now == record.identity) continue;
    SW_TRY(const std::string digest, sha256_file(file));
    if (digest != record.sha256) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} does not have the content it was made with", file.native()), 0};
    }
    record.identity = now;
    renewed = true;
  }
  // Not being able to renew the record only means hashing again the next time.
  if (renewed) (void)write_records(folder, records);
  return {};
}

/// An exclusive lock between processes; released with the object.
Result<UniqueFd> lock_file(const fs::path& path, const Progress& progress) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return errno_error(errno, fmt::format("cannot open {}", path.native()));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  progress("waiting for another process that makes the same", std::chrono::seconds(0));
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return errno_error(errno, fmt::format("cannot lock {}", path.native()));
  }
  return fd;
}

void remove_all_beginning_with(const fs::path& folder, std::string_view prefix) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().native().starts_with(prefix)) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove_all(path, error);
}

fs::path environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

}  // namespace

fs::path default_cache_folder() {
  if (auto folder = environment_path("SANDBOX_WORKERS_CACHE"); !folder.empty()) return folder;
  if (auto folder = environment_path("XDG_CACHE_HOME"); !folder.empty()) return folder / "sandbox-workers";
  if (auto home = environment_path("HOME"); !home.empty()) return home / ".cache" / "sandbox-workers";
  return fs::temp_directory_path() / fmt::format("sandbox-workers-{}", ::geteuid());
}

Result<ArtifactCache> ArtifactCache::open(const fs::path& root) {
  SW_CHECK_OK(make_private_directory(root));
  const fs::path artifacts = root / "artifacts";
  SW_CHECK_OK(make_private_directory(artifacts));
  return ArtifactCache(artifacts);
}

Result<fs::path> ArtifactCache::find(std::string_view name) const {
  const fs::path folder = root_ / name;
  SW_CHECK_OK(verify(folder));
  return folder;
}

Result<fs::path> ArtifactCache::get(std::string_view name,
                                    const std::function<Result<void>(const fs::path&)>& make,
                                    const Progress& progress) const {
  if (auto found = find(name); found.ok()) return found;
  SW_TRY(const UniqueFd lock, lock_file(root_ / fmt::format(".{}.lock", name), progress));
  // Whoever held the lock may have made it meanwhile.
  if (auto found = find(name); found.ok()) return found;
  const fs::path folder = root_ / name;
  std::error_code error;
  if (fs::exists(folder, error)) {
    progress(fmt::format("{} is damaged and is made anew", name), std::chrono::seconds(0));
    SW_TRY(const auto aside, TemporaryDirectory::create(root_, ".damaged-"));
    fs::rename(folder, aside.path() / "artifact", error);
    if (error) return errno_error(error.value(), fmt::format("cannot replace {}", folder.native()));
  }
  // Ours is the lock, so what is there under this name was left by a process that died while making it.
  const std::string making = fmt::format(".making-{}-", name);
  remove_all_beginning_with(root_, making);
  SW_TRY(const auto temporary, TemporaryDirectory::create(root_, making));
  const fs::path made = temporary.path() / "artifact";
  SW_CHECK_OK(make_private_directory(made));
  SW_CHECK_OK(make(made));
  SW_CHECK_OK(seal(made));
  fs::rename(made, folder, error);
  if (error) return errno_error(error.value(), fmt::format("cannot put {} in place", folder.native()));
  return folder;
}

void ArtifactCache::prune(std::string_view prefix, std::size_t keep) const {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_, error)) {
    if (entry.path().filename().native().starts_with(prefix)) {
      found.emplace_back(fs::last_write_time(entry.path(), error), entry.path());
    }
  }
  if (found.size() <= keep) return;
  std::ranges::sort(found, std::greater<>());
  for (const auto& [time, path] : std::span(found).subspan(keep)) fs::remove_all(path, error);
}

}  // namespace sw::engine
