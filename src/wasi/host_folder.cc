// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "wasi/host_plan.h"
#include "wasi/host_writer.h"

namespace sw::wasi {
namespace {

// A message names as many things as one can read.
constexpr std::size_t kNamedMax = 20;

std::uint64_t nanoseconds(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

Error limit(std::string message) { return Error{ErrorCode::kLimitExceeded, std::move(message), 0}; }

/// For one message, however many there are.
std::string listed(const std::vector<std::string>& things) {
  const std::size_t named = std::min(things.size(), kNamedMax);
  const std::string rest =
      things.size() > named ? fmt::format("; and {} more", things.size() - named) : "";
  return fmt::format(
      "{}{}", fmt::join(things.begin(), things.begin() + static_cast<std::ptrdiff_t>(named), "; "),
      rest);
}

Result<UniqueFd> open_folder(const std::filesystem::path& host) {
  UniqueFd fd(::open(host.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "open folder " + host.string());
  return fd;
}

/// Write-backs to one folder happen one after another, in all processes of this program.
class FolderLock {
 public:
  /// Others may lock the folder for reasons of their own, so it is not waited for without end.
  static Result<FolderLock> take(int folder) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) break;  // a file system without locks
      if (std::chrono::steady_clock::now() > deadline) {
        return Error{ErrorCode::kConflict, "another process holds a lock on the folder", 0};
      }
      std::this_thread::sleep_for(5ms);
    }
    return FolderLock(folder);
  }
  /// For who only looks: nothing if a write-back is under way.
  static std::optional<FolderLock> try_to_share(int folder) {
    while (::flock(folder, LOCK_SH | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      if (errno != EINTR) break;  // a file system without locks
    }
    return FolderLock(folder);
  }
  FolderLock(FolderLock&& other) noexcept : folder_(std::exchange(other.folder_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock() {
    if (folder_ >= 0) ::flock(folder_, LOCK_UN);
  }

 private:
  explicit FolderLock(int folder) : folder_(folder) {}
  int folder_;
};

/// Copies what a scan of a host folder found. What it reads may have changed since then.
class Loader {
 public:
  Loader(int folder, Tree& tree, Node& directory, std::uint64_t now_ns)
      : folder_(folder), tree_(tree), now_ns_(now_ns), folders_{{"", &directory}} {}

  Result<void> load(HostEntries& entries) {
    for (auto& [path, entry] : entries) {
      const auto parent = folders_.find(parent_path(path));
      if (parent == folders_.end()) continue;  // left out, and so is this
      SW_TRY(const bool loaded, load_entry(path, entry, *parent->second));
      if (loaded) continue;
      (is_temporary_name(name_of(path)) ? temporary_ : skipped_).push_back(path);
    }
    return {};
  }

  /// What was left out, ready to be shown.
  std::vector<std::string> skipped() const {
    std::vector<std::string> paths = skipped_;
    if (!temporary_.empty()) add_leftovers(paths);
    std::vector<std::string> lines;
    std::transform(paths.begin(), paths.end(), std::back_inserter(lines), shown);
    return lines;
  }

 private:
  Error refused(Errno error, const std::string& path) const;
  Result<bool> load_entry(const std::string& path, HostEntry& entry, Node& to);
  Result<bool> load_directory(const std::string& path, const HostEntry& entry, Node& to);
  Result<bool> load_file(const std::string& path, HostEntry& entry, Node& to);
  Result<bool> load_link(const std::string& path, const HostEntry& entry, Node& to);
  void add_leftovers(std::vector<std::string>& paths) const;

  int folder_;
  Tree& tree_;
  std::uint64_t now_ns_;
  std::map<std::string, Node*> folders_;
  std::vector<std::string> skipped_;
  std::vector<std::string> temporary_;  // of a write-back that is under way, or was killed
};

/// Why the tree does not take it.
Error Loader::refused(Errno error, const std::string& path) const {
  const TreeLimits& limits = tree_.limits();
  switch (error) {
    case Errno::kFbig:
      return limit(fmt::format("{} has more than {} bytes", shown(path), limits.file_bytes_max));
    case Errno::kNospc:
      return limit(fmt::format("{} does not fit: the limits are {} bytes and {} files and folders",
                               shown(path), limits.tree_bytes_max, limits.entries_max));
    case Errno::kNametoolong:
      return limit(
          fmt::format("{} is nested more than {} folders deep", shown(path), limits.depth_max));
    default:
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: {}", shown(path), errno_text(error)), 0};
  }
}

Result<bool> Loader::load_entry(const std::string& path, HostEntry& entry, Node& to) {
  const std::string name = name_of(path);
  if (name_error(name) != Errno::kSuccess || is_temporary_name(name) || entry.opaque) return false;
  if (entry.is_directory()) return load_directory(path, entry, to);
  if (entry.is_link()) return load_link(path, entry, to);
  return entry.is_file() ? load_file(path, entry, to) : false;
}

Result<bool> Loader::load_directory(const std::string& path, const HostEntry& entry, Node& to) {
  const auto made = tree_.create(to, name_of(path), FileType::kDirectory, now_ns_);
  if (!made.ok()) return refused(made.error(), path);
  made.value()->times.modified = nanoseconds(entry.status.st_mtim);
  folders_.emplace(path, made.value().get());
  return true;
}

Result<bool> Loader::load_file(const std::string& path, HostEntry& entry, Node& to) {
  // O_NONBLOCK: what was a file may have become a pipe, and opening that would wait.
  const UniqueFd fd = open_beneath(folder_, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  // What is read is what later changes are told from.
  if (!fd || ::fstat(fd.get(), &entry.status) != 0 || !entry.is_file()) return false;
  const auto size = static_cast<std::uint64_t>(entry.status.st_size);
  const std::uint64_t room = tree_.limits().tree_bytes_max - tree_.usage().bytes;
  if (size > tree_.limits().file_bytes_max) return refused(Errno::kFbig, path);
  if (size > room) return refused(Errno::kNospc, path);
  SW_TRY(Bytes bytes,
         read_open_file(fd.get(), std::min(tree_.limits().file_bytes_max, room), shown(path)));
  const auto made = tree_.create(to, name_of(path), FileType::kRegularFile, now_ns_);
  if (!made.ok()) return refused(made.error(), path);
  const Errno set = tree_.set_content(**made, SharedBytes::own(std::move(bytes)), now_ns_);
  if (set != Errno::kSuccess) return refused(set, path);
  made.value()->times.modified = nanoseconds(entry.status.st_mtim);
  return true;
}

Result<bool> Loader::load_link(const std::string& path, const HostEntry& entry, Node& to) {
  const auto made = tree_.create_symlink(to, name_of(path), entry.target, now_ns_);
  if (made.error() == Errno::kIlseq) return false;
  if (!made.ok()) return refused(made.error(), path);
  return true;
}

/// While a write-back is under way, nobody can tell its files from what one that was killed has
/// left: then none is named.
void Loader::add_leftovers(std::vector<std::string>& paths) const {
  const auto lock = FolderLock::try_to_share(folder_);
  if (!lock) return;
  for (const std::string& path : temporary_) {
    const UniqueFd parent = open_beneath(folder_, parent_path(path), O_PATH | O_DIRECTORY);
    HostEntry entry;
    if (parent && look_at(parent.get(), name_of(path), entry)) paths.push_back(path);
  }
}

}  // namespace

Result<std::vector<std::string>> copy_host_folder(const std::filesystem::path& host, Tree& tree,
                                                  Node& directory, std::uint64_t now_ns) {
  SW_TRY(const UniqueFd folder, open_folder(host));
  SW_TRY(HostEntries entries, scan_host_folder(folder.get()));
  Loader loader(folder.get(), tree, directory, now_ns);
  SW_CHECK_OK(loader.load(entries));
  return loader.skipped();
}

Result<HostFolder> HostFolder::load(const std::filesystem::path& host, const TreeLimits& limits,
                                    std::uint64_t now_ns) {
  HostFolder folder;
  SW_TRY(folder.folder_, open_folder(host));
  folder.tree_ = std::make_shared<Tree>(limits, now_ns);
  SW_TRY(folder.loaded_, scan_host_folder(folder.folder_.get()));
  Loader loader(folder.folder_.get(), *folder.tree_, folder.tree_->root(), now_ns);
  SW_CHECK_OK(loader.load(folder.loaded_));
  folder.skipped_ = loader.skipped();
  folder.known_ = folder.tree_->state();
  return folder;
}

std::vector<Change> HostFolder::changes() const { return known_.changes_to(tree_->state()); }

/// What is on the host now is what later changes are told from.
void HostFolder::look_again(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    const UniqueFd folder =
        open_beneath(folder_.get(), parent_path(change.path), O_PATH | O_DIRECTORY);
    HostEntry entry;
    if (folder && look_at(folder.get(), name_of(change.path), entry))
      loaded_[change.path] = std::move(entry);
    else loaded_.erase(change.path);
  }
}

Result<HostFolder::WriteBack> HostFolder::write_back() {
  const TreeState now = tree_->state();
  if (known_.changes_to(now).empty()) return WriteBack{};
  SW_TRY(const FolderLock lock, FolderLock::take(folder_.get()));
  SW_TRY(const HostEntries host, scan_host_folder(folder_.get()));
  SW_TRY(HostPlan plan, plan_write_back(known_, now, loaded_, host));
  if (!plan.conflicts.empty()) return Error{ErrorCode::kConflict, listed(plan.conflicts), 0};
  HostWriter writer(folder_.get(), plan, host);
  if (Result<void> done = writer.run(); !done.ok()) {
    Error error = std::move(done).error();
    if (!writer.left().empty()) error.message += "; " + listed(writer.left());
    return error;
  }
  WriteBack done{.written = known_.changes_to(plan.after),
                 .refused = std::move(plan.refused),
                 .left = writer.left()};
  look_again(done.written);
  known_ = std::move(plan.after);
  return done;
}

}  // namespace sw::wasi
