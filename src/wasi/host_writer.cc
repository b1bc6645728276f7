// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <utility>

#include "wasi/host_file.h"
#include "wasi/tree_state.h"

namespace sw::wasi {
namespace {

constexpr std::size_t kFoldersKeptMax = 128;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY;
constexpr int kCreateFlags = O_WRONLY | O_CREAT | O_EXCL;

Error changed_during_run(const std::string& path) {
  return Error{ErrorCode::kConflict, shown(path) + " was changed on the host during the run", 0};
}

/// Not every file system knows what renameat2 can do more than renameat.
bool lacks_flags(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

/// Renames within a folder, and replaces nothing.
bool rename_to_free(int folder, const std::string& from, const std::string& to) {
  if (::renameat2(folder, from.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (!lacks_flags(errno)) return false;
  struct stat there = {};
  if (::fstatat(folder, to.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::renameat(folder, from.c_str(), folder, to.c_str()) == 0;
}

bool swap_names(int folder, const std::string& one, const std::string& other) {
  return ::renameat2(folder, one.c_str(), folder, other.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

Result<void> HostWriter::run() {
  Result<void> done = stage();
  if (done.ok()) done = commit();
  if (done.ok()) {
    for (const Step& step : steps_) discard_old(step);
    return done;
  }
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) undo(*step);
  for (const Step& step : steps_) discard_fresh(step);
  return done;
}

const TreeState::Entry* HostWriter::planned(const std::string& path) const {
  return plan_.after.entries().find(path);
}

const HostEntry* HostWriter::replaced(const std::string& path) const {
  const auto found = host_.find(path);
  return found == host_.end() ? nullptr : &found->second;
}

Result<HostWriter::FolderFd> HostWriter::folder_of(const std::string& path) {
  const std::string parent = parent_path(path);
  if (const auto kept = folders_.find(parent); kept != folders_.end()) return kept->second;
  auto fd = std::make_shared<const UniqueFd>(open_beneath(folder_, parent, kFolderFlags));
  if (!*fd) return errno_error(errno, "open folder " + shown(parent));
  if (folders_.size() < kFoldersKeptMax) folders_.emplace(parent, fd);
  return fd;
}

/// Calls make(name) with names until one is free.
template <class Make>
Result<std::string> HostWriter::with_temporary_name(const std::string& path, Make make) {
  constexpr int kTriesMax = 10'000;
  for (int i = 0; i < kTriesMax; ++i) {
    std::string name = temporary_name(names_given_++);
    if (make(name)) return name;
    if (errno != EEXIST) break;
  }
  return errno_error(errno, "write " + shown(path));
}

Result<void> HostWriter::stage() {
  for (const std::string& path : plan_.removed) {
    SW_CHECK_OK(check_removable(path));
    steps_.push_back({.path = path, .fresh = {}, .old = {}});
  }
  for (const std::string& path : plan_.placed) {
    Step& step = steps_.emplace_back(Step{.path = path, .fresh = {}, .old = {}});
    const bool folder = planned(path)->type == FileType::kDirectory;
    SW_CHECK_OK(folder ? stage_folder(step) : stage_file(step));
    if (replaced(path) != nullptr) SW_CHECK_OK(check_removable(path));
  }
  for (const std::string& path : plan_.links) {
    Step& step = steps_.emplace_back(Step{.path = path, .fresh = {}, .old = {}});
    if (replaced(path) == nullptr) continue;
    SW_CHECK_OK(stage_link(step));
    SW_CHECK_OK(check_removable(path));
  }
  return {};
}

/// May we take it from its folder, and what is below it from there? A missing permission is found
/// before anything changes.
Result<void> HostWriter::check_removable(const std::string& path) {
  const auto writable = [&](const std::string& folder) -> Result<void> {
    const UniqueFd fd = open_beneath(folder_, folder, kFolderFlags);
    if (fd && ::faccessat(fd.get(), ".", W_OK | X_OK, AT_EACCESS) == 0) return {};
    return errno_error(errno, fmt::format("replace or remove {}", shown(path)));
  };
  SW_CHECK_OK(writable(parent_path(path)));
  std::set<std::string> folders;
  const auto [begin, end] = below(host_, path);
  for (auto entry = begin; entry != end; ++entry) folders.insert(parent_path(entry->first));
  for (const std::string& folder : folders) SW_CHECK_OK(writable(folder));
  return {};
}

Result<void> HostWriter::stage_file(Step& step) {
  SW_TRY(const FolderFd folder, folder_of(step.path));
  const HostEntry* const old = replaced(step.path);
  const bool keeps = old != nullptr && old->is_file();
  UniqueFd fd;
  SW_TRY(step.fresh, with_temporary_name(step.path, [&](const std::string& name) {
           fd = open_beneath(folder->get(), name, kCreateFlags, keeps ? 0600 : 0666);
           return static_cast<bool>(fd);
         }));
  SW_CHECK_OK(write_content(fd.get(), planned(step.path)->bytes.bytes, step.path));
  if (keeps) {
    const UniqueFd before = open_beneath(folder->get(), name_of(step.path), O_RDONLY | O_NONBLOCK);
    if (!before) return errno_error(errno, "open " + shown(step.path));
    SW_CHECK_OK(keep_attributes(before.get(), fd.get(), step.path));
  }
  return sync_to_disk(fd.get(), step.path);
}

Result<void> HostWriter::stage_folder(Step& step) {
  SW_TRY(const FolderFd folder, folder_of(step.path));
  SW_TRY(step.fresh, with_temporary_name(step.path, [&](const std::string& name) {
           return ::mkdirat(folder->get(), name.c_str(), 0777) == 0;
         }));
  return fill_folder(folder->get(), step);
}

/// All that is below a new folder, except links: they come when all is in its place.
Result<void> HostWriter::fill_folder(int parent, const Step& step) {
  std::vector<std::string> folders = {step.fresh};
  const auto [begin, end] = below(plan_.after.entries(), step.path);
  for (auto entry = begin; entry != end; ++entry) {
    const auto& [path, content] = *entry;
    if (content.type == FileType::kSymbolicLink) continue;
    const std::string fresh = step.fresh + path.substr(step.path.size());
    const UniqueFd folder = open_beneath(parent, parent_path(fresh), kFolderFlags);
    if (!folder) return errno_error(errno, "open the folder of " + shown(path));
    if (content.type == FileType::kDirectory) {
      if (::mkdirat(folder.get(), name_of(fresh).c_str(), 0777) != 0)
        return errno_error(errno, "make " + shown(path));
      folders.push_back(fresh);
      continue;
    }
    const UniqueFd fd = open_beneath(folder.get(), name_of(fresh), kCreateFlags, 0666);
    if (!fd) return errno_error(errno, "create " + shown(path));
    SW_CHECK_OK(write_content(fd.get(), content.bytes.bytes, path));
    SW_CHECK_OK(sync_to_disk(fd.get(), path));
  }
  for (const std::string& fresh : folders) {
    const UniqueFd folder = open_beneath(parent, fresh, kFolderFlags);
    if (!folder) return errno_error(errno, "open a folder of " + shown(step.path));
    SW_CHECK_OK(sync_to_disk(folder.get(), step.path));
  }
  return {};
}

/// Only where it is to replace something: a link may lead elsewhere until all that it leads through
/// is there.
Result<void> HostWriter::stage_link(Step& step) {
  SW_TRY(const FolderFd folder, folder_of(step.path));
  SW_TRY(step.fresh, with_temporary_name(step.path, [&](const std::string& name) {
           return ::symlinkat(planned(step.path)->target.c_str(), folder->get(), name.c_str()) == 0;
         }));
  return {};
}

Result<void> HostWriter::commit() {
  for (Step& step : steps_) SW_CHECK_OK(carry_out(step));
  SW_CHECK_OK(check_links());
  return sync_folders();
}

Result<void> HostWriter::carry_out(Step& step) {
  SW_TRY(const FolderFd folder, folder_of(step.path));
  if (planned(step.path) == nullptr) {
    SW_CHECK_OK(move_away(folder->get(), step));
    return check_old(folder->get(), step);
  }
  if (replaced(step.path) != nullptr) {
    SW_CHECK_OK(exchange(folder->get(), step));
  } else if (step.fresh.empty()) {
    if (::symlinkat(planned(step.path)->target.c_str(), folder->get(),
                    name_of(step.path).c_str()) != 0) {
      return errno == EEXIST ? changed_during_run(step.path)
                             : errno_error(errno, "make link " + shown(step.path));
    }
  } else if (!rename_to_free(folder->get(), step.fresh, name_of(step.path))) {
    return errno == EEXIST ? changed_during_run(step.path)
                           : errno_error(errno, "write " + shown(step.path));
  }
  step.state = State::kPlaced;
  return step.old.empty() ? Result<void>() : check_old(folder->get(), step);
}

Result<void> HostWriter::move_away(int folder, Step& step) {
  const std::string name = name_of(step.path);
  bool crosses = false;
  auto old = with_temporary_name(step.path, [&](const std::string& free) {
    const bool done = rename_to_free(folder, name, free);
    crosses = !done && errno == EXDEV;
    return done;
  });
  // Overlay file systems do not rename folders of their lower layers. One that only goes can wait
  // where it is.
  const bool waits = crosses && replaced(step.path)->is_directory() && step.fresh.empty();
  if (!old.ok() && !waits) return std::move(old).error();
  step.old = waits ? name : *old;
  if (!waits) step.state = State::kMovedAway;
  return {};
}

Result<void> HostWriter::exchange(int folder, Step& step) {
  const std::string name = name_of(step.path);
  if (swap_names(folder, step.fresh, name)) {
    step.old = std::exchange(step.fresh, {});
    return {};
  }
  if (errno == ENOENT) return changed_during_run(step.path);
  if (!lacks_flags(errno)) return errno_error(errno, "replace " + shown(step.path));
  SW_CHECK_OK(move_away(folder, step));
  if (!rename_to_free(folder, step.fresh, name))
    return errno_error(errno, "replace " + shown(step.path));
  step.fresh.clear();
  return {};
}

/// What went is what was to go. Somebody may have changed it after it was looked at.
Result<void> HostWriter::check_old(int folder, const Step& step) {
  HostEntry old;
  if (!look_at(folder, step.old, old) || !same_but_renamed(*replaced(step.path), old))
    return changed_during_run(step.path);
  if (!old.is_directory()) return {};
  const UniqueFd fd = open_beneath(folder, step.old, kFolderFlags);
  if (!fd) return errno_error(errno, "open " + shown(step.path));
  SW_TRY(const HostEntries entries, scan_host_folder(fd.get()));
  for (const auto& [path, entry] : entries) {
    const std::string was = step.path + "/" + path;
    if (replaced(was) == nullptr || !same_entry(*replaced(was), entry))
      return changed_during_run(was);
  }
  return {};
}

/// The kernel has the last word: somebody may have changed what a link leads through.
Result<void> HostWriter::check_links() {
  for (const std::string& path : plan_.links) {
    if (!kernel_leaves(folder_, path)) continue;
    return Error{
        ErrorCode::kConflict,
        shown(path) +
            " leads out of the folder because something was changed on the host during the run",
        0};
  }
  return {};
}

Result<void> HostWriter::sync_folders() {
  std::set<std::string> synced;
  for (const Step& step : steps_) {
    if (!synced.insert(parent_path(step.path)).second) continue;
    SW_TRY(const FolderFd folder, folder_of(step.path));
    SW_CHECK_OK(sync_to_disk(folder->get(), parent_path(step.path)));
  }
  return {};
}

void HostWriter::undo(Step& step) {
  if (step.state == State::kWaiting) return;
  const std::string name = name_of(step.path);
  const auto opened = folder_of(step.path);
  bool done = opened.ok();
  const int folder = done ? opened.value()->get() : -1;
  const bool placed = step.state == State::kPlaced;
  if (done && placed && !step.old.empty() && swap_names(folder, step.old, name)) {
    step.fresh = std::exchange(step.old, {});
    return;
  }
  if (done && placed) {
    const auto taken = with_temporary_name(step.path, [&](const std::string& temporary) {
      return rename_to_free(folder, name, temporary);
    });
    if (taken.ok()) step.fresh = *taken;
    done = taken.ok();
  }
  if (done && !step.old.empty()) done = rename_to_free(folder, step.old, name);
  if (done) step.old.clear();
  else
    left_.push_back(fmt::format("{} could not be restored{}", shown(step.path),
                                step.old.empty() ? "" : ": it is " + step.old));
}

void HostWriter::discard_fresh(const Step& step) {
  if (step.fresh.empty()) return;
  Contents contents;
  const auto [begin, end] = below(plan_.after.entries(), step.path);
  for (auto entry = begin; entry != end; ++entry) {
    contents.emplace_back(entry->first.substr(step.path.size()),
                          entry->second.type == FileType::kDirectory);
  }
  const auto folder = folder_of(step.path);
  const bool is_folder = planned(step.path)->type == FileType::kDirectory;
  if (folder.ok() && remove_listed(folder.value()->get(), step.fresh, is_folder, contents)) return;
  left_.push_back(fmt::format("{} could not be removed", step.fresh));
}

void HostWriter::discard_old(const Step& step) {
  if (step.old.empty()) return;
  Contents contents;
  const auto [begin, end] = below(host_, step.path);
  for (auto entry = begin; entry != end; ++entry) {
    contents.emplace_back(entry->first.substr(step.path.size()), entry->second.is_directory());
  }
  const auto folder = folder_of(step.path);
  const bool is_folder = replaced(step.path)->is_directory();
  if (folder.ok() && remove_listed(folder.value()->get(), step.old, is_folder, contents)) return;
  // Somebody put something into a folder that goes.
  const bool back =
      step.old == name_of(step.path) ||
      (folder.ok() && rename_to_free(folder.value()->get(), step.old, name_of(step.path)));
  left_.push_back(fmt::format("{} could not be removed{}", shown(step.path),
                              back ? "" : ": it is " + step.old));
}

/// Removes `name`, and from below it what is listed, in the listing's reverse order. False if
/// something is left.
bool HostWriter::remove_listed(int folder, const std::string& name, bool is_folder,
                               const Contents& contents) {
  for (auto entry = contents.rbegin(); entry != contents.rend(); ++entry) {
    const std::string path = name + entry->first;
    const UniqueFd parent = open_beneath(folder, parent_path(path), kFolderFlags);
    if (parent) ::unlinkat(parent.get(), name_of(path).c_str(), entry->second ? AT_REMOVEDIR : 0);
  }
  return ::unlinkat(folder, name.c_str(), is_folder ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT;
}

}  // namespace sw::wasi
