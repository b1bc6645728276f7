// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the groups of WASI functions share: layouts of the structs in guest memory, descriptors with
// rights.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wasi/calls.h"
#include "wasi/descriptors.h"

namespace sw::wasi::calls {

/// Layouts as the WASI witx files give them; padding is spelled out, so that no host bytes leak.
struct GuestFilestat {
  u64 device = 0;
  u64 inode = 0;
  std::uint8_t type = 0;
  std::uint8_t padding[7] = {};
  u64 links = 0;
  u64 size = 0;
  u64 accessed = 0;
  u64 modified = 0;
  u64 changed = 0;
};
static_assert(sizeof(GuestFilestat) == 64);

GuestFilestat guest_filestat(const Stat& stat);

/// An open file that may be used for something that needs `needed`. kStale, kAcces for a disabled
/// tree. Missing rights to read or write answer kBadf, as POSIX does; others kNotcapable.
ErrnoOr<OpenFile*> open_file(Wasi& wasi, u32 fd, Rights needed);
/// The same for a directory that a path starts from.
ErrnoOr<Place> open_directory(Wasi& wasi, u32 fd, Rights needed);

/// A path in guest memory, copied out: the guest's thread is ours, but its memory may grow.
ErrnoOr<std::string> guest_path(const Memory& memory, u32 path, u32 length);

/// The buffers of an iovec array, all of them inside the memory. Together at most kTransferMax
/// bytes: what is beyond is left out, so the guest sees a short transfer.
inline constexpr u64 kTransferMax = 0x7FFF'F000;
inline constexpr u32 kBuffersMax = 1024;
ErrnoOr<std::vector<std::span<std::byte>>> guest_buffers(const Memory& memory, u32 iovs, u32 count);

/// Sets a regular file's size. What is new of it is filled with zeros piece by piece.
Result<Errno> resize_file(Wasi& wasi, const NodeRef& file, u64 size);

/// kSymlinkFollow is the only lookup flag.
ErrnoOr<Follow> lookup_flag(u32 flags);
/// Times as the four fstflags ask for. kInval for both "set" and "now".
ErrnoOr<NewTimes> new_times(const Wasi& wasi, u64 accessed, u64 modified, u32 flags);

}  // namespace sw::wasi::calls
