// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/calls_support.h"

#include <algorithm>

#include "base/pieces.h"
#include "wasi/descriptors.h"

namespace sw::wasi::calls {

GuestFilestat guest_filestat(const Stat& stat) {
  GuestFilestat guest;
  guest.device = stat.device;
  guest.inode = stat.inode;
  guest.type = static_cast<std::uint8_t>(stat.type);
  guest.links = stat.links;
  guest.size = stat.size;
  guest.accessed = stat.times.accessed;
  guest.modified = stat.times.modified;
  guest.changed = stat.times.changed;
  return guest;
}

ErrnoOr<OpenFile*> open_file(Wasi& wasi, u32 fd, Rights needed) {
  OpenFile* const file = wasi.descriptors().find(fd);
  if (!file) return Errno::kBadf;
  if (file->stale) return Errno::kStale;
  if (file->at.tree && file->at.tree->disabled()) return Errno::kAcces;
  const Rights missing = needed & ~file->base;
  if (missing == 0) return file;
  return (missing & (rights::kFdRead | rights::kFdWrite)) != 0 ? Errno::kBadf : Errno::kNotcapable;
}

ErrnoOr<Place> open_directory(Wasi& wasi, u32 fd, Rights needed) {
  SW_WASI_TRY(const OpenFile* const file, open_file(wasi, fd, 0));
  if (file->type() != FileType::kDirectory) return Errno::kNotdir;
  if ((needed & ~file->base) != 0) return Errno::kNotcapable;
  return file->place();
}

ErrnoOr<std::string> guest_path(const Memory& memory, u32 path, u32 length) {
  const auto bytes = memory.range(path, length);
  if (!bytes) return Errno::kFault;
  if (length > kPathBytesMax) return Errno::kNametoolong;
  return std::string(as_text(*bytes));
}

ErrnoOr<std::vector<std::span<std::byte>>> guest_buffers(const Memory& memory, u32 iovs,
                                                         u32 count) {
  if (count > kBuffersMax) return Errno::kInval;
  if (!memory.range(iovs, u64{8} * count)) return Errno::kFault;
  std::vector<std::span<std::byte>> buffers;
  buffers.reserve(count);
  u64 left = kTransferMax;
  for (u32 i = 0; i < count; ++i) {
    const auto address = memory.load<u32>(iovs + 8 * i);
    const auto length = memory.load<u32>(iovs + 8 * i + 4);
    const auto buffer = address && length ? memory.range(*address, *length) : std::nullopt;
    if (!buffer) return Errno::kFault;
    buffers.push_back(buffer->first(static_cast<std::size_t>(std::min<u64>(buffer->size(), left))));
    left -= buffers.back().size();
  }
  return buffers;
}

Result<Errno> resize_file(Wasi& wasi, const NodeRef& file, u64 size) {
  Tree& tree = *file.tree;
  const u64 now = wasi.files().now_ns();
  SW_WASI_CHECK(tree.reserve(*file.node, size));
  for (u64 at = file.node->size(); at < size;) {
    SW_CHECK_OK(look_at_stop(wasi.run().cancellation));
    at = std::min(at + kPieceBytes, size);
    SW_WASI_CHECK(tree.resize(*file.node, at, now));
  }
  return tree.resize(*file.node, size, now);
}

ErrnoOr<Follow> lookup_flag(u32 flags) {
  if (flags > 1) return Errno::kInval;
  return flags == 1 ? Follow::kYes : Follow::kNo;
}

ErrnoOr<NewTimes> new_times(const Wasi& wasi, u64 accessed, u64 modified, u32 flags) {
  constexpr u32 kAccessed = 1;
  constexpr u32 kAccessedNow = 2;
  constexpr u32 kModified = 4;
  constexpr u32 kModifiedNow = 8;
  const auto has = [flags](u32 bits) { return (flags & bits) == bits; };
  if (flags > 15 || has(kAccessed | kAccessedNow) || has(kModified | kModifiedNow))
    return Errno::kInval;
  NewTimes times;
  if (has(kAccessed)) times.accessed = accessed;
  if (has(kModified)) times.modified = modified;
  if (has(kAccessedNow)) times.accessed = wasi.clocks().realtime_ns();
  if (has(kModifiedNow)) times.modified = wasi.clocks().realtime_ns();
  return times;
}

}  // namespace sw::wasi::calls
