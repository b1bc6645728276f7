// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cli/units.h"
#include "protocol/messages.h"
#include "sandbox/names.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/interpreter/runtime_worker.h"
#include "sandbox_workers/protocol/answers.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::cli {

namespace {

// For one person on one machine.
constexpr std::size_t kContextsMax = 100;

sandbox::SandboxOptions local_options() {
  sandbox::SandboxOptions options;
  options.files = wasi::TreeLimits{};
  options.idle_ttl = std::chrono::milliseconds(0);
  options.contexts_max = kContextsMax;
  options.code_bytes_max = kCodeBytesMax;
  return options;
}

std::string binding_of(std::string_view language) {
  std::string name(language);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name;
}

boost::json::object to_json(const sandbox::ContextRecord& context) {
  return {{"id", context.id},
          {"language", context.language},
          {"cwd", context.cwd},
          {"executions", context.executions},
          {"createdAt", context.created_ms},
          {"lastUsed", context.last_used_ms},
          {"saved", context.snapshot.has_value()},
          {"stale", context.snapshot && context.snapshot->stale}};
}

constexpr const char* kRow = "{:<24} {:<12} {:>6}  {:<10} {}\n";

constexpr const char* kSnapshotRow = "{:<24} {:<12} {:<10} {:>9} {:>9}  {:<24}  {}\n";

boost::json::object snapshot_json(const sandbox::ContextRecord& context,
                                  const std::vector<protocol::Checkpoint>& checkpoints) {
  boost::json::array names;
  for (const protocol::Checkpoint& checkpoint : checkpoints) {
    names.push_back({{"name", checkpoint.name}, {"takenAt", checkpoint.taken_at_ms}});
  }
  return {{"context", context.id},
          {"language", context.language},
          {"snapshot",
           context.snapshot ? boost::json::value(protocol::to_json(*context.snapshot)) : nullptr},
          {"checkpoints", std::move(names)}};
}

Result<void> act(ContextAction action, const ContextOptions& options, sandbox::Sandbox& sandbox) {
  switch (action) {
    case ContextAction::kFork: {
      SW_TRY(const auto made, sandbox.fork(options.context, options.argument));
      return {};
    }
    case ContextAction::kUndo: return sandbox.undo(options.context, options.runs);
    case ContextAction::kCheckpoint:
      return sandbox.add_checkpoint(options.context, options.argument);
    case ContextAction::kRestore:
      return sandbox.restore_checkpoint(options.context, options.argument);
    case ContextAction::kDelete: return sandbox.delete_context(options.context);
  }
  return {};
}

}  // namespace

// --- the sandbox

Result<void> LocalSandbox::open_object(const std::string& id) {
  SW_TRY(const storage::ObjectName name, sandbox::object_name(id));
  SW_TRY(object_, storage_->open(name, sandbox::Sandbox::schema()));
  sandbox_ = std::make_unique<sandbox::Sandbox>(*object_, bindings_, *clock_, local_options());
  return {};
}

Result<std::unique_ptr<LocalSandbox>> LocalSandbox::open(const std::filesystem::path& data_folder,
                                                         const std::string& id) {
  SW_CHECK_OK(sandbox::check_sandbox_id(id));
  const SignalFreeThreads signals;
  std::unique_ptr<LocalSandbox> local(new LocalSandbox());
  SW_TRY(local->storage_, storage::open_sqlite_storage(data_folder, {}));
  SW_CHECK_OK(local->open_object(id));
  return local;
}

Result<std::unique_ptr<LocalSandbox>> LocalSandbox::open_existing(
    const std::filesystem::path& data_folder, const std::string& id) {
  SW_TRY(const storage::ObjectName name, sandbox::object_name(id));
  const Error missing{ErrorCode::kNotFound,
                      fmt::format("there is no sandbox '{}' in {}", id, data_folder.native()), 0};
  // Opening a storage makes its folder, which a look at a mistyped path must not do.
  std::error_code failed;
  if (!std::filesystem::exists(data_folder, failed) && !failed) return missing;
  {
    SW_TRY(const auto storage, storage::open_sqlite_storage(data_folder, {}));
    SW_TRY(const auto found, storage->find(name));
    if (!found) return missing;
  }
  return open(data_folder, id);
}

Result<std::unique_ptr<LocalSandbox>> LocalSandbox::in_memory(const std::string& id) {
  const SignalFreeThreads signals;
  std::unique_ptr<LocalSandbox> local(new LocalSandbox());
  local->storage_ = storage::open_memory_storage(local->memory_);
  SW_CHECK_OK(local->open_object(id));
  return local;
}

