// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Ties the names of wasi_snapshot_preview1 to our functions. The signatures come from the C++
// types.

#include <fmt/core.h>

#include <type_traits>
#include <utility>

#include "base/pieces.h"
#include "sandbox_workers/wasi/wasi.h"
#include "wasi/calls.h"

namespace sw::wasi {
namespace {

constexpr std::string_view kModule = "wasi_snapshot_preview1";

template <class R, class... A>
Result<void> define(wasm::Linker& linker, GetWasi get, std::string_view name,
                    R (*function)(Wasi&, const wasm::MemoryView&, A...)) {
  return linker.define(
      kModule, name,
      [get, function](wasm::Caller& caller, A... arguments) -> Result<std::uint32_t> {
        Wasi& wasi = get(caller.host());
        // Every call is a place where a cancelled run ends.
        SW_CHECK_OK(look_at_stop(wasi.run().cancellation));
        if constexpr (std::is_same_v<R, Errno>) {
          return static_cast<std::uint32_t>(function(wasi, caller.memory(), arguments...));
        } else {
          SW_TRY(const Errno answer, function(wasi, caller.memory(), arguments...));
          return static_cast<std::uint32_t>(answer);
        }
      });
}

Result<void> define_proc_exit(wasm::Linker& linker) {
  return linker.define(kModule, "proc_exit",
                       [](wasm::Caller&, std::uint32_t status) -> Result<void> {
                         return Error{ErrorCode::kGuestExit, fmt::format("exit status {}", status),
                                      static_cast<std::int32_t>(status)};
                       });
}

}  // namespace

Result<void> add_to_linker(wasm::Linker& linker, GetWasi get) {
#define SW_DEFINE(name) SW_CHECK_OK(define(linker, get, #name, &calls::name))
  SW_DEFINE(args_get);
  SW_DEFINE(args_sizes_get);
  SW_DEFINE(clock_res_get);
  SW_DEFINE(clock_time_get);
  SW_DEFINE(environ_get);
  SW_DEFINE(environ_sizes_get);
  SW_DEFINE(fd_advise);
  SW_DEFINE(fd_allocate);
  SW_DEFINE(fd_close);
  SW_DEFINE(fd_datasync);
  SW_DEFINE(fd_fdstat_get);
  SW_DEFINE(fd_fdstat_set_flags);
  SW_DEFINE(fd_fdstat_set_rights);
  SW_DEFINE(fd_filestat_get);
  SW_DEFINE(fd_filestat_set_size);
  SW_DEFINE(fd_filestat_set_times);
  SW_DEFINE(fd_pread);
  SW_DEFINE(fd_prestat_dir_name);
  SW_DEFINE(fd_prestat_get);
  SW_DEFINE(fd_pwrite);
  SW_DEFINE(fd_read);
  SW_DEFINE(fd_readdir);
  SW_DEFINE(fd_renumber);
  SW_DEFINE(fd_seek);
  SW_DEFINE(fd_sync);
  SW_DEFINE(fd_tell);
  SW_DEFINE(fd_write);
  SW_DEFINE(path_create_directory);
  SW_DEFINE(path_filestat_get);
  SW_DEFINE(path_filestat_set_times);
  SW_DEFINE(path_link);
  SW_DEFINE(path_open);
  SW_DEFINE(path_readlink);
  SW_DEFINE(path_remove_directory);
  SW_DEFINE(path_rename);
  SW_DEFINE(path_symlink);
  SW_DEFINE(path_unlink_file);
  SW_DEFINE(poll_oneoff);
  SW_DEFINE(proc_raise);
  SW_DEFINE(random_get);
  SW_DEFINE(sched_yield);
  SW_DEFINE(sock_accept);
  SW_DEFINE(sock_recv);
  SW_DEFINE(sock_send);
  SW_DEFINE(sock_shutdown);
#undef SW_DEFINE
  return define_proc_exit(linker);
}

}  // namespace sw::wasi
