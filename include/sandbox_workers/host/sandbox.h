// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox of a Host: files, environment, and contexts whose variables, functions, imports and
// open files persist from run to run.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/byte_stream.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/host/files.h"
#include "sandbox_workers/host/run_handle.h"
#include "sandbox_workers/protocol/context_version.h"

namespace sw {

using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;
using Env = std::map<std::string, std::string>;
/// nullopt removes a variable.
using EnvChanges = std::map<std::string, std::optional<std::string>>;

/// What is stored of a context's memory.
struct SavedMemory {
  std::string build;               ///< of the language that it belongs to
  std::uint64_t pages = 0;         ///< of 4 KiB that differ from the language's image
  std::uint64_t bytes = 0;         ///< those pages'
  std::uint64_t stored_bytes = 0;  ///< what they take on disk
  TimePoint taken_at;
  bool stale = false;  ///< later runs could not be saved
};

struct ContextInfo {
  std::string id;
  std::string language;
  std::string cwd;
  Env env;
  /// Runs so far. A fork inherits the number that was saved, and undo does not lower it.
  std::uint64_t executions = 0;
  TimePoint created_at;
  TimePoint last_used_at;
  std::optional<SavedMemory> saved;  ///< absent: nothing is saved
};

struct Checkpoint {
  std::string name;
  TimePoint taken_at;
};

/// A run of a context that can be gone back to.
struct HistoryEntry {
  std::uint64_t step = 0;  ///< the value of ContextInfo::executions after it
  TimePoint taken_at;
  std::string code = {};                ///< the first line of it that is not blank, if need be cut
  std::uint64_t bytes = 0;              ///< that storing its memory took
  std::vector<std::string> files = {};  ///< some of those that it wrote or deleted
  std::uint64_t files_changed = 0;      ///< how many there were
  bool current = false;                 ///< the context's saved memory is that after this run
  std::vector<std::string> checkpoints = {};
};

/// A sandbox as it was at one moment: contexts with their memory, files, environment.
struct SandboxCheckpoint {
  std::string name;
  std::string sandbox;  ///< that it was made of, which may be gone
  TimePoint taken_at;
  std::vector<std::string> contexts;
};

/// What an export has in it beside files and environment.
struct ExportOptions {
  std::vector<std::string> contexts = {};  ///< empty: all
  /// Also the steps that can be gone back to, and what files were before.
  bool history = true;
};

struct SandboxInfo {
  std::string id;
  TimePoint created_at;
  TimePoint last_used_at;
  std::optional<TimePoint> expires_at;  ///< if nobody uses it; absent: never
  Env env;
  std::vector<ContextInfo> contexts;  ///< oldest first
  std::uint64_t files = 0;            ///< folders count
  std::uint64_t file_bytes = 0;
};

struct ContextOptions {
  std::string language;
  std::string id = {};  ///< empty: a new UUID
  std::string cwd = "/workspace";
  Env env = {};
  std::optional<Durability> durability = {};  ///< of its runs; absent: the sandbox's
};

class Host;
class Context;
struct Fork;

/// A handle: cheap to copy. It keeps the host open.
/// Everything that is asked of a sandbox makes it if it does not exist, except `interrupt` and
/// `destroy`.
/// Errors of all: kInvalidArgument for an invalid id, and those of the storage (kUnavailable,
/// kCorrupt).
/// Threads: any; what waits for a run, not from the thread of a run.
class Sandbox {
 public:
  const std::string& id() const { return id_; }

  /// Runs in the context `run.context`, or else in the one that is named after the language; it is
  /// made if it is not there. What it printed is in the outcome.
  /// Errors: kInvalidArgument for an invalid run, a context in another language, and a language
  /// without sessions;
  /// kLimitExceeded when too many runs wait; kUnavailable if it was cancelled before it began.
  Result<Outcome> run(Run run) const;
  /// What it prints goes to `events` as it is printed.
  Result<Outcome> run(Run run, RunEvents& events) const;
  /// Begins it. `events` outlives it; `done` is called once, on the run's thread, or within `start`
  /// for a run that is refused.
  RunHandle start(Run run, RunEvents& events, RunDone done = {}) const;
  /// Ends all runs, including those that wait for their turn.
  Result<void> interrupt() const;

  /// The context of that name, whether it exists or not: its first run makes it.
  Context context(std::string id) const;
  /// Errors: kInvalidArgument, also for an id that is taken.
  Result<Context> create_context(const ContextOptions& options) const;
  /// Oldest first.
  Result<std::vector<ContextInfo>> contexts() const;

