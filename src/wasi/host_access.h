// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How this room reaches what is below a host folder: by openat2(2), which never leaves the folder.
// Kernels and seccomp filters without openat2 get one openat(2) a component, which follows no link.

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::wasi {

/// Opens `path`, which has no dots among its names, without following any link. "" is the folder
/// itself. Paths may be longer than the kernel takes at once. Empty on failure, and errno says why.
UniqueFd open_beneath(int folder, std::string_view path, int flags, mode_t mode = 0);

/// As open_beneath, but follows links that stay inside the folder. Without openat2 it follows none.
UniqueFd open_following_beneath(int folder, const std::string& path, int flags);

/// Whether the kernel leaves the folder when it follows the link at `path`. False where it cannot
/// be asked.
bool kernel_leaves(int folder, const std::string& path);

/// One thing on the host.
struct HostEntry {
  struct stat status = {};
  std::string target;   ///< of a link, whatever its bytes
  bool opaque = false;  ///< a folder or link that could not be read

  bool is_directory() const { return S_ISDIR(status.st_mode); }
  bool is_file() const { return S_ISREG(status.st_mode); }
  bool is_link() const { return S_ISLNK(status.st_mode); }
};

/// By path relative to the folder. Paths are bytes: not every one can be in a tree.
using HostEntries = std::map<std::string, HostEntry>;

/// Everything below the folder, contents aside. Follows no link.
/// Errors: kLimitExceeded past kHostEntriesMax.
Result<HostEntries> scan_host_folder(int folder);
inline constexpr std::size_t kHostEntriesMax = 2'000'000;

/// What is at `name` in an opened folder; errno says why not.
bool look_at(int folder, const std::string& name, HostEntry& entry);

/// Whether `now` is what `before` was, as far as its metadata tell. A folder is the same whatever
/// is in it.
bool same_entry(const HostEntry& before, const HostEntry& now);
/// As same_entry, but allows what a rename does to a file.
bool same_but_renamed(const HostEntry& before, const HostEntry& now);

/// "a file", "a FIFO", …
std::string_view kind_of(const HostEntry& entry);

/// What write-back calls a file that it has not put in its place yet. Such names are never loaded.
bool is_temporary_name(std::string_view name);
std::string temporary_name(std::size_t number);

std::string name_of(const std::string& path);
/// "" for what lies in the folder itself.
std::string parent_path(const std::string& path);

/// A path or target for messages: shortened if it is very long, quoted if it has what a terminal
/// could misunderstand.
std::string shown(const std::string& path);

/// What a file, a pipe or a socket has from where it is on. Errors: kInvalidArgument past
/// `bytes_max`.
Result<Bytes> read_open_file(int fd, std::size_t bytes_max, const std::string& name);
Result<std::string> read_open_text(int fd, std::size_t bytes_max, const std::string& name);

/// The regular file `name` in `folder`, also through links that stay inside it.
/// Errors: kInvalidArgument for anything else. Never waits for a FIFO's other end.
Result<std::string> read_file_beneath(const std::filesystem::path& folder, const std::string& name,
                                      std::size_t bytes_max);

}  // namespace sw::wasi
