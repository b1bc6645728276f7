// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "base/standard_streams.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace sw::cli {

namespace {

namespace json = boost::json;

std::int64_t milliseconds(TimePoint time) { return time.time_since_epoch().count(); }

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

constexpr const char* kFactRow = "{:<10} {}\n";

json::object sandbox_json(const SandboxInfo& info) {
  return {{"id", info.id},
          {"createdAt", milliseconds(info.created_at)},
          {"lastUsed", milliseconds(info.last_used_at)},
          {"contexts", info.contexts.size()},
          {"files", info.files},
          {"bytes", info.file_bytes}};
}

std::string show_files(const SandboxInfo& info) {
  return fmt::format("{} ({})", info.files, show_bytes(info.file_bytes));
}

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
Result<void> remove(const Caller& caller, const Context& context) {
  TerminalSink terminal(caller.streams);
  SW_CHECK_OK(context.remove(terminal));
  if (const auto failed = terminal.stdout_failure()) return cannot_print(*failed);
  return {};
}

constexpr const char* kHistoryRow = "{:>8} {:<24}  {:>9}  {:<20}  {}\n";

constexpr const char* kCheckpointRow = "{:<36} {:<32} {:<24}  {}\n";

json::object history_json(const HistoryEntry& entry) {
  return {{"step", entry.step},
          {"takenAt", milliseconds(entry.taken_at)},
          {"code", entry.code},
          {"bytes", entry.bytes},
          {"files", json::value_from(entry.files)},
          {"filesChanged", entry.files_changed},
          {"current", entry.current},
          {"checkpoints", json::value_from(entry.checkpoints)}};
}

std::string files_of(const HistoryEntry& entry) {
  if (entry.files.empty()) return "-";
  const std::size_t more = entry.files_changed - 1;
  return printable(entry.files.front()) + (more == 0 ? "" : fmt::format(" +{}", more));
}

Result<void> act(const Caller& caller, ContextAction action, const ContextCommandOptions& options,
                 const Context& context) {
  const VersionOptions taken_along{.files = options.files};
  const auto tell = [&](const std::string& id, const VersionFiles& files) {
    if (options.files) return;
    tell_differences(caller.streams, files,
                     fmt::format("context restore {} {}", options.sandbox, id));
  };
  switch (action) {
    case ContextAction::kFork: {
      SW_TRY(const Fork made,
             context.fork(options.argument, version_of(options.from), taken_along));
      tell(options.argument, made.files);
      return {};
    }
    case ContextAction::kUndo: {
      SW_TRY(const VersionFiles files, context.undo(options.runs, taken_along));
      tell(options.context, files);
      return {};
    }
    case ContextAction::kCheckpoint: return context.checkpoint(options.argument);
    case ContextAction::kRestore: {
      SW_TRY(const VersionFiles files, context.restore(version_of(options.argument), taken_along));
      tell(options.context, files);
      return {};
    }
    case ContextAction::kRemoveCheckpoint: return context.remove_checkpoint(options.argument);
    case ContextAction::kDelete: return remove(caller, context);
  }
  return {};
}

}  // namespace

std::string show_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (time - seconds).count());
}

ContextVersion version_of(const std::string& text) {
  if (text.empty()) return {};
  std::uint64_t step = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), step);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) return step;
  return text;
}

void tell_differences(const Streams& streams, const VersionFiles& files, std::string_view restore) {
  if (!files.known) return streams.complain("how the files were then is not kept");
  if (files.differ_count == 0) return;
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(files.differ.size(), kNamed); ++i)
    names.push_back(printable(files.differ[i]));
  std::string line =
      fmt::format("files differ from those that the memory saw: {}", fmt::join(names, ", "));
  if (files.differ_count > names.size())
    line += fmt::format(" and {} more", files.differ_count - names.size());
  if (files.step) line += fmt::format(" (to put them back: {} {} --files)", restore, *files.step);
  streams.complain(line);
}

bool is_worth_telling(std::string_view note) { return !note.empty() && note != kNewContextNote; }

std::string_view memory_state(const ContextInfo& context) {
  if (!context.saved) return "not saved";
  return context.saved->stale ? "stale" : "saved";
}

