// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The fd_* functions but reading and writing (calls_io.cc).

#include <algorithm>
#include <cstring>

#include "wasi/calls_support.h"
#include "wasi/descriptors.h"

namespace sw::wasi::calls {
namespace {

struct GuestFdstat {
  std::uint8_t type = 0;
  std::uint8_t padding = 0;
  std::uint16_t flags = 0;
  std::uint8_t more_padding[4] = {};
  u64 base = 0;
  u64 inheriting = 0;
};
static_assert(sizeof(GuestFdstat) == 24);

struct GuestPrestat {
  std::uint8_t tag = 0;  // 0: a directory
  std::uint8_t padding[3] = {};
  u32 name_length = 0;
};
static_assert(sizeof(GuestPrestat) == 8);

struct GuestDirent {
  u64 next = 0;
  u64 inode = 0;
  u32 name_length = 0;
  std::uint8_t type = 0;
  std::uint8_t padding[3] = {};
};
static_assert(sizeof(GuestDirent) == 24);

// Inode numbers of the streams: device 0 holds nothing else.
Stat stream_stat(const OpenFile& file) {
  Stat stat;
  stat.inode = static_cast<u64>(file.device) + 1;
  stat.type = FileType::kCharacterDevice;
  stat.links = 1;
  return stat;
}

/// A regular file with `needed`; kInval for other things that have the right.
ErrnoOr<OpenFile*> regular_file(Wasi& wasi, u32 fd, Rights needed) {
  SW_WASI_TRY(OpenFile* const file, open_file(wasi, fd, 0));
  if (file->type() == FileType::kDirectory) return Errno::kIsdir;
  if (file->is_stream()) return Errno::kSpipe;
  SW_WASI_TRY(OpenFile* const usable, open_file(wasi, fd, needed));
  return usable->type() == FileType::kRegularFile ? ErrnoOr<OpenFile*>(usable) : Errno::kInval;
}

/// Fills a buffer with directory entries; the last one may be cut, which tells the guest to go on
/// from it.
class DirentWriter {
 public:
  explicit DirentWriter(std::span<std::byte> to) : to_(to) {}

  /// False when the buffer is full.
  bool put(std::string_view name, FileType type, u64 inode, u64 next) {
    GuestDirent head;
    head.next = next;
    head.inode = inode;
    head.name_length = static_cast<u32>(name.size());
    head.type = static_cast<std::uint8_t>(type);
    append(std::as_bytes(std::span(&head, 1)));
    append(as_bytes(name));
    return used_ < to_.size();
  }
  std::size_t used() const { return used_; }

 private:
  void append(BytesView bytes) {
    const std::size_t count = std::min(bytes.size(), to_.size() - used_);
    std::memcpy(to_.data() + used_, bytes.data(), count);
    used_ += count;
  }
  std::span<std::byte> to_;
  std::size_t used_ = 0;
};

}  // namespace

Errno fd_advise(Wasi& wasi, const Memory&, u32 fd, u64 offset, u64 length, u32 advice) {
  SW_WASI_TRY(const OpenFile* const file, regular_file(wasi, fd, rights::kFdAdvise));
  (void)file;
  const bool fits = offset <= INT64_MAX && length <= INT64_MAX - offset;
  return advice <= 5 && fits ? Errno::kSuccess : Errno::kInval;
}

Result<Errno> fd_allocate(Wasi& wasi, const Memory&, u32 fd, u64 offset, u64 length) {
  SW_WASI_TRY(OpenFile* const file, regular_file(wasi, fd, rights::kFdAllocate));
  if (length == 0 || offset > INT64_MAX) return Errno::kInval;
  if (length > INT64_MAX - offset) return Errno::kFbig;
  if (offset + length <= file->at.node->size()) return Errno::kSuccess;
  return resize_file(wasi, file->at, offset + length);
}

Errno fd_close(Wasi& wasi, const Memory&, u32 fd) { return wasi.descriptors().close(fd); }

Errno fd_datasync(Wasi& wasi, const Memory&, u32 fd) {
  return open_file(wasi, fd, rights::kFdDatasync).error();
}

Errno fd_sync(Wasi& wasi, const Memory&, u32 fd) {
  return open_file(wasi, fd, rights::kFdSync).error();
}

Errno fd_fdstat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 result) {
  const OpenFile* const file = wasi.descriptors().find(fd);
  if (!file) return Errno::kBadf;
  GuestFdstat stat;
  stat.type = static_cast<std::uint8_t>(file->type());
  stat.flags = file->flags;
  stat.base = file->base;
  stat.inheriting = file->inheriting;
  return memory.store(result, stat) ? Errno::kSuccess : Errno::kFault;
}

Errno fd_fdstat_set_flags(Wasi& wasi, const Memory&, u32 fd, u32 flags) {
  SW_WASI_TRY(OpenFile* const file, open_file(wasi, fd, rights::kFdFdstatSetFlags));
  if ((flags & ~u32{fdflags::kAll}) != 0) return Errno::kInval;
  file->flags = static_cast<std::uint16_t>(flags);
  return Errno::kSuccess;
}

Errno fd_fdstat_set_rights(Wasi& wasi, const Memory&, u32 fd, u64 base, u64 inheriting) {
  OpenFile* const file = wasi.descriptors().find(fd);
  if (!file) return Errno::kBadf;
  if ((base & ~file->base) != 0 || (inheriting & ~file->inheriting) != 0) return Errno::kNotcapable;
  file->base = base;
  file->inheriting = inheriting;
  return Errno::kSuccess;
}

