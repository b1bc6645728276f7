// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox: files under /workspace, environment variables, and code contexts in several languages
// that share them. The memory of the contexts is elsewhere: with the Interpreters behind the
// bindings' Workers, which have a mirror of the files. For a run the Sandbox sends a manifest,
// hands over the contents that the mirror lacks, and takes back what the run did; files and the
// context's record are then stored in one transaction. docs/sandbox.md tells all of it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "object/clock.h"
#include "object/idle_alarm.h"
#include "runtime/messages.h"
#include "sandbox/binding.h"
#include "sandbox/file_store.h"
#include "sandbox/records.h"
#include "sandbox_workers/runtime/http.h"
#include "sandbox_workers/runtime/worker.h"
#include "sandbox_workers/workspace/workspace.h"
#include "storage/storage.h"

namespace sw::sandbox {

struct SandboxOptions {
  wasi::TreeLimits files = kWorkspaceLimits;  ///< for hosts and guests
  /// False: no files at all, and guests are refused /workspace
  bool file_api = true;
  /// Unused for so long it is destroyed; 0: never
  std::chrono::milliseconds idle_ttl = object::kDefaultIdleTtl;
  std::size_t contexts_max = 8;  ///< over all bindings
  std::size_t code_bytes_max = runtime::kCodeBytesMax;
  RunLimits run_limits;  ///< of runs that come as requests
  runtime::Profile profile = runtime::kStandardProfile;
};

struct NewContext {
  std::string binding;
  std::optional<std::string> id;  ///< absent: a new UUID
  std::string cwd = "/workspace";
  Env env;
};

struct Cell {
  std::string code;
  /// By which of its names the caller calls the language, where that matters.
  std::string alias;
  /// How tracebacks name the code; empty: "<cell N>".
  std::string file_name;
  /// The context to run in. Wins over the binding.
  std::optional<std::string> context_id;
  /// Its oldest context, made if there is none. A binding without contexts runs the cell once and
  /// forgets it.
  std::optional<std::string> binding;
  EnvChanges env;  ///< over the context's, which are over the sandbox's
  std::string stdin_data;
  std::vector<std::string> args;
  RunLimits limits;
  std::optional<runtime::Profile> profile;      ///< absent: the sandbox's
  std::optional<runtime::AfterError> on_error;  ///< absent: the profile's
  std::stop_token cancel;
};

struct Ran {
  std::string language;
  std::string engine;
  runtime::ExecuteResponse response;
  /// After the run; absent for a binding without contexts
  std::optional<ContextRecord> context;
  /// When the sandbox is destroyed if nobody uses it; absent: never
  std::optional<std::int64_t> expires_at_ms;
};

struct SandboxInfo {
  std::string id;
  SandboxRecord record;
  std::vector<ContextRecord> contexts;  ///< oldest first
  std::uint64_t files = 0;              ///< folders count
  std::uint64_t bytes = 0;
  bool file_api = true;
  std::optional<std::int64_t> expires_at_ms;
};

enum class FileUse : std::uint8_t { kLook, kChange };

/// Files and folders are there as soon as they are asked for; whatever happened before a crash is
/// either stored as a whole or has not happened. Threads: one at a time. Everything may block: on
/// the storage, on Workers, for as long as a run takes. Errors are the protocol's
/// (docs/sandbox.md). After a failure of the storage everything is read again.
class Sandbox {
 public:
  static storage::Schema schema();

  /// All of it outlives the sandbox; `storage` is its own.
  Sandbox(storage::ObjectStorage& storage, const runtime::Bindings& bindings, object::Clock& clock,
          const SandboxOptions& options);

  /// When it came into being; 0 before its first use.
  std::int64_t created_ms() const { return record_ ? record_->created_ms : 0; }

  /// Every route of the protocol. The request's `cancel` ends a run early.
  runtime::Response fetch(const runtime::Request& request);

  // --- contexts

  Result<ContextRecord> create_context(const NewContext& wanted);
  /// Oldest first.
  Result<std::vector<ContextRecord>> contexts();
  Result<ContextRecord> context(std::string_view id);
  /// Also when its Worker cannot be reached. Files stay.
  Result<void> delete_context(std::string_view id);
  /// Runs a cell. An error of the code is part of the answer; docs/sandbox.md says what is kept
  /// after it.
  Result<Ran> execute(const Cell& cell, RunEvents& output);

