// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/kernel_comparison.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "sandbox_workers/base/files.h"
#include "wasi/tree_check.h"

namespace sw::wasi {

namespace fs = std::filesystem;

namespace {

std::shared_ptr<const Layout> layout_of_one_tree() {
  LayoutBuilder builder;
  (void)builder.add_mount("/");  // cannot fail: the layout is empty
  return builder.build();
}

Errno last_errno() {
  switch (errno) {
    case EBUSY: return Errno::kBusy;
    case EXDEV: return Errno::kXdev;
    default: return errno_from_host(errno);
  }
}
/// What a system call answered; to be called before anything else sets errno.
Errno answer_of(ssize_t result) { return result < 0 ? last_errno() : Errno::kSuccess; }

/// A descriptor as a path that leads to the very file, be it a link or not.
std::string path_of(const UniqueFd& fd) { return fmt::format("/proc/self/fd/{}", fd.get()); }

}  // namespace

KernelComparison::KernelComparison(fs::path folder, std::function<std::size_t(std::size_t)> pick)
    : folder_(std::move(folder)),
      pick_(std::move(pick)),
      tree_(std::make_shared<Tree>(TreeLimits{}, clocks_.realtime)),
      files_(layout_of_one_tree(), clocks_),
      host_(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  files_.mount(0, tree_);
  here_ = files_.root();
  if (!host_) differ("the folder cannot be opened");
}

/// Short, so that operations meet.
std::string KernelComparison::path() {
  static constexpr const char* kNames[] = {"a", "b", "c", "a", "b",  "c",
                                           "a", "b", "c", ".", "..", "c"};
  std::string path;
  for (std::size_t parts = 1 + pick_(3); parts > 0; --parts) {
    if (!path.empty()) path += pick_(10) == 9 ? "//" : "/";
    path += kNames[pick_(std::size(kNames))];
  }
  if (pick_(8) == 7) path += "/";
  return path;
}

std::string KernelComparison::target() {
  static constexpr const char* kTargets[] = {"a",         "b/c",  "c/", "a/b",   "./b", "none",
                                             "..",        "../a", "/b", "/../c", "/",   "../..",
                                             "a/../../b", "/a/",  ".",  "b/../c"};
  return kTargets[pick_(std::size(kTargets))];
}

UniqueFd KernelComparison::open_on_host(const std::string& path, std::uint64_t flags,
                                        std::uint64_t mode) const {
  open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_IN_ROOT;
  // EAGAIN: somebody on this machine renamed a file while a ".." was looked up.
  for (;;) {
    UniqueFd fd(
        static_cast<int>(::syscall(SYS_openat2, host_.get(), path.c_str(), &how, sizeof how)));
    if (fd || errno != EAGAIN) return fd;
  }
}

KernelComparison::Split KernelComparison::split(const std::string& path) const {
  const std::size_t end = path.find_last_not_of('/') + 1;
  const std::size_t begin = path.rfind('/', end - 1) + 1;  // 0 when there is none
  Split split;
  split.last = path.substr(begin, end - begin) + (end < path.size() ? "/" : "");
  split.folder = open_on_host(begin == 0 ? "." : path.substr(0, begin), O_PATH | O_DIRECTORY);
  if (!split.folder) split.error = last_errno();
  return split;
}

Errno KernelComparison::on_host(const std::string& path,
                                const std::function<int(int, const char*)>& call) const {
  const Split at = split(path);
  return at.error != Errno::kSuccess ? at.error : answer_of(call(at.folder.get(), at.last.c_str()));
}

void KernelComparison::differ(std::string_view what) {
  if (!difference_.empty()) return;
  difference_ = fmt::format("{} after\n", what);
  for (const std::string& line : log_) difference_ += fmt::format("  {}\n", line);
}

void KernelComparison::same(std::string what, Errno ours, Errno hosts) {
  if (ours != hosts)
    differ(fmt::format("{}: {} instead of {}", what, errno_name(ours), errno_name(hosts)));
  log_.push_back(fmt::format("{}: {}", what, errno_name(hosts)));
}

void KernelComparison::rename() {
  const std::string one = path();
  const std::string two = path();
  const Split from = split(one);
  const Split to = split(two);
  Errno hosts = from.error != Errno::kSuccess ? from.error : to.error;
  if (hosts == Errno::kSuccess) {
    hosts = answer_of(
        ::renameat(from.folder.get(), from.last.c_str(), to.folder.get(), to.last.c_str()));
  }
  same(fmt::format("rename {} {}", one, two), files_.rename_at(here_, one, here_, two), hosts);
}

void KernelComparison::link() {
  const std::string one = path();
  const std::string two = path();
  const bool follows = pick_(2) == 1;
  const UniqueFd from = open_on_host(one, O_PATH | (follows ? 0 : O_NOFOLLOW));
  const Errno found = from ? Errno::kSuccess : last_errno();
  const Errno hosts = from ? on_host(two,
                                     [&](int folder, const char* name) {
                                       return ::linkat(AT_FDCWD, path_of(from).c_str(), folder,
                                                       name, AT_SYMLINK_FOLLOW);
                                     })
                           : found;
  same(fmt::format("link {} {}{}", one, two, follows ? " followed" : ""),
       files_.link_at(here_, one, follows ? Follow::kYes : Follow::kNo, here_, two), hosts);
}

void KernelComparison::symlink() {
  const std::string to = target();
  const std::string one = path();
  // POSIX and the public WASI tests want ENOTDIR for an existing file with a slash after it, Linux
  // says EEXIST.
  if (one.ends_with('/')) return;
  same(fmt::format("symlink {} {}", to, one), files_.symlink_at(to, here_, one),
       on_host(one, [&](int folder, const char* name) {
         return ::symlinkat(to.c_str(), folder, name);
       }));
}

void KernelComparison::read_link() {
  const std::string one = path();
  const UniqueFd fd = open_on_host(one, O_PATH | O_NOFOLLOW);
  Errno hosts = answer_of(fd ? 0 : -1);
  char text[256];
  ssize_t length = 0;
  if (fd) {
    struct stat there = {};
    length = ::fstat(fd.get(), &there) == 0 && S_ISLNK(there.st_mode)
                 ? ::readlinkat(fd.get(), "", text, sizeof text)
                 : -1;
    if (length < 0) hosts = Errno::kInval;
  }
  const auto ours = files_.readlink_at(here_, one);
  same("readlink " + one, ours.error(), hosts);
  if (ours.ok() && *ours != std::string_view(text, static_cast<std::size_t>(length)))
    differ("another target");
}

void KernelComparison::stat() {
  const std::string one = path();
  const Follow follow = pick_(2) == 0 ? Follow::kNo : Follow::kYes;
  const UniqueFd fd = open_on_host(one, O_PATH | (follow == Follow::kNo ? O_NOFOLLOW : 0));
  const Errno hosts = answer_of(fd ? 0 : -1);
  const auto ours = files_.stat_at(here_, one, follow);
  same(fmt::format("stat {}{}", one, follow == Follow::kYes ? " followed" : ""), ours.error(),
       hosts);
  struct stat there = {};
  if (!ours.ok() || !fd || ::fstat(fd.get(), &there) != 0) return;
  if ((ours->type == FileType::kDirectory) != S_ISDIR(there.st_mode))
    differ("another type: " + one);
  if ((ours->type == FileType::kSymbolicLink) != S_ISLNK(there.st_mode))
    differ("another type: " + one);
  if (S_ISDIR(there.st_mode)) return;
  if (ours->links != there.st_nlink) differ("another number of links: " + one);
  if (ours->size != static_cast<std::uint64_t>(there.st_size)) differ("another size: " + one);
}

void KernelComparison::open_and_write() {
  const std::string one = path();
  OpenFlags flags;
  flags.create = pick_(2) == 0;
  flags.exclusive = flags.create && pick_(4) == 0;
  flags.truncate = pick_(4) == 0;
  flags.directory = !flags.create && pick_(6) == 0;
  flags.write = flags.truncate || pick_(2) == 0;
  flags.follow = pick_(3) == 0 ? Follow::kNo : Follow::kYes;
  int host_flags = flags.write ? O_RDWR : O_RDONLY;
  if (flags.create) host_flags |= O_CREAT;
  if (flags.exclusive) host_flags |= O_EXCL;
  if (flags.truncate) host_flags |= O_TRUNC;
  if (flags.directory) host_flags |= O_DIRECTORY;
  if (flags.follow == Follow::kNo) host_flags |= O_NOFOLLOW;
  const UniqueFd fd =
      open_on_host(one, static_cast<std::uint64_t>(host_flags), flags.create ? 0666 : 0);
  const Errno hosts = answer_of(fd ? 0 : -1);
  const auto ours = files_.open_at(here_, one, flags);
  same(fmt::format("open {} flags {:o}", one, host_flags), ours.error(), hosts);
  if (!ours.ok() || !fd || !flags.write || ours->node->type != FileType::kRegularFile) return;
  const std::uint64_t offset = pick_(20);
  const std::size_t length = 1 + pick_(5);
  const std::string text(length, static_cast<char>('a' + pick_(26)));
  if (::pwrite(fd.get(), text.data(), text.size(), static_cast<off_t>(offset)) < 0)
    differ("the host cannot write");
  if (!ours->tree->write(*ours->node, offset, as_bytes(text), 1).ok()) differ("we cannot write");
  if (pick_(3) != 0) return;
  const std::size_t size = pick_(25);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) differ("the host cannot cut");
  if (ours->tree->resize(*ours->node, size, 1) != Errno::kSuccess) differ("we cannot cut");
}

