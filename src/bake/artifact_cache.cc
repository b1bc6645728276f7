// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "bake/artifact_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::bake {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordName = "digests";
// A few dozen files of a package, each with a line.
constexpr std::size_t kRecordBytesMax = std::size_t{1} << 20;
constexpr std::size_t kDigestDigits = 64;

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
};

/// By the file's name.
using Records = std::map<std::string, Record, std::less<>>;

Error damaged(const fs::path& path, std::string_view why) {
  return Error{ErrorCode::kCorrupt, fmt::format("{} {}", path.native(), why), 0};
}

std::int64_t to_ns(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

bool is_ours_alone(const struct stat& info) {
  return (info.st_mode & 022) == 0 && info.st_uid == ::geteuid();
}

/// Of a regular file that nobody else can write. Opens nothing: what lies there may be a pipe.
Result<Identity> identity_of(const fs::path& file) {
  struct stat info = {};
  if (::lstat(file.c_str(), &info) != 0) return errno_error(errno, file.native());
  if (!S_ISREG(info.st_mode)) return damaged(file, "is not a file");
  if (!is_ours_alone(info)) return damaged(file, "can be changed by others");
  return Identity{info.st_ino, info.st_size, to_ns(info.st_mtim), to_ns(info.st_ctim)};
}

/// Names of the files that need a record: all but the record itself, and what begins with a dot,
/// which nobody opens (what a process left that died while renewing the record).
Result<std::set<std::string>> files_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name != kRecordName && !name.starts_with('.')) names.insert(name);
  }
  if (error) return errno_error(error.value(), folder.native());
  return names;
}

Result<void> write_records(const fs::path& folder, const Records& records) {
  std::string text = "1\n";  // the format's version
  for (const auto& [name, record] : records) {
    text += fmt::format("{} {} {} {} {} {}\n", record.sha256, record.identity.inode,
                        record.identity.size, record.identity.modified_ns,
                        record.identity.changed_ns, name);
  }
  return write_file_atomically(folder / kRecordName, as_bytes(text));
}

/// Takes a number and the space after it off the front.
template <class T>
bool take_number(std::string_view& line, T& number) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

/// One line, without its end. False: this is none.
bool parse_record(std::string_view line, Records& records) {
  Record record;
  record.sha256 = line.substr(0, kDigestDigits);
  if (record.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  if (line.size() <= kDigestDigits || line[kDigestDigits] != ' ') return false;
  line.remove_prefix(kDigestDigits + 1);
  const bool read = take_number(line, record.identity.inode) &&
                    take_number(line, record.identity.size) &&
                    take_number(line, record.identity.modified_ns) &&
                    take_number(line, record.identity.changed_ns);
  return read && records.emplace(line, std::move(record)).second;
}

/// Whole or not at all: each line has its end.
Result<Records> read_records(const fs::path& folder) {
  const fs::path path = folder / kRecordName;
  SW_CHECK_OK(identity_of(path));
  SW_TRY(const std::string text, read_text_file(path, kRecordBytesMax));
  std::string_view rest = text;
  Records records;
  bool good = rest.starts_with("1\n") && rest.ends_with('\n');
  if (good) rest.remove_prefix(2);
  while (good && !rest.empty()) {
    const std::size_t end = rest.find('\n');
    good = parse_record(rest.substr(0, end), records);
    rest.remove_prefix(end + 1);
  }
  if (!good || records.empty()) return damaged(path, "is damaged");
  return records;
}

/// Records every file of a folder that was just made.
Result<void> seal(const fs::path& folder) {
  Records records;
  SW_TRY(const auto names, files_in(folder));
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    std::error_code error;
    // Those of a link would be those of what it leads to.
    if (!fs::is_regular_file(fs::symlink_status(file, error)))
      return damaged(file, "is not a file");
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, fs::perm_options::replace,
                    error);
    if (error) return errno_error(error.value(), file.native());
    SW_TRY(std::string digest, sha256_file(file));
    SW_TRY(const Identity identity, identity_of(file));
    records.insert_or_assign(name, Record{std::move(digest), identity});
  }
  return write_records(folder, records);
}

/// The folder itself, whatever takes its name from here on; the errors name what lies behind.
Result<UniqueFd> open_folder(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return errno_error(errno, folder.native());
  if (!is_ours_alone(info)) return damaged(folder, "can be changed by others");
  return fd;
}