Errno fd_filestat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 result) {
  SW_WASI_TRY(const OpenFile* const file, open_file(wasi, fd, rights::kFdFilestatGet));
  const Stat stat =
      file->is_stream() ? stream_stat(*file) : wasi.files().stat_of(*file->at.node, file->at.mount);
  return memory.store(result, guest_filestat(stat)) ? Errno::kSuccess : Errno::kFault;
}

Result<Errno> fd_filestat_set_size(Wasi& wasi, const Memory&, u32 fd, u64 size) {
  SW_WASI_TRY(OpenFile* const file, regular_file(wasi, fd, rights::kFdFilestatSetSize));
  if (size > INT64_MAX) return Errno::kInval;
  return resize_file(wasi, file->at, size);
}

Errno fd_filestat_set_times(Wasi& wasi, const Memory&, u32 fd, u64 accessed, u64 modified,
                            u32 flags) {
  SW_WASI_TRY(const OpenFile* const file, open_file(wasi, fd, rights::kFdFilestatSetTimes));
  SW_WASI_TRY(const NewTimes times, new_times(wasi, accessed, modified, flags));
  return wasi.files().set_times(file->place(), times);
}

Errno fd_prestat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 result) {
  const OpenFile* const file = wasi.descriptors().find(fd);
  if (!file || file->preopen.empty()) return Errno::kBadf;
  GuestPrestat stat;
  stat.name_length = static_cast<u32>(file->preopen.size());
  return memory.store(result, stat) ? Errno::kSuccess : Errno::kFault;
}

Errno fd_prestat_dir_name(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length) {
  const OpenFile* const file = wasi.descriptors().find(fd);
  if (!file || file->preopen.empty()) return Errno::kBadf;
  if (length < file->preopen.size()) return Errno::kNametoolong;
  const auto to = memory.range(path, file->preopen.size());
  if (!to) return Errno::kFault;
  std::memcpy(to->data(), file->preopen.data(), to->size());
  return Errno::kSuccess;
}

Errno fd_readdir(Wasi& wasi, const Memory& memory, u32 fd, u32 buffer, u32 length, u64 cookie,
                 u32 result) {
  SW_WASI_TRY(const OpenFile* const file, open_file(wasi, fd, 0));
  if (file->type() != FileType::kDirectory) return Errno::kNotdir;
  if ((file->base & rights::kFdReaddir) == 0) return Errno::kNotcapable;
  const auto to = memory.range(buffer, length);
  if (!to || !memory.range(result, 4)) return Errno::kFault;
  // Cookies: 0 is before ".", 1 before "..", from 2 on the entry's order number plus 2 is before
  // that entry.
  DirentWriter out(*to);
  const Place here = file->place();
  const Place up = wasi.files().parent_of(here);
  bool room = length > 0;
  if (room && cookie == 0) room = out.put(".", FileType::kDirectory, here.node->inode, 1);
  if (room && cookie <= 1)
    room = out.put("..", FileType::kDirectory, up ? up.node->inode : here.node->inode, 2);
  if (room) {
    FileSystem& files = wasi.files();
    SW_WASI_CHECK(here.node->directory->for_each(
        cookie < 2 ? 0 : cookie - 2, [&](std::string_view name, const Directory::Entry& entry) {
          const Node& node = *entry.node;
          const u64 inode = node.mount >= 0 ? files.tree_of(node.mount)->root().inode : node.inode;
          return out.put(name, node.type, inode, entry.order + 3);
        }));
  }
  return memory.store(result, static_cast<u32>(out.used())) ? Errno::kSuccess : Errno::kFault;
}

Errno fd_renumber(Wasi& wasi, const Memory&, u32 from, u32 to) {
  return wasi.descriptors().renumber(from, to);
}

Errno fd_seek(Wasi& wasi, const Memory& memory, u32 fd, i64 offset, u32 whence, u32 result) {
  const bool only_tells = offset == 0 && whence == 1;
  SW_WASI_TRY(OpenFile* const file, open_file(wasi, fd, 0));
  if (file->type() == FileType::kDirectory) return Errno::kIsdir;
  if (file->is_stream()) return Errno::kSpipe;
  const Rights needed = only_tells ? rights::kFdTell | rights::kFdSeek : rights::kFdSeek;
  if ((file->base & needed) == 0) return Errno::kNotcapable;
  if (whence > 2) return Errno::kInval;
  if (!memory.range(result, 8)) return Errno::kFault;
  const u64 from = whence == 0 ? 0 : whence == 1 ? file->position : file->at.node->size();
  i64 target = 0;
  if (__builtin_add_overflow(static_cast<i64>(from), offset, &target)) return Errno::kOverflow;
  if (target < 0) return Errno::kInval;
  if (file->type() != FileType::kRegularFile) target = 0;  // devices have no position
  file->position = static_cast<u64>(target);
  return memory.store(result, file->position) ? Errno::kSuccess : Errno::kFault;
}

Errno fd_tell(Wasi& wasi, const Memory& memory, u32 fd, u32 result) {
  SW_WASI_TRY(const OpenFile* const file, open_file(wasi, fd, 0));
  if (file->type() == FileType::kDirectory) return Errno::kIsdir;
  if (file->is_stream()) return Errno::kSpipe;
  if ((file->base & rights::kFdTell) == 0) return Errno::kNotcapable;
  return memory.store(result, file->position) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace sw::wasi::calls