// --- the commands

Result<int> sandboxes_command(const Caller& caller, DataFolder& folder, bool json) {
  json::array list;
  SW_TRY(const auto host, folder.open_existing());
  if (!json) caller.streams.print(kSandboxRow, "SANDBOX", "CONTEXTS", "LAST USED", "FILES");
  // A folder that is not there holds none.
  for (std::string after; host;) {
    SW_TRY(const auto ids, host->sandboxes(after));
    for (const std::string& id : ids) {
      SW_TRY(const SandboxInfo info, host->sandbox(id).info());
      if (json) {
        list.push_back(sandbox_json(info));
      } else {
        caller.streams.print(kSandboxRow, id, info.contexts.size(), show_time(info.last_used_at),
                             show_files(info));
      }
    }
    if (ids.empty()) break;
    after = ids.back();
  }
  if (json) caller.streams.print("{}\n", json::serialize(list));
  return 0;
}

Result<int> sandbox_info_command(const Caller& caller, DataFolder& folder, const std::string& id,
                                 bool json) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, id));
  SW_TRY(const SandboxInfo info, sandbox.info());
  if (json) {
    json::object facts = sandbox_json(info);
    json::array contexts;
    for (const ContextInfo& context : info.contexts) contexts.push_back(to_json(context));
    facts["contexts"] = std::move(contexts);
    facts["env"] = json::value_from(info.env);
    caller.streams.print("{}\n", json::serialize(facts));
    return 0;
  }
  caller.streams.print(kFactRow, "sandbox", info.id);
  caller.streams.print(kFactRow, "created", show_time(info.created_at));
  caller.streams.print(kFactRow, "last used", show_time(info.last_used_at));
  caller.streams.print(kFactRow, "files", show_files(info));
  for (const auto& [name, value] : info.env) {
    caller.streams.print(kFactRow, "variable", printable(fmt::format("{}={}", name, value)));
  }
  for (const ContextInfo& context : info.contexts) {
    caller.streams.print(kFactRow, "context",
                         fmt::format("{} ({}, {} runs, {})", printable(context.id),
                                     context.language, context.executions, memory_state(context)));
  }
  return 0;
}

Result<int> delete_sandbox_command(const Caller& caller, DataFolder& folder,
                                   const std::string& id) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, id));
  TerminalSink terminal(caller.streams);
  SW_CHECK_OK(sandbox.destroy(terminal));
  if (const auto failed = terminal.stdout_failure()) return cannot_print(*failed);
  return 0;
}

Result<int> sandbox_version_command(const Caller& caller, DataFolder& folder, SandboxAction action,
                                    const SandboxVersionOptions& options) {
  SW_TRY(const auto host, folder.open_existing());
  if (!host) {
    return Error{ErrorCode::kNotFound, fmt::format("no data folder at {}", folder.path().native()),
                 0};
  }
  const Sandbox sandbox = host->sandbox(options.sandbox);
  switch (action) {
    case SandboxAction::kCheckpoint: {
      SW_TRY(const SandboxCheckpoint made, sandbox.checkpoint(options.checkpoint));
      if (options.checkpoint.empty()) caller.streams.print("{}\n", made.name);
      return 0;
    }
    case SandboxAction::kRestore: SW_CHECK_OK(sandbox.restore(options.checkpoint)); return 0;
    case SandboxAction::kFork: SW_CHECK_OK(sandbox.fork(options.new_sandbox)); return 0;
    case SandboxAction::kForkCheckpoint:
      SW_CHECK_OK(host->fork_checkpoint(options.checkpoint, options.new_sandbox));
      return 0;
    case SandboxAction::kRemoveCheckpoint:
      SW_CHECK_OK(host->remove_checkpoint(options.checkpoint));
      return 0;
  }
  return 0;
}

