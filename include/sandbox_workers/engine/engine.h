// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The engine contract: what stands behind a language. An engine runs code once (`run`), and, if it
// has sessions, cell after cell in an instance whose memory can be saved and started from again.
// Nothing here needs Wasm: an engine may be a few lines of C++. Those that embed a Wasm interpreter
// get sessions, images, limits and stopping from embedded_interpreter.h.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/pages.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"

namespace sw::engine {

/// What an engine says of itself. All but `memory_bytes` and `code_bytes` is informational.
struct EngineLimits {
  std::uint64_t memory_bytes = 0;     ///< > 0
  std::uint64_t code_bytes = 65'536;  ///< of a cell in a context; other runs: kCodeBytesMax
  std::uint64_t request_bytes = 98'304;
};

struct EngineInfo {         // the same for the engine's whole life
  std::string language;     ///< reported as `language`: "python"
  std::string engine_name;  ///< for people; reported as `engine`
  /// Identity of the exact engine: a snapshot is restored only into the build that took it.
  std::string build;
  EngineLimits limits;
  std::vector<std::string> aliases =
      {};  ///< other names of the language, in lower case: "py", "python3"
};

/// What an engine returns from `run` or `execute` when a limit ended the run and it has no outcome
/// of its own to give. Any other Error is a failure of the engine.
Error ExecutionLimitError(std::string message);
bool is_execution_limit(const Error& error);

/// The outcome that stands for an Error of the engine: ExecutionLimitError or EngineError, and at
/// most 2048 characters of its message.
Outcome engine_error_outcome(const Error& error);

/// A memory at rest, to be saved.
struct SessionSnapshot {
  /// Its pages, valid until the instance's next call.
  std::unique_ptr<PageSource> memory;
  /// What every instance of this build begins with; zeros follow it. May be empty. Valid as long as
  /// the engine.
  BytesView base;
  /// Ascending, not overlapping: all that may have changed since the last snapshot of the instance;
  /// in its first, all that may differ from `base`. May say too much.
  std::vector<ByteRange> changed;
  /// Anything else the engine wants back on restore: a handle, open files, counters. Small.
  Bytes extra;
};

/// Asks whether parts of a memory (ascending, not touching) can be left out while it is restored.
/// True: they hold nothing until PageSupply writes it.
using LeaveOut = std::function<bool(std::span<const ByteRange> parts)>;
/// Writes a page of such a part into `memory`, and others that cost little more: some hundred.
/// Errors: as SnapshotSource::fill.
using PageSupply = std::function<Result<void>(std::uint32_t page, PageSink& memory)>;

/// A saved memory, for an instance that goes on from it.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  /// Size of the memory when it was saved.
  virtual std::uint64_t memory_bytes() const = 0;
  /// Writes the saved pages into `memory`, which is of that size and holds `base` (the
  /// SessionSnapshot's) and zeros after it. Returns SessionSnapshot::extra, which stays valid until
  /// `restore` returns.
  /// Errors: kCorrupt when what is stored is damaged; then `memory` must not be used.
  virtual Result<BytesView> fill(PageSink& memory, BytesView base) = 0;
  /// The same, but before it writes a page it may ask whether it can leave out parts (and ask again
  /// if it starts again). If so it
  /// sets `late`, which writes a page of them when it is needed: on any thread, one call at a time,
  /// as long as the instance lives. Whoever saves the instance does not read what is still left out.
  virtual Result<BytesView> fill(PageSink& memory, BytesView base, const LeaveOut& /*leave_out*/,
                                 PageSupply& /*late*/) {
    return fill(memory, base);
  }
};

/// One interpreter that goes on from cell to cell, with a copy of the sandbox's files that its open
/// files are in (Mirror). Its destructor releases what it holds, without running any code.
/// Threads: one at a time, within Engine::on_guest_thread.
class SessionInstance {
 public:
  virtual ~SessionInstance() = default;

  /// True once this instance must never be used or saved again. Stays true.
  virtual bool invalid() const = 0;

  /// Runs one cell on `run.files`, and tells what it did to them in Outcome::files. What the code did
  /// wrong, and limits it met, are part of the outcome. With `run.ends_context` it runs no code, but
  /// the exit handlers, if the language has such; it is not used again afterwards.
  /// Errors: kInvalidArgument and kBadReply when the files cannot be had, and for an invalid
  /// instance: nothing was run, and the instance is as it was. Any other is a fault of the host, and
  /// the instance is dropped; kCorrupt when what was saved of it is damaged.
  virtual Result<Outcome> execute(const Run& run, RunEvents& events) = 0;

  /// False while there is state that a snapshot would not hold, and once invalid.
  virtual bool can_snapshot() const = 0;
  /// If it fails, the next one tells of those changes too.
  virtual Result<SessionSnapshot> snapshot() = 0;
};

/// It keeps the limits of a run (Run::limits) and ends it when Run::cancel asks for it: nobody else
/// does. Nothing here may throw.
/// Threads: any.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  /// Runs code in a guest of its own, of which nothing remains. Within `on_guest_thread`.
  /// Errors: as SessionInstance::execute.
  virtual Result<Outcome> run(const Run& run, RunEvents& events) = 0;

  /// False while an instance can only be had after work that takes minutes (fetching, compiling).
  virtual bool is_ready() const { return true; }
  /// Whether there are code contexts: `boot` and `restore` work.
  virtual bool has_sessions() const { return false; }
  /// A fresh instance. Within `on_guest_thread`.
  virtual Result<std::unique_ptr<SessionInstance>> boot();
  /// An instance that goes on from a snapshot of this build. Variables, open files and
  /// half-consumed generators are as they were; random generators differ from those of every other
  /// instance. Within `on_guest_thread`.
  virtual Result<std::unique_ptr<SessionInstance>> restore(SnapshotSource& source);

  /// Runs `body` on a thread that has what guests need (a large stack, say), and waits for it.
  virtual Result<void> on_guest_thread(const std::function<void()>& body);
};

}  // namespace sw::engine