Result<void> LocalSandbox::add_engine(std::shared_ptr<engine::Engine> engine) {
  const SignalFreeThreads signals;
  const std::string name = binding_of(engine->info().language);
  interpreter::RuntimeOptions options;
  options.storage = storage_.get();
  options.clock = clock_.get();
  options.idle_ttl = std::chrono::milliseconds(0);
  options.contexts_max = kContextsMax;
  SW_TRY(bindings_[name], interpreter::define_interpreter_runtime(std::move(engine), options));
  return {};
}

Result<sandbox::ContextRecord> LocalSandbox::context(const std::string& id,
                                                     const std::string& language) {
  const auto known = sandbox_->context(id);
  if (known.ok() && known->language != language) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the context '{}' is in {}, not in {}", id, known->language, language),
                 0};
  }
  if (known.ok() || known.error().code != ErrorCode::kContextNotFound) return known;
  return sandbox_->create_context({.binding = binding_of(language), .id = id, .env = {}});
}

Result<sandbox::Ran> LocalSandbox::run(const sandbox::Cell& cell, RunEvents& output) {
  return sandbox_->execute(cell, output);
}

bool is_worth_telling(std::string_view note) {
  return !note.empty() && note != protocol::kNewContextNote;
}

std::string_view memory_state(const sandbox::ContextRecord& context) {
  if (!context.snapshot) return "not saved";
  return context.snapshot->stale ? "stale" : "saved";
}

// --- the commands

Result<int> contexts_command(const ContextOptions& options, bool json) {
  SW_TRY(const auto local, LocalSandbox::open_existing(options.data_folder, options.sandbox));
  SW_TRY(const auto contexts, local->sandbox().contexts());
  if (json) {
    boost::json::array list;
    for (const sandbox::ContextRecord& context : contexts) list.push_back(to_json(context));
    fmt::print("{}\n", boost::json::serialize(list));
    return 0;
  }
  fmt::print(kRow, "CONTEXT", "LANGUAGE", "RUNS", "MEMORY", "FOLDER");
  for (const sandbox::ContextRecord& context : contexts) {
    fmt::print(kRow, context.id, context.language, context.executions, memory_state(context),
               printable(context.cwd));
  }
  return 0;
}

Result<int> snapshots_command(const ContextOptions& options, bool json) {
  SW_TRY(const auto local, LocalSandbox::open_existing(options.data_folder, options.sandbox));
  SW_TRY(const auto contexts, local->sandbox().contexts());
  SW_TRY(const auto machine, engine::Machine::create());
  std::set<std::string> loaded;
  boost::json::array list;
  if (!json)
    fmt::print(kSnapshotRow, "CONTEXT", "LANGUAGE", "MEMORY", "DIFFERS", "STORED", "TAKEN",
               "CHECKPOINTS");
  for (const sandbox::ContextRecord& context : contexts) {
    // Checkpoints are the Interpreter's, and that comes with its engine.
    if (loaded.insert(context.language).second) {
      SW_TRY(auto language, engine::find_language(context.language));
      SW_TRY(auto engine, load_engine(*machine, std::move(language)));
      SW_CHECK_OK(local->add_engine(std::move(engine)));
    }
    SW_TRY(const auto checkpoints, local->sandbox().checkpoints(context.id));
    if (json) {
      list.push_back(snapshot_json(context, checkpoints));
      continue;
    }
    std::vector<std::string> names;
    for (const protocol::Checkpoint& checkpoint : checkpoints) names.push_back(checkpoint.name);
    const auto& snapshot = context.snapshot;
    fmt::print(kSnapshotRow, context.id, context.language, memory_state(context),
               snapshot ? show_bytes(snapshot->bytes) : "-",
               snapshot ? show_bytes(snapshot->stored_bytes) : "-",
               snapshot ? protocol::iso_time(snapshot->taken_at_ms) : "-",
               names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", ")));
  }
  if (json) fmt::print("{}\n", boost::json::serialize(list));
  return 0;
}

Result<int> context_command(ContextAction action, const ContextOptions& options) {
  SW_TRY(const auto local, LocalSandbox::open_existing(options.data_folder, options.sandbox));
  const auto found = local->sandbox().context(options.context);
  if (!found.ok() && found.error().code == ErrorCode::kContextNotFound) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("the sandbox '{}' has no context '{}'", options.sandbox, options.context), 0};
  }
  SW_TRY(const sandbox::ContextRecord context, found);
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(auto language, engine::find_language(context.language));
  SW_TRY(auto engine, load_engine(*machine, std::move(language)));
  SW_CHECK_OK(local->add_engine(std::move(engine)));
  SW_CHECK_OK(act(action, options, local->sandbox()));
  return 0;
}

}  // namespace sw::cli