Result<int> checkpoints_command(const Caller& caller, DataFolder& folder, bool json) {
  json::array list;
  SW_TRY(const auto host, folder.open_existing());
  if (!json) caller.streams.print(kCheckpointRow, "CHECKPOINT", "SANDBOX", "TAKEN", "CONTEXTS");
  for (std::string after; host;) {
    SW_TRY(const auto checkpoints, host->checkpoints(after));
    for (const SandboxCheckpoint& one : checkpoints) {
      if (json) {
        list.push_back({{"name", one.name},
                        {"sandbox", one.sandbox},
                        {"takenAt", milliseconds(one.taken_at)},
                        {"contexts", json::value_from(one.contexts)}});
      } else {
        caller.streams.print(kCheckpointRow, one.name, one.sandbox, show_time(one.taken_at),
                             fmt::format("{}", fmt::join(one.contexts, ", ")));
      }
    }
    if (checkpoints.empty()) break;
    after = checkpoints.back().name;
  }
  if (json) caller.streams.print("{}\n", json::serialize(list));
  return 0;
}

Result<int> history_command(const Caller& caller, DataFolder& folder, const std::string& sandbox,
                            const std::string& context, bool json) {
  SW_TRY(const Sandbox opened, open_sandbox(folder, sandbox));
  const auto history = opened.context(context).history();
  if (!history.ok()) return history.error();
  json::array list;
  if (!json) caller.streams.print(kHistoryRow, "STEP", "TAKEN", "STORED", "FILES", "CODE");
  for (const HistoryEntry& entry : *history) {
    if (json) {
      list.push_back(history_json(entry));
      continue;
    }
    std::string labels;
    for (const std::string& label : entry.checkpoints) labels += " [" + printable(label) + "]";
    caller.streams.print(kHistoryRow, fmt::format("{}{}", entry.current ? "*" : "", entry.step),
                         show_time(entry.taken_at), show_bytes(entry.bytes), files_of(entry),
                         printable(entry.code) + labels);
  }
  if (json) caller.streams.print("{}\n", json::serialize(list));
  return 0;
}

Result<int> contexts_command(const Caller& caller, DataFolder& folder, const std::string& id,
                             bool json) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, id));
  SW_TRY(const auto contexts, sandbox.contexts());
  if (json) {
    json::array list;
    for (const ContextInfo& context : contexts) list.push_back(to_json(context));
    caller.streams.print("{}\n", json::serialize(list));
    return 0;
  }
  caller.streams.print(kRow, "CONTEXT", "LANGUAGE", "RUNS", "MEMORY", "FOLDER");
  for (const ContextInfo& context : contexts) {
    caller.streams.print(kRow, printable(context.id), context.language, context.executions,
                         memory_state(context), printable(context.cwd));
  }
  return 0;
}

Result<int> snapshots_command(const Caller& caller, DataFolder& folder, const std::string& id,
                              bool json) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, id));
  SW_TRY(const auto contexts, sandbox.contexts());
  json::array list;
  if (!json) {
    caller.streams.print(kSnapshotRow, "CONTEXT", "LANGUAGE", "MEMORY", "DIFFERS", "STORED",
                         "TAKEN", "CHECKPOINTS");
  }
  for (const ContextInfo& context : contexts) {
    SW_TRY(const auto checkpoints, sandbox.context(context.id).checkpoints());
    if (json) {
      list.push_back(snapshot_json(context, checkpoints));
      continue;
    }
    std::vector<std::string> names;
    for (const Checkpoint& checkpoint : checkpoints) names.push_back(printable(checkpoint.name));
    const auto& saved = context.saved;
    caller.streams.print(kSnapshotRow, printable(context.id), context.language,
                         memory_state(context), saved ? show_bytes(saved->bytes) : "-",
                         saved ? show_bytes(saved->stored_bytes) : "-",
                         saved ? show_time(saved->taken_at) : "-",
                         names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", ")));
  }
  if (json) caller.streams.print("{}\n", json::serialize(list));
  return 0;
}

Result<int> context_command(const Caller& caller, DataFolder& folder, ContextAction action,
                            const ContextCommandOptions& options) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, options.sandbox));
  const Context context = sandbox.context(options.context);
  const auto found = context.info();
  if (!found.ok() && found.error().code == ErrorCode::kContextNotFound) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("sandbox '{}' has no context '{}'", options.sandbox, options.context),
                 0};
  }
  if (!found.ok()) return found.error();
  SW_CHECK_OK(act(caller, action, options, context));
  return 0;
}

}  // namespace sw::cli