  // --- versions of a context's memory. Files are as they are: they belong to all contexts.

  /// A second context that goes on from where the first is.
  Result<ContextRecord> fork(std::string_view id, const std::optional<std::string>& new_id);
  /// Takes back what the last runs did to memory.
  Result<void> undo(std::string_view id, std::uint32_t runs);
  Result<void> add_checkpoint(std::string_view id, std::string_view name);
  Result<void> restore_checkpoint(std::string_view id, std::string_view name);
  Result<void> remove_checkpoint(std::string_view id, std::string_view name);
  Result<std::vector<runtime::Checkpoint>> checkpoints(std::string_view id);

  // --- the rest

  Result<void> set_env(const EnvChanges& changes);
  Result<SandboxInfo> info();
  /// Deletes everything, here and at the Interpreters. The next use begins anew.
  Result<void> destroy();
  /// The alarm has gone off: destroys what nobody used.
  Result<void> alarm();

  /// Does something with the files; what it changed is stored before this returns. `operation` is
  /// the protocol's ("file.read"), `path` as the caller wrote it: for errors.
  template <class Use>
  std::invoke_result_t<Use, Workspace&, std::uint64_t> with_files(FileUse kind,
                                                                  std::string_view operation,
                                                                  std::string_view path,
                                                                  const Use& use) {
    SW_TRY(Workspace* const files, usable_files());
    auto outcome = use(*files, now_ns());
    if (!outcome.ok()) return file_failure(operation, path, std::move(outcome).error());
    SW_CHECK_OK(store({.files = kind == FileUse::kChange, .used = true}));
    return outcome;
  }

 private:
  friend class Routes;

  /// What goes into one transaction.
  struct Step {
    bool files = false;                      // what differs from what is stored
    const ContextRecord* context = nullptr;  // to be written
    std::optional<std::string> erased = {};  // a context to be erased
    bool record = false;                     // the sandbox's own is written
    bool key = false;                        // and that of its Interpreters
    bool used = false;                       // counts as use
  };
  using Contexts = std::map<std::string, ContextRecord, std::less<>>;

  Result<void> load();
  Result<std::optional<std::string>> stored_key(storage::Reader& reader) const;
  Result<void> store(const Step& step);
  void forget();
  Result<Workspace*> files();
  Result<Workspace*> usable_files();
  Result<ContextRecord*> find(std::string_view id);
  ContextRecord* oldest_of(std::string_view binding);
  Result<void> room_for_context();
  Result<ContextRecord*> create(const Binding& binding, const runtime::WorkerInfo& info,
                                const NewContext& wanted);
  ContextRecord new_record(std::string id);
  Result<ContextRecord*> keep(ContextRecord record);
  Result<Ran> run_once(const Binding& binding, const runtime::WorkerInfo& info, const Cell& cell,
                       RunEvents& output);
  Result<Ran> run_in(ContextRecord& context, const Cell& cell, RunEvents& output);
  runtime::ExecuteArgs args_of(const ContextRecord& context, const Cell& cell) const;
  Result<void> take_over(ContextRecord& context, const runtime::ExecuteResponse& response);
  Env merged_env(const ContextRecord* context, const EnvChanges& call) const;
  /// Asks the Interpreter that has a context something about it.
  template <class T>
  Result<T> ask(const ContextRecord& context,
                const std::function<Result<T>(runtime::Interpreter&)>& question);
  Result<void> rewound(
      std::string_view id,
      const std::function<Result<runtime::ContextInfo>(runtime::Interpreter&)>& question);
  std::vector<ContextRecord> by_age() const;
  static Error file_failure(std::string_view operation, std::string_view path, Error error);
  std::int64_t now_ms() const;
  std::uint64_t now_ns() const;

  storage::ObjectStorage& storage_;
  const runtime::Bindings& bindings_;
  object::Clock& clock_;
  const SandboxOptions options_;
  // A copy of what is stored; absent until it is needed.
  std::optional<SandboxRecord> record_;
  std::string key_;  // of its Interpreters
  Contexts contexts_;
  std::optional<FileStore> store_;
  std::optional<Workspace> workspace_;
  std::optional<object::Time> expires_;
  object::Time last_used_{};  // exact, where the record's lags behind
};

}  // namespace sw::sandbox
