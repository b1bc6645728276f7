// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>

#include "base/standard_streams.h"
#include "cli/open_host.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace sw::cli {

namespace {

namespace json = boost::json;

std::int64_t milliseconds(TimePoint time) { return time.time_since_epoch().count(); }

/// "2026-01-31T12:34:56.789Z"
std::string show_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (time - seconds).count());
}

json::object to_json(const ContextInfo& context) {
  return {{"id", context.id},
          {"language", context.language},
          {"cwd", context.cwd},
          {"executions", context.executions},
          {"createdAt", milliseconds(context.created_at)},
          {"lastUsed", milliseconds(context.last_used_at)},
          {"saved", context.saved.has_value()},
          {"stale", context.saved && context.saved->stale}};
}

constexpr const char* kRow = "{:<24} {:<12} {:>6}  {:<10} {}\n";

constexpr const char* kSnapshotRow = "{:<24} {:<12} {:<10} {:>9} {:>9}  {:<24}  {}\n";

constexpr const char* kSandboxRow = "{:<32} {:>8}  {:<24}  {}\n";

json::object snapshot_json(const ContextInfo& context, const std::vector<Checkpoint>& checkpoints) {
  json::array names;
  for (const Checkpoint& checkpoint : checkpoints) {
    names.push_back({{"name", checkpoint.name}, {"takenAt", milliseconds(checkpoint.taken_at)}});
  }
  json::value saved;
  if (context.saved) {
    saved = {{"build", context.saved->build},
             {"pages", context.saved->pages},
             {"bytes", context.saved->bytes},
             {"storedBytes", context.saved->stored_bytes},
             {"takenAt", milliseconds(context.saved->taken_at)},
             {"stale", context.saved->stale}};
  }
  return {{"context", context.id},
          {"language", context.language},
          {"snapshot", std::move(saved)},
          {"checkpoints", std::move(names)}};
}

/// Its exit handlers may print.
Result<void> remove(const Context& context) {
  TerminalSink terminal;
  SW_CHECK_OK(context.remove(terminal));
  if (const auto failed = terminal.stdout_failure()) return cannot_print(*failed);
  return {};
}

Result<void> act(ContextAction action, const ContextCommandOptions& options,
                 const Context& context) {
  switch (action) {
    case ContextAction::kFork: SW_CHECK_OK(context.fork(options.argument)); return {};
    case ContextAction::kUndo: return context.undo(options.runs);
    case ContextAction::kCheckpoint: return context.checkpoint(options.argument);
    case ContextAction::kRestore: return context.restore(options.argument);
    case ContextAction::kRemoveCheckpoint: return context.remove_checkpoint(options.argument);
    case ContextAction::kDelete: return remove(context);
  }
  return {};
}

}  // namespace

bool is_worth_telling(std::string_view note) { return !note.empty() && note != kNewContextNote; }

std::string_view memory_state(const ContextInfo& context) {
  if (!context.saved) return "not saved";
  return context.saved->stale ? "stale" : "saved";
}

// --- the commands

Result<int> sandboxes_command(const std::filesystem::path& data_folder, bool json) {
  json::array list;
  if (!json) fmt::print(kSandboxRow, "SANDBOX", "CONTEXTS", "LAST USED", "FILES");
  SW_TRY(const auto host, open_existing_host(data_folder));
  // A folder that is not there holds none.
  for (std::string after; host;) {
    SW_TRY(const auto ids, host->sandboxes(after));
    for (const std::string& id : ids) {
      SW_TRY(const SandboxInfo info, host->sandbox(id).info());
      const std::string files = fmt::format("{} ({})", info.files, show_bytes(info.file_bytes));
      if (json) {
        list.push_back({{"id", id},
                        {"createdAt", milliseconds(info.created_at)},
                        {"lastUsed", milliseconds(info.last_used_at)},
                        {"contexts", info.contexts.size()},
                        {"files", info.files},
                        {"bytes", info.file_bytes}});
      } else {
        fmt::print(kSandboxRow, id, info.contexts.size(), show_time(info.last_used_at), files);
      }
    }
    if (ids.empty()) break;
    after = ids.back();
  }
  if (json) fmt::print("{}\n", json::serialize(list));
  return 0;
}

Result<int> delete_sandbox_command(const std::filesystem::path& data_folder,
                                   const std::string& id) {
  SW_TRY(const Sandbox sandbox, open_sandbox(data_folder, id));
  TerminalSink terminal;
  SW_CHECK_OK(sandbox.destroy(terminal));
  if (const auto failed = terminal.stdout_failure()) return cannot_print(*failed);
  return 0;
}

Result<int> contexts_command(const ContextCommandOptions& options, bool json) {
  SW_TRY(const Sandbox sandbox, open_sandbox(options.data_folder, options.sandbox));
  SW_TRY(const auto contexts, sandbox.contexts());
  if (json) {
    json::array list;
    for (const ContextInfo& context : contexts) list.push_back(to_json(context));
    fmt::print("{}\n", json::serialize(list));
    return 0;
  }
  fmt::print(kRow, "CONTEXT", "LANGUAGE", "RUNS", "MEMORY", "FOLDER");
  for (const ContextInfo& context : contexts) {
    fmt::print(kRow, context.id, context.language, context.executions, memory_state(context),
               printable(context.cwd));
  }
  return 0;
}

Result<int> snapshots_command(const ContextCommandOptions& options, bool json) {
  SW_TRY(const Sandbox sandbox, open_sandbox(options.data_folder, options.sandbox));
  SW_TRY(const auto contexts, sandbox.contexts());
  json::array list;
  if (!json) {
    fmt::print(kSnapshotRow, "CONTEXT", "LANGUAGE", "MEMORY", "DIFFERS", "STORED", "TAKEN",
               "CHECKPOINTS");
  }
  for (const ContextInfo& context : contexts) {
    SW_TRY(const auto checkpoints, sandbox.context(context.id).checkpoints());
    if (json) {
      list.push_back(snapshot_json(context, checkpoints));
      continue;
    }
    std::vector<std::string> names;
    for (const Checkpoint& checkpoint : checkpoints) names.push_back(checkpoint.name);
    const auto& saved = context.saved;
    fmt::print(kSnapshotRow, context.id, context.language, memory_state(context),
               saved ? show_bytes(saved->bytes) : "-",
               saved ? show_bytes(saved->stored_bytes) : "-",
               saved ? show_time(saved->taken_at) : "-",
               names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", ")));
  }
  if (json) fmt::print("{}\n", json::serialize(list));
  return 0;
}

Result<int> context_command(ContextAction action, const ContextCommandOptions& options) {
  SW_TRY(const Sandbox sandbox, open_sandbox(options.data_folder, options.sandbox));
  const Context context = sandbox.context(options.context);
  const auto found = context.info();
  if (!found.ok() && found.error().code == ErrorCode::kContextNotFound) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("sandbox '{}' has no context '{}'", options.sandbox, options.context),
                 0};
  }
  if (!found.ok()) return found.error();
  SW_CHECK_OK(act(action, options, context));
  return 0;
}

}  // namespace sw::cli