  Files files() const;
  /// For all runs from now on.
  Result<void> set_env(const EnvChanges& changes) const;
  /// Of runs from now on that do not say, and whose contexts do not. Absent: the host's setting.
  Result<void> set_durability(std::optional<Durability> durability) const;
  Result<SandboxInfo> info() const;

  // Versions of all of it: contexts with their memory, files, environment. Each is one commit, and takes
  // a time that does not depend on the size.

  /// Keeps it as it is now, under a name that no other sandbox's checkpoint has; empty: a new UUID.
  /// Errors: kNotFound if the sandbox does not exist.
  Result<SandboxCheckpoint> checkpoint(const std::string& name = {}) const;
  /// Makes it what a checkpoint is, of whatever sandbox that was made. Interrupts its runs.
  Result<void> restore(std::string_view checkpoint) const;
  /// A new sandbox that is what this one is now.
  Result<Sandbox> fork(std::string new_id) const;

  /// Writes all of it, as it is at one moment, as one stream (docs/formats/archive.md), which
  /// Host::import_sandbox reads. `write` may block: nobody waits for it. Variables of the environment
  /// are in it, too. Runs that are under way are in it with what they had stored before.
  /// Errors: kNotFound if the sandbox does not exist; kContextNotFound; those of `write`.
  Result<void> export_to(const WriteBytes& write, const ExportOptions& options = {}) const;
  /// To a file of the host, which appears whole or not at all, for its owner only. It replaces a file
  /// of that name, and nothing else.
  Result<void> export_to(const std::filesystem::path& file,
                         const ExportOptions& options = {}) const;

  /// Stops its runs, ends its contexts as Context::remove does, and deletes everything in it. The
  /// next use makes a new, empty sandbox.
  Result<void> destroy() const;
  Result<void> destroy(RunEvents& events) const;

 private:
  friend class Context;
  friend class Host;
  Sandbox(std::shared_ptr<host::Core> core, std::string id)
      : core_(std::move(core)), id_(std::move(id)) {}
  std::shared_ptr<host::Core> core_;  // shared by all handles
  std::string id_;
};

/// A context of a sandbox: a handle, cheap to copy.
/// Errors of all: kContextNotFound; those of a sandbox. Threads: as for a sandbox.
class Context {
 public:
  const std::string& id() const { return id_; }
  const Sandbox& sandbox() const { return sandbox_; }

  /// As the sandbox's, in this context. The language can be left out once the context exists.
  Result<Outcome> run(Run run) const;
  Result<Outcome> run(Run run, RunEvents& events) const;
  RunHandle start(Run run, RunEvents& events, RunDone done = {}) const;
  /// Ends its run and those that wait for their turn. The context keeps its state, unless the run
  /// has to be ended by force.
  Result<void> interrupt() const;

  Result<ContextInfo> info() const;
  /// The runs that can be gone back to (SandboxSettings::history), oldest first. Those after the
  /// current one were left by going back.
  Result<std::vector<HistoryEntry>> history() const;

  // Going back. Files belong to all contexts, and stay as they are; what comes back says which differ
  // from those that the memory saw. With `{.files = true}` they are put back as well, in the same
  // commit: kNotFound if how they were then is not kept any more (docs/limits.md), and nothing changes.

  /// A second context that starts from a version of this one's memory, and inherits its environment,
  /// and `executions` and history up to there. Files are shared.
  Result<Fork> fork(std::string new_id, const ContextVersion& from = {},
                    const VersionOptions& options = {}) const;
  /// Undoes what the last runs did to memory. `executions` stays as it is.
  /// Errors: kInvalidArgument if one of them is not kept any more, naming those that are.
  Result<VersionFiles> undo(std::uint32_t runs = 1, const VersionOptions& options = {}) const;
  /// Saves the memory as it is now under a name.
  Result<void> checkpoint(std::string_view name) const;
  /// Returns to the state after a run (`restore(12)`) or to a checkpoint (`restore("before")`). This
  /// can be undone, and the runs since stay in the history.
  /// Errors: kNotFound.
  Result<VersionFiles> restore(const ContextVersion& version,
                               const VersionOptions& options = {}) const;
  Result<std::vector<Checkpoint>> checkpoints() const;
  Result<void> remove_checkpoint(std::string_view name) const;
  /// Stops its runs and deletes it. Its exit handlers run first, for at most 5 seconds, and open
  /// files are flushed; what that prints goes to `events`. Files stay.
  Result<void> remove() const;
  Result<void> remove(RunEvents& events) const;

 private:
  friend class Sandbox;
  Context(Sandbox sandbox, std::string id) : sandbox_(std::move(sandbox)), id_(std::move(id)) {}
  Sandbox sandbox_;
  std::string id_;
};

/// What Context::fork makes.
struct Fork {
  Context context;
  VersionFiles files;
};

}  // namespace sw
