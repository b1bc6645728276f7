// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sandbox_workers/base/unique_fd.h"
#include "wasi/host_writer.h"

namespace sw::wasi {
namespace {

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using DirHandle = std::unique_ptr<DIR, CloseDir>;

std::uint64_t nanoseconds(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

Error tree_error(Errno error, const std::string& path) {
  const bool limit = error == Errno::kFbig || error == Errno::kNospc || error == Errno::kNametoolong;
  return Error{limit ? ErrorCode::kLimitExceeded : ErrorCode::kInvalidArgument,
               path + ": " + std::string(errno_text(error)), 0};
}

/// Copies one host folder, never through a link: each step is relative to an opened directory.
class Loader {
 public:
  Loader(Tree& tree, std::uint64_t now_ns) : tree_(tree), now_ns_(now_ns) {}

  Result<void> load(UniqueFd fd, Node& to, const std::string& path);
  std::vector<std::string>& skipped() { return skipped_; }

 private:
  Result<void> load_entry(int folder, const std::string& name, Node& to, const std::string& path);
  Result<void> load_file(int folder, const std::string& name, Node& to, const std::string& path);
  Result<void> load_link(int folder, const std::string& name, Node& to, const std::string& path);
  Result<std::shared_ptr<Node>> make(Node& to, const std::string& name, FileType type, const std::string& path);

  Tree& tree_;
  std::uint64_t now_ns_;
  std::vector<std::string> skipped_;
};

Result<std::shared_ptr<Node>> Loader::make(Node& to, const std::string& name, FileType type,
                                           const std::string& path) {
  auto made = tree_.create(to, name, type, now_ns_);
  if (!made.ok()) return tree_error(made.error(), path);
  return *std::move(made);
}

Result<void> Loader::load(UniqueFd fd, Node& to, const std::string& path) {
  DirHandle directory(::fdopendir(::dup(fd.get())));
  if (!directory) return errno_error(errno, "read folder " + path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return errno_error(errno, "read folder " + path);
  std::sort(names.begin(), names.end());  // the same tree whatever the host's order
  for (const std::string& name : names) {
    const std::string below = path.empty() ? name : path + "/" + name;
    if (name_error(name) != Errno::kSuccess) {
      skipped_.push_back(below);
      continue;
    }
    SW_CHECK_OK(load_entry(fd.get(), name, to, below));
  }
  return {};
}

Result<void> Loader::load_entry(int folder, const std::string& name, Node& to, const std::string& path) {
  struct stat status = {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) return errno_error(errno, "stat " + path);
    skipped_.push_back(path);  // gone meanwhile
    return {};
  }
  if (S_ISREG(status.st_mode)) return load_file(folder, name, to, path);
  if (S_ISLNK(status.st_mode)) return load_link(folder, name, to, path);
  UniqueFd fd;
  if (S_ISDIR(status.st_mode)) {
    fd = UniqueFd(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!fd) {
    skipped_.push_back(path);
    return {};
  }
  SW_TRY(const auto node, make(to, name, FileType::kDirectory, path));
  SW_CHECK_OK(load(std::move(fd), *node, path));
  node->times.modified = nanoseconds(status.st_mtim);
  return {};
}

Result<void> Loader::load_file(int folder, const std::string& name, Node& to, const std::string& path) {
  // O_NONBLOCK: what was a file may have become a pipe, and opening that would wait.
  const UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    skipped_.push_back(path);
    return {};
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > tree_.limits().file_bytes_max) return tree_error(Errno::kFbig, path);
  if (size > tree_.limits().tree_bytes_max - tree_.usage().bytes) return tree_error(Errno::kNospc, path);
  Bytes bytes(static_cast<std::size_t>(size));
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count = ::read(fd.get(), bytes.data() + got, bytes.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read " + path);
    if (count == 0) break;  // it shrank meanwhile
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  SW_TRY(const auto node, make(to, name, FileType::kRegularFile, path));
  const Errno set = tree_.set_content(*node, SharedBytes::own(std::move(bytes)), now_ns_);
  if (set != Errno::kSuccess) return tree_error(set, path);
  node->times.modified = nanoseconds(status.st_mtim);
  return {};
}

Result<void> Loader::load_link(int folder, const std::string& name, Node& to, const std::string& path) {
  char target[kPathBytesMax];
  const ssize_t length = ::readlinkat(folder, name.c_str(), target, sizeof target);
  if (length <= 0 || static_cast<std::size_t>(length) == sizeof target) {
    skipped_.push_back(path);
    return {};
  }
  const auto made = tree_.create_symlink(to, name, {target, static_cast<std::size_t>(length)}, now_ns_);
  if (made.error() == Errno::kIlseq) skipped_.push_back(path);
  else if (!made.ok()) return tree_error(made.error(), path);
  return {};
}

}  // namespace

Result<std::vector<std::string>> copy_host_folder(const std::filesystem::path& host, Tree& tree, Node& directory,
                                                  std::uint64_t now_ns) {
  UniqueFd fd(::open(host.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "open folder " + host.string());
  Loader loader(tree, now_ns);
  SW_CHECK_OK(loader.load(std::move(fd), directory, ""));
  return std::move(loader.skipped());
}

Result<HostFolder> HostFolder::load(const std::filesystem::path& host, const TreeLimits& limits,
                                    std::uint64_t now_ns) {
  HostFolder folder;
  folder.host_ = host;
  folder.tree_ = std::make_shared<Tree>(limits, now_ns);
  SW_TRY(folder.skipped_, copy_host_folder(host, *folder.tree_, folder.tree_->root(), now_ns));
  folder.known_ = TreeState::of(*folder.tree_);
  return folder;
}

std::vector<Change> HostFolder::changes() const { return known_.changes_to(TreeState::of(*tree_)); }

Result<HostFolder::WriteBack> HostFolder::write_back() {
  const TreeState now = TreeState::of(*tree_);
  const std::vector<Change> changes = known_.changes_to(now);
  TreeState::Entries& known = known_.entries();
  SW_TRY(HostWriter writer, HostWriter::open(host_));
  WriteBack done;
  // What goes first, from the deepest up: it may be in the way of what comes.
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    const auto old = known.find(change->path);
    if (old == known.end()) continue;
    const bool replaced = change->kind == Change::Kind::kModified && old->second.type != change->type;
    if (change->kind == Change::Kind::kRemoved || replaced) {
      SW_CHECK_OK(writer.remove(change->path, old->second.type));
      known.erase(old);
      if (!replaced) done.written.push_back(*change);
    }
  }
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::kRemoved) continue;
    const TreeState::Entry& entry = now.entries().at(change.path);
    if (entry.type == FileType::kSymbolicLink && leads_out(change.path, entry.target)) {
      done.refused.push_back(change.path + " -> " + entry.target);
      continue;
    }
    switch (entry.type) {
      case FileType::kDirectory: SW_CHECK_OK(writer.make_directory(change.path)); break;
      case FileType::kRegularFile: SW_CHECK_OK(writer.write_file(change.path, entry.bytes.bytes)); break;
      case FileType::kSymbolicLink: SW_CHECK_OK(writer.make_link(change.path, entry.target)); break;
      default: continue;
    }
    known[change.path] = entry;
    done.written.push_back(change);
  }
  std::sort(done.written.begin(), done.written.end(),
            [](const Change& a, const Change& b) { return a.path < b.path; });
  return done;
}

}  // namespace sw::wasi
