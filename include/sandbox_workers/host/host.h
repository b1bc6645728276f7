// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Host has sandboxes, languages, and the threads that guests run on.
//
//   SW_TRY(sw::Host host, sw::Host::open({.data_folder = "data"}));   // {}: in memory
//   SW_TRY(sw::Outcome once, host.run({.language = "python", .code = "6 * 7"}));
//   sw::Sandbox sandbox = host.sandbox("user-42");                    // made at its first use
//   SW_TRY(sw::Outcome first, sandbox.run({.language = "python", .code = "x = 41"}));

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/bake/progress.h"
#include "sandbox_workers/base/byte_stream.h"
#include "sandbox_workers/base/history_limits.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/host/run_handle.h"
#include "sandbox_workers/host/sandbox.h"
#include "sandbox_workers/interpreter/runtime_worker.h"
#include "sandbox_workers/protocol/profile.h"
#include "sandbox_workers/protocol/worker.h"
#include "sandbox_workers/wasi/tree.h"
#include "sandbox_workers/wasm/runtime.h"
#include "sandbox_workers/workspace/write_back_report.h"

namespace sw {

/// What holds for every sandbox of a host.
struct SandboxSettings {
  /// What /workspace may hold, for hosts and guests.
  wasi::TreeLimits files = {};
  /// Contexts of one sandbox, over all languages.
  std::size_t contexts_max = 100;
  /// Which runs of a context can be gone back to. Each of them costs the storage of what it changed.
  HistoryLimits history = {};
  /// Which of their files can be put back.
  FileHistoryLimits file_history = {};
  /// A sandbox that is not used for this long is destroyed. Zero: never.
  std::chrono::milliseconds idle_ttl{0};
  /// Every run of a sandbox knows the workspace as /home/user: Run::home.
  bool home = false;
  /// When runs count as stored whose sandbox and context do not say.
  Durability durability = Durability::kCommit;
  /// The rules of runs: kStandardProfile, or kCompatProfile (docs/differences.md).
  protocol::Profile profile = protocol::kStandardProfile;
};

struct HostOptions {
  /// Where sandboxes are kept (docs/data-folder.md); one process at a time. Empty: in memory, and
  /// they end with the host.
  std::filesystem::path data_folder = {};
  /// If the data folder does not exist: the Error kNotFound instead of making it.
  bool must_exist = false;
  SandboxSettings sandboxes = {};

  /// Guests that compute at once; more wait, and sandboxes take turns. 0: as many as there are
  /// processors.
  std::size_t runs_at_once = 0;
  /// Guests in progress, including those that sleep or wait for input: each has a thread.
  std::size_t guests_max = 256;
  /// The sum of the memory limits of guests in progress. 0: no limit.
  std::uint64_t guest_memory_bytes_max = 0;
  /// Runs that wait for their turn; more are refused with kLimitExceeded.
  std::size_t queue_max = 10'000;
  /// Interpreters that stay in memory between the runs of their contexts.
  interpreter::ResidencyLimits residency = {};

  /// Where packages, compiled code and images are kept; empty: MachineOptions::cache_folder says.
  std::filesystem::path cache_folder = {};
  /// How runs are ended at their limits: MachineOptions::stop_means.
  wasm::StopMeans stop_means = wasm::StopMeans::kFault;
  /// Your own languages. One with the name of a built-in language replaces it. A language without
  /// sessions works in Host::run only.
  std::vector<std::shared_ptr<engine::Engine>> engines = {};
  /// Called with the progress of preparing a language, which can take minutes, once per machine; an
  /// empty step means that it is done. On the thread that needs the language.
  bake::Progress on_progress = bake::no_progress;
  /// Called with messages for the operator. From any thread.
  std::function<void(std::string_view)> on_notice = {};
};

/// A language of a host.
struct LanguageInfo {
  std::string id;                      ///< "python"
  std::vector<std::string> aliases;    ///< its other names, in lower case: "py", "python3"
  std::string engine;                  ///< for people
  std::uint64_t memory_bytes_max = 0;  ///< the most that its guests may use
};

/// How far a built-in language is prepared. Sizes are zero for what does not exist yet.
struct PreparedLanguage {
  std::string id;
  std::string name;  ///< for people: "Python"
  std::string engine;
  std::string version;
  std::string licence;
  std::string build;      ///< names code, image and all that they are made from
  bool prepared = false;  ///< it can run at once
  std::uint64_t package_bytes = 0;
  std::uint64_t code_bytes = 0;
  std::uint64_t image_bytes = 0;
};

/// A handle: cheap to copy. When the last handle of it and of its sandboxes, contexts and files is
/// destroyed, the host closes: it stops runs in progress, waits for them, and refuses those in the
/// queue.
/// Threads: any; from the thread of a run only `start`, and it must not destroy the last handle.
struct BackupReport {
  std::size_t objects = 0;           ///< copied
  std::vector<std::string> damaged;  ///< what could not be copied, and why; the rest was
};

class Host {
 public:
  /// Errors: kUnavailable while another process uses the data folder (`is_in_use`), or for a cache
  /// folder that cannot be used.
  static Result<Host> open(HostOptions options = {});

