// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The path_* functions.

#include <algorithm>
#include <cstring>
#include <utility>

#include "wasi/calls_support.h"
#include "wasi/descriptors.h"

namespace sw::wasi::calls {
namespace {

constexpr u32 kCreate = 1;
constexpr u32 kDirectory = 2;
constexpr u32 kExclusive = 4;
constexpr u32 kTruncate = 8;

Rights rights_to_open(u32 oflags) {
  Rights needed = rights::kPathOpen;
  if ((oflags & kCreate) != 0) needed |= rights::kPathCreateFile;
  if ((oflags & kTruncate) != 0) needed |= rights::kPathFilestatSetSize;
  return needed;
}

OpenFlags open_flags(u32 oflags, Follow follow, Rights base) {
  OpenFlags flags;
  flags.create = (oflags & kCreate) != 0;
  flags.directory = (oflags & kDirectory) != 0;
  flags.exclusive = (oflags & kExclusive) != 0;
  flags.truncate = (oflags & kTruncate) != 0;
  flags.write = (base & rights::kFdWrite) != 0;
  flags.follow = follow;
  return flags;
}

}  // namespace

Errno path_create_directory(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights::kPathCreateDirectory));
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  return wasi.files().make_directory_at(at, name);
}

Errno path_filestat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 lookup, u32 path, u32 length,
                        u32 result) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights::kPathFilestatGet));
  SW_WASI_TRY(const Follow follow, lookup_flag(lookup));
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  SW_WASI_TRY(const Stat stat, wasi.files().stat_at(at, name, follow));
  return memory.store(result, guest_filestat(stat)) ? Errno::kSuccess : Errno::kFault;
}

Errno path_filestat_set_times(Wasi& wasi, const Memory& memory, u32 fd, u32 lookup, u32 path,
                              u32 length, u64 accessed, u64 modified, u32 flags) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights::kPathFilestatSetTimes));
  SW_WASI_TRY(const Follow follow, lookup_flag(lookup));
  SW_WASI_TRY(const NewTimes times, new_times(wasi, accessed, modified, flags));
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  return wasi.files().set_times_at(at, name, follow, times);
}

Errno path_link(Wasi& wasi, const Memory& memory, u32 from_fd, u32 lookup, u32 from,
                u32 from_length, u32 to_fd, u32 to, u32 to_length) {
  SW_WASI_TRY(const Place from_at, open_directory(wasi, from_fd, rights::kPathLinkSource));
  SW_WASI_TRY(const Place to_at, open_directory(wasi, to_fd, rights::kPathLinkTarget));
  SW_WASI_TRY(const Follow follow, lookup_flag(lookup));
  SW_WASI_TRY(const std::string source, guest_path(memory, from, from_length));
  SW_WASI_TRY(const std::string target, guest_path(memory, to, to_length));
  return wasi.files().link_at(from_at, source, follow, to_at, target);
}

Errno path_open(Wasi& wasi, const Memory& memory, u32 fd, u32 lookup, u32 path, u32 length,
                u32 oflags, u64 base, u64 inheriting, u32 flags, u32 result) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights_to_open(oflags)));
  SW_WASI_TRY(const Follow follow, lookup_flag(lookup));
  if (oflags > 15 || flags > fdflags::kAll) return Errno::kInval;
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  if (!memory.range(result, 4)) return Errno::kFault;
  // Bits that mean nothing here (sockets) are ignored: some guests ask for "everything" as all
  // ones.
  base &= rights::kDirectoryInheriting;
  inheriting &= rights::kDirectoryInheriting;
  const Rights offered = wasi.descriptors().find(fd)->inheriting;
  if (((base | inheriting) & ~offered) != 0) return Errno::kNotcapable;
  if (wasi.descriptors().full()) return Errno::kMfile;
  SW_WASI_TRY(NodeRef node, wasi.files().open_at(at, name, open_flags(oflags, follow, base)));
  auto file = std::make_shared<OpenFile>();
  const bool is_directory = node.node->type == FileType::kDirectory;
  file->base = base & (is_directory ? rights::kDirectory : rights::kFile);
  file->inheriting = is_directory ? inheriting : 0;
  file->flags = static_cast<std::uint16_t>(flags);
  file->at = std::move(node);
  SW_WASI_TRY(const u32 number, wasi.descriptors().insert(std::move(file)));
  return memory.store(result, number) ? Errno::kSuccess : Errno::kFault;
}

Errno path_readlink(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length, u32 buffer,
                    u32 buffer_length, u32 result) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights::kPathReadlink));
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  const auto to = memory.range(buffer, buffer_length);
  if (!to || !memory.range(result, 4)) return Errno::kFault;
  SW_WASI_TRY(const std::string target, wasi.files().readlink_at(at, name));
  const std::size_t count = std::min(target.size(), to->size());
  std::memcpy(to->data(), target.data(), count);
  return memory.store(result, static_cast<u32>(count)) ? Errno::kSuccess : Errno::kFault;
}

Errno path_remove_directory(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights::kPathRemoveDirectory));
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  return wasi.files().remove_directory_at(at, name);
}

Errno path_rename(Wasi& wasi, const Memory& memory, u32 from_fd, u32 from, u32 from_length,
                  u32 to_fd, u32 to, u32 to_length) {
  SW_WASI_TRY(const Place from_at, open_directory(wasi, from_fd, rights::kPathRenameSource));
  SW_WASI_TRY(const Place to_at, open_directory(wasi, to_fd, rights::kPathRenameTarget));
  SW_WASI_TRY(const std::string source, guest_path(memory, from, from_length));
  SW_WASI_TRY(const std::string target, guest_path(memory, to, to_length));
  return wasi.files().rename_at(from_at, source, to_at, target);
}

Errno path_symlink(Wasi& wasi, const Memory& memory, u32 target, u32 target_length, u32 fd,
                   u32 path, u32 length) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights::kPathSymlink));
  SW_WASI_TRY(const std::string to, guest_path(memory, target, target_length));
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  const bool absolute = !to.empty() && to.front() == '/';
  if (absolute && wasi.options().absolute_links == AbsoluteLinks::kRefuse)
    return Errno::kNotcapable;
  return wasi.files().symlink_at(to, at, name);
}

Errno path_unlink_file(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length) {
  SW_WASI_TRY(const Place at, open_directory(wasi, fd, rights::kPathUnlinkFile));
  SW_WASI_TRY(const std::string name, guest_path(memory, path, length));
  return wasi.files().unlink_at(at, name);
}

}  // namespace sw::wasi::calls
