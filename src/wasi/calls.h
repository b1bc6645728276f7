// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of wasi_snapshot_preview1 as C++ functions: the guest's memory, then the arguments
// as they come. Pointers are checked before anything is done, so a bad one changes nothing.

#include <cstdint>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/errno.h"
#include "sandbox_workers/wasi/wasi.h"
#include "sandbox_workers/wasm/memory_view.h"

namespace sw::wasi::calls {

using Memory = wasm::MemoryView;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

Errno args_get(Wasi& wasi, const Memory& memory, u32 pointers, u32 texts);
Errno args_sizes_get(Wasi& wasi, const Memory& memory, u32 count, u32 bytes);
Errno environ_get(Wasi& wasi, const Memory& memory, u32 pointers, u32 texts);
Errno environ_sizes_get(Wasi& wasi, const Memory& memory, u32 count, u32 bytes);
Result<Errno> random_get(Wasi& wasi, const Memory& memory, u32 buffer, u32 length);
Errno sched_yield(Wasi& wasi, const Memory& memory);
Errno proc_raise(Wasi& wasi, const Memory& memory, u32 signal);
Errno sock_accept(Wasi& wasi, const Memory& memory, u32 fd, u32 flags, u32 result);
Errno sock_recv(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32 flags, u32 size,
                u32 roflags);
Errno sock_send(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32 flags, u32 size);
Errno sock_shutdown(Wasi& wasi, const Memory& memory, u32 fd, u32 how);

Errno clock_res_get(Wasi& wasi, const Memory& memory, u32 clock, u32 result);
Errno clock_time_get(Wasi& wasi, const Memory& memory, u32 clock, u64 precision, u32 result);
Result<Errno> poll_oneoff(Wasi& wasi, const Memory& memory, u32 subscriptions, u32 events,
                          u32 count, u32 result);

Errno fd_advise(Wasi& wasi, const Memory& memory, u32 fd, u64 offset, u64 length, u32 advice);
Result<Errno> fd_allocate(Wasi& wasi, const Memory& memory, u32 fd, u64 offset, u64 length);
Errno fd_close(Wasi& wasi, const Memory& memory, u32 fd);
Errno fd_datasync(Wasi& wasi, const Memory& memory, u32 fd);
Errno fd_fdstat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 result);
Errno fd_fdstat_set_flags(Wasi& wasi, const Memory& memory, u32 fd, u32 flags);
Errno fd_fdstat_set_rights(Wasi& wasi, const Memory& memory, u32 fd, u64 base, u64 inheriting);
Errno fd_filestat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 result);
Result<Errno> fd_filestat_set_size(Wasi& wasi, const Memory& memory, u32 fd, u64 size);
Errno fd_filestat_set_times(Wasi& wasi, const Memory& memory, u32 fd, u64 accessed, u64 modified,
                            u32 flags);
Result<Errno> fd_pread(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u64 offset,
                       u32 result);
Errno fd_prestat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 result);
Errno fd_prestat_dir_name(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length);
Result<Errno> fd_pwrite(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u64 offset,
                        u32 result);
Result<Errno> fd_read(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32 result);
Errno fd_readdir(Wasi& wasi, const Memory& memory, u32 fd, u32 buffer, u32 length, u64 cookie,
                 u32 result);
Errno fd_renumber(Wasi& wasi, const Memory& memory, u32 from, u32 to);
Errno fd_seek(Wasi& wasi, const Memory& memory, u32 fd, i64 offset, u32 whence, u32 result);
Errno fd_sync(Wasi& wasi, const Memory& memory, u32 fd);
Errno fd_tell(Wasi& wasi, const Memory& memory, u32 fd, u32 result);
Result<Errno> fd_write(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32 result);

Errno path_create_directory(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length);
Errno path_filestat_get(Wasi& wasi, const Memory& memory, u32 fd, u32 lookup, u32 path, u32 length,
                        u32 result);
Errno path_filestat_set_times(Wasi& wasi, const Memory& memory, u32 fd, u32 lookup, u32 path,
                              u32 length, u64 accessed, u64 modified, u32 flags);
Errno path_link(Wasi& wasi, const Memory& memory, u32 from_fd, u32 lookup, u32 from,
                u32 from_length, u32 to_fd, u32 to, u32 to_length);
Errno path_open(Wasi& wasi, const Memory& memory, u32 fd, u32 lookup, u32 path, u32 length,
                u32 oflags, u64 base, u64 inheriting, u32 flags, u32 result);
Errno path_readlink(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length, u32 buffer,
                    u32 buffer_length, u32 result);
Errno path_remove_directory(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length);
Errno path_rename(Wasi& wasi, const Memory& memory, u32 from_fd, u32 from, u32 from_length,
                  u32 to_fd, u32 to, u32 to_length);
Errno path_symlink(Wasi& wasi, const Memory& memory, u32 target, u32 target_length, u32 fd,
                   u32 path, u32 length);
Errno path_unlink_file(Wasi& wasi, const Memory& memory, u32 fd, u32 path, u32 length);

}  // namespace sw::wasi::calls