/// What has no digest is not used: the record and the folder must name the same files. So a record
/// that was cut short is noticed by what it lacks.
Result<void> verify(const fs::path& path, std::span<const std::string> wanted) {
  SW_TRY(const UniqueFd opened, open_folder(path));
  // Another process may find damage and put a new folder here. It must not get the record of this
  // one.
  const fs::path folder = fmt::format("/proc/self/fd/{}", opened.get());
  SW_TRY(Records records, read_records(folder));
  SW_TRY(const std::set<std::string> names, files_in(folder));
  if (!std::ranges::equal(names, records, {}, {}, &Records::value_type::first))
    return damaged(path, "does not have the recorded files");
  for (const std::string& name : wanted) {
    if (!names.contains(name)) return damaged(path, "lacks " + name);
  }
  bool renewed = false;
  for (auto& [name, record] : records) {
    const fs::path file = folder / name;
    SW_TRY(const Identity now, identity_of(file));
    if (now == record.identity) continue;
    SW_TRY(const std::string digest, sha256_file(file));
    if (digest != record.sha256)
      return damaged(path / name, "does not have the content it was made with");
    record.identity = now;
    renewed = true;
  }
  // Not being able to renew the record only means hashing again the next time.
  if (renewed) (void)write_records(folder, records);
  return {};
}

/// Missing or damaged. What could not be looked at, because this process is short of descriptors or
/// memory, may be good, and others may use it.
bool is_to_be_made(const Error& error) { return error.code != ErrorCode::kUnavailable; }

/// An exclusive lock between processes; released with the object.
Result<UniqueFd> lock_file(const fs::path& path, const Progress& progress) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return errno_error(errno, fmt::format("cannot open {}", path.native()));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  progress("waiting for another process that is building it", std::chrono::seconds(0));
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
  if (auto folder = environment_path("XDG_CACHE_HOME"); !folder.empty())
    return folder / "sandbox-workers";
  if (auto home = environment_path("HOME"); !home.empty())
    return home / ".cache" / "sandbox-workers";
  return fs::temp_directory_path() / fmt::format("sandbox-workers-{}", ::geteuid());
}

Result<ArtifactCache> ArtifactCache::open(const fs::path& root) {
  SW_CHECK_OK(make_private_directory(root));
  const fs::path artifacts = root / "artifacts";
  SW_CHECK_OK(make_private_directory(artifacts));
  return ArtifactCache(artifacts);
}

Result<fs::path> ArtifactCache::find(std::string_view name,
                                     std::span<const std::string> files) const {
  const fs::path folder = root_ / name;
  SW_CHECK_OK(verify(folder, files));
  return folder;
}

Result<fs::path> ArtifactCache::get(std::string_view name, std::span<const std::string> files,
                                    const std::function<Result<void>(const fs::path&)>& make,
                                    const Progress& progress) const {
  if (auto found = find(name, files); found.ok() || !is_to_be_made(found.error())) return found;
  SW_TRY(const UniqueFd lock, lock_file(root_ / fmt::format(".{}.lock", name), progress));
  // Whoever held the lock may have made it meanwhile.
  if (auto found = find(name, files); found.ok() || !is_to_be_made(found.error())) return found;
  const fs::path folder = root_ / name;
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error))) {
    progress(fmt::format("{} is damaged; rebuilding it", name), std::chrono::seconds(0));
    SW_TRY(const auto aside, TemporaryDirectory::create(root_, ".damaged-"));
    fs::rename(folder, aside.path() / "artifact", error);
    if (error) return errno_error(error.value(), fmt::format("cannot replace {}", folder.native()));
  }
  // Ours is the lock, so what is there under this name was left by a process that died while making
  // it.
  const std::string making = fmt::format(".making-{}-", name);
  remove_all_beginning_with(root_, making);
  SW_TRY(const auto temporary, TemporaryDirectory::create(root_, making));
  const fs::path made = temporary.path() / "artifact";
  SW_CHECK_OK(make_private_directory(made));
  SW_CHECK_OK(make(made));
  SW_CHECK_OK(seal(made));
  fs::rename(made, folder, error);
  if (error)
    return errno_error(error.value(), fmt::format("cannot put {} in place", folder.native()));
  return find(name, files);
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

}  // namespace sw::bake