  // --- runs outside of sandboxes: each in a fresh interpreter, of which nothing remains

  /// What it printed is in the outcome.
  Result<Outcome> run(Run run) const;
  /// What it prints goes to `events` as it is printed.
  Result<Outcome> run(Run run, RunEvents& events) const;
  /// Begins it. `events` outlives it; `done` is called once, on the run's thread, or within `start`
  /// for a run that is refused.
  RunHandle start(Run run, RunEvents& events, RunDone done = {}) const;

  // --- sandboxes

  /// The sandbox of that name, whether it exists or not: its first use makes it. An invalid id is
  /// an Error at the first use (`check_sandbox_id`).
  Sandbox sandbox(std::string id) const;
  /// Whether it exists. Does not make it.
  Result<bool> has_sandbox(const std::string& id) const;
  /// Up to `count_max` ids of sandboxes, in order, beginning after `after`.
  Result<std::vector<std::string>> sandboxes(const std::string& after = {},
                                             std::size_t count_max = 1000) const;

  /// A new sandbox from what Sandbox::export_to wrote, here or on another host. It is there when all
  /// of it was read and found right. Files can always be used, contexts only with the same build of
  /// their languages: otherwise their next run begins anew, and says so.
  /// Errors: kInvalidArgument for what is no export, and for an id that is taken; kLimitExceeded for
  /// more than `SandboxSettings` allow; kCorrupt; those of `read`.
  Result<Sandbox> import_sandbox(std::string new_id, const ReadBytes& read) const;

  // --- checkpoints of sandboxes: each a whole sandbox as it was, which outlives the one it was made of

  /// Up to `count_max` of them, of all sandboxes, by name, beginning after `after`.
  Result<std::vector<SandboxCheckpoint>> checkpoints(const std::string& after = {},
                                                     std::size_t count_max = 1000) const;
  /// A new sandbox that is what the checkpoint is.
  Result<Sandbox> fork_checkpoint(std::string_view checkpoint, std::string new_id) const;
  Result<void> remove_checkpoint(std::string_view name) const;

  /// Copies the data folder as it is at one moment to a new folder that can be used in its place.
  /// Errors: kInvalidArgument if `destination` exists; kNotSupported without a data folder;
  /// kUnavailable.
  Result<BackupReport> back_up(const std::filesystem::path& destination) const;

  // --- languages

  std::vector<LanguageInfo> languages() const;
  /// By its identifier or another name; case does not matter. Errors: kInvalidArgument naming those
  /// there are.
  Result<LanguageInfo> language(std::string_view name) const;
  /// Prepares a language now instead of at its first run, and returns its engine. `progress` is told
  /// instead of HostOptions::on_progress.
  Result<std::shared_ptr<engine::Engine>> load(std::string_view language,
                                               const bake::Progress& progress = {}) const;
  /// The built-in languages, and how far each is prepared.
  Result<std::vector<PreparedLanguage>> prepared() const;
  /// Whether this is a complete cell, or more lines should follow. True for languages that cannot
  /// tell.
  bool is_complete(std::string_view language, std::string_view code) const;

 private:
  explicit Host(std::shared_ptr<host::Core> core) : core_(std::move(core)) {}
  std::shared_ptr<host::Core> core_;  // shared by all handles
};

/// Whether Host::open failed because another process uses the data folder. That process's id is
/// Error::context["usedBy"], or "" if it is not known.
bool is_in_use(const Error& error);

/// A built-in language, by its identifier or another name; case does not matter. Errors:
/// kInvalidArgument naming those there are.
Result<LanguageInfo> find_language(std::string_view name);
/// The built-in language of a program: by the file's ending, else by a #! line. Errors:
/// kInvalidArgument saying how to name it.
Result<LanguageInfo> guess_language(std::string_view file_name, std::string_view code);

/// A run and its outcome as one line of JSON: the wire protocol's ExecutionResult
/// (docs/protocol.md).
/// `files` says what was written back to a WorkspaceFolder.
std::string outcome_json(const LanguageInfo& language, const Run& run, const Outcome& outcome,
                         const std::optional<WriteBackReport>& files = {});

/// Errors: kInvalidArgument saying the rule: 1 to 63 of A-Z a-z 0-9 . _ -, no hyphen at either end,
/// none of the reserved names.
Result<void> check_sandbox_id(std::string_view id);

/// Copies a data folder that no process uses to a new one; Host::back_up copies one that is in use.
/// Errors: kInvalidArgument if `destination` exists; kNotFound if `folder` is not a data folder;
/// kUnavailable.
Result<BackupReport> back_up(const std::filesystem::path& folder,
                             const std::filesystem::path& destination);

struct DataFolderCheck {
  std::uint64_t objects = 0;
  std::uint64_t layers = 0;           ///< that objects are made of
  std::uint64_t frames = 0;           ///< in the commit journal
  std::uint64_t journal_bytes = 0;    ///< of them
  std::vector<std::string> problems;  ///< for people; empty: nothing is wrong
};

/// Reads all of a data folder that no process uses, and changes nothing (docs/data-folder.md).
/// Errors: kNotFound if it is none; kUnavailable.
Result<DataFolderCheck> check_data_folder(const std::filesystem::path& folder);

}  // namespace sw
