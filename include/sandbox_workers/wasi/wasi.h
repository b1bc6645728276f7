// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// WASI preview 1 for one guest: its arguments, environment, files, streams, clocks and limits.
//
//   Wasi wasi(layout, clocks);                        // once per instance
//   wasi.start_run({.args = …, .env = …, …});         // before each run: everything is as new
//   … the guest runs and calls the functions that add_to_linker defined …
//
// A function answers the guest with an errno; it ends the run with an Error only for proc_exit
// (kGuestExit), cancellation (kGuestStopped) and, if so chosen, too much output (kLimitExceeded).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasi/file_system.h"
#include "sandbox_workers/wasi/streams.h"
#include "sandbox_workers/wasm/linker.h"

namespace sw::wasi {

class DescriptorTable;

enum class OutputOverflow : std::uint8_t {
  /// The guest's writes succeed, what is too much is dropped and `output_truncated` is true
  kDrop,
  kEndRun,  ///< what fits is passed on, then the run ends with kLimitExceeded
};

/// May a guest make links whose target begins with "/"? A guest whose only preopen is "/" may: its
/// root is the sandbox's. Hosts with several preopens refuse, for then "/" means nothing to the
/// guest.
enum class AbsoluteLinks : std::uint8_t { kAllow, kRefuse };

struct WasiLimits {  // of one run
  std::size_t open_files_max = 1024;
  std::uint64_t output_bytes_max = std::uint64_t{16} << 20;  ///< of stdout and stderr together
  OutputOverflow output_overflow = OutputOverflow::kDrop;
};

struct RunOptions {  // what one run gets
  std::vector<std::string> args = {};
  std::vector<std::string> env = {};  ///< "NAME=value"
  /// Mount 0, which the standard layout calls kWorkspaceMount, and those from 1 on. Missing or
  /// null: new and empty when first needed.
  std::shared_ptr<Tree> workspace = {};
  std::vector<std::shared_ptr<Tree>> more_mounts = {};
  OutputSink* output = nullptr;          ///< null: output is dropped. Outlives the run
  InputSource* input = nullptr;          ///< null: at its end. Outlives the run
  Cancellation* cancellation = nullptr;  ///< null: sleeps cannot be ended. Outlives the run
  WasiLimits limits = {};
  /// The thread's CPU clock when the run began, if the caller has read it (a system call of a
  /// microsecond). Without it the guest's CPU clocks count from its first look at them.
  std::optional<std::uint64_t> cpu_start_ns = {};
  /// Added to the host's monotonic clock (kept over a restore)
  std::int64_t monotonic_offset_ns = 0;
};

/// A directory that guests find open at start, as `name`.
struct Preopen {
  std::string name;
  std::string path;
};

struct WasiOptions {  // what stays the same from run to run
  std::vector<Preopen> preopens = {{"/", "/"}};
  AbsoluteLinks absolute_links = AbsoluteLinks::kAllow;
  TreeLimits tmp_limits = {};
  /// A guest that closed its preopens could never open a file again. A program under an interpreter
  /// knows nothing of them and closes all numbers there are, as daemons do.
  bool keep_preopens = false;
};

/// Threads: one at a time.
class Wasi {
 public:
  /// `clocks` must outlive this.
  Wasi(std::shared_ptr<const Layout> layout, const Clocks& clocks, WasiOptions options = {});
  ~Wasi();
  Wasi(const Wasi&) = delete;
  Wasi& operator=(const Wasi&) = delete;

  /// Closes everything, empties the per-instance trees and begins anew. Costs about a microsecond.
  /// Errors: kInvalidArgument for a preopen that does not exist or an argument with a NUL byte.
  Result<void> start_run(RunOptions run);

  /// The next cell of a session: new streams, limits and environment; open files and trees stay.
  /// Streams that were closed are open again. A workspace that is given takes the old one's place
  /// for paths.
  Result<void> continue_run(RunOptions run);

  FileSystem& files() { return files_; }
  DescriptorTable& descriptors() { return *descriptors_; }
  const RunOptions& run() const { return run_; }
  const WasiOptions& options() const { return options_; }
  const Clocks& clocks() const { return clocks_; }

  /// Bytes the guest wrote to stdout and stderr, dropped ones included.
  std::uint64_t output_bytes() const { return output_bytes_; }
  bool output_truncated() const { return output_bytes_ > run_.limits.output_bytes_max; }
  /// Passes bytes on to the sink within the limit. The guest is told that all were taken.
  Result<Errno> write_output(Stream stream, BytesView bytes);

  std::uint64_t monotonic_ns() const;
  /// CPU time of this run, if called on its thread.
  std::uint64_t cpu_ns();

 private:
  Result<void> begin(RunOptions run);
  Result<Errno> pass_on(Stream stream, BytesView bytes);

  const Clocks& clocks_;
  WasiOptions options_;
  FileSystem files_;
  std::unique_ptr<DescriptorTable> descriptors_;
  RunOptions run_;
  std::uint64_t output_bytes_ = 0;
};

/// Finds the Wasi in what an instance's maker gave it.
using GetWasi = Wasi& (*)(wasm::HostState&);

/// Defines the 46 functions of wasi_snapshot_preview1.
Result<void> add_to_linker(wasm::Linker& linker, GetWasi get);

}  // namespace sw::wasi
