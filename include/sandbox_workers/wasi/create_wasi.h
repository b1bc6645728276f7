// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// WASI preview 1 for an engine that hosts a Wasm module itself: the usual folders, an archive if
// the guest has one, and the question whether a snapshot of the memory alone would hold everything.

#include <memory>
#include <optional>
#include <string>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasi/content.h"
#include "sandbox_workers/wasi/wasi.h"

namespace sw::wasi {

/// What a guest sees.
struct CreateWasiOptions {
  /// A zip archive (a standard library, say) whose members the guest reads below `archive_path`.
  std::optional<SharedBytes> archive = {};
  std::string archive_path = "/stdlib";
  /// Preopened folders and limits. A guest's libc keeps the preopens' numbers in its memory, so
  /// their order must be the same for ever if memories are saved.
  WasiOptions wasi = {};
  /// Of the first run: arguments, environment, streams, /workspace (null: a new one). A later run
  /// begins with Wasi::start_run or, in a session, Wasi::continue_run.
  RunOptions run = {};
};

/// A host with /workspace, which is also /home/user, /tmp, /dev and the archive. It is used by the functions that
/// add_to_linker defines, and by one guest at a time. `clocks` outlives it.
/// A workspace's tree can be disabled at any time (Tree::set_disabled): each access then fails with
/// EACCES.
/// Errors: kCorrupt when the archive is none; kInvalidArgument for a folder, preopen or argument
/// that cannot be.
Result<std::unique_ptr<Wasi>> create_wasi(CreateWasiOptions options, const Clocks& clocks);

/// Has the guest anything open beyond its three streams and the preopened folders? Then a snapshot
/// of its memory is not complete.
bool has_open_guest_fds(Wasi& wasi);

}  // namespace sw::wasi