void KernelComparison::step() {
  switch (pick_(9)) {
    case 0: {
      const std::string one = path();
      return same(
          "mkdir " + one, files_.make_directory_at(here_, one),
          on_host(one, [](int folder, const char* name) { return ::mkdirat(folder, name, 0777); }));
    }
    case 1: {
      const std::string one = path();
      // To a guest, "." may be its root, which is busy; the kernel refuses it by its name.
      if (one == "." || one.ends_with("/.") || one.ends_with("./")) return;
      return same("rmdir " + one, files_.remove_directory_at(here_, one),
                  on_host(one, [](int folder, const char* name) {
                    return ::unlinkat(folder, name, AT_REMOVEDIR);
                  }));
    }
    case 2: {
      const std::string one = path();
      return same(
          "unlink " + one, files_.unlink_at(here_, one),
          on_host(one, [](int folder, const char* name) { return ::unlinkat(folder, name, 0); }));
    }
    case 3: return rename();
    case 4: return link();
    case 5: return symlink();
    case 6: return read_link();
    case 7: return stat();
    default: return open_and_write();
  }
}

std::map<std::string, std::string> KernelComparison::our_listing() {
  std::map<std::string, std::string> listing;
  (void)tree_->walk([&](const std::string& path, Node& node) {
    listing[path] = node.type == FileType::kDirectory ? "directory"
                    : node.type == FileType::kSymbolicLink
                        ? "link " + node.target
                        : "file " + std::string(as_text(node.content.view().value()));
    return true;
  });
  return listing;
}

std::map<std::string, std::string> KernelComparison::host_listing() const {
  std::map<std::string, std::string> listing;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    const std::string path = entry.path().lexically_relative(folder_);
    listing[path] = entry.is_symlink()     ? "link " + fs::read_symlink(entry.path()).string()
                    : entry.is_directory() ? "directory"
                                           : "file " + read_text_file(entry.path()).value();
  }
  return listing;
}

void KernelComparison::compare_trees() {
  if (our_listing() != host_listing()) differ("other files");
  if (const std::string fault = tree_fault(*tree_); !fault.empty()) differ(fault);
}

}  // namespace sw::wasi
