// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "sandbox_workers/engine/all_languages.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::cli {

namespace {

boost::json::object to_json(const sandbox::ContextEntry& entry) {
  return {{"id", entry.id},
          {"language", entry.language},
          {"cwd", entry.row.cwd},
          {"executions", entry.row.executions},
          {"createdAt", entry.row.created_ms},
          {"lastUsed", entry.row.last_used_ms},
          {"saved", entry.row.saved_execution.has_value()},
          {"stale", entry.row.stale()}};
}

std::string_view state_of(const interpreter::ContextRow& row) {
  if (!row.saved_execution) return "not saved";
  return row.stale() ? "stale" : "saved";
}

constexpr const char* kRow = "{:<24} {:<12} {:>6}  {:<10} {}\n";

Result<void> act(ContextAction action, const ContextOptions& options, interpreter::Interpreter& interpreter) {
  switch (action) {
    case ContextAction::kFork: return interpreter.fork(options.context, options.argument);
    case ContextAction::kUndo: return interpreter.undo(options.context, options.runs);
    case ContextAction::kCheckpoint: return interpreter.add_checkpoint(options.context, options.argument);
    case ContextAction::kRestore: return interpreter.restore_checkpoint(options.context, options.argument);
    case ContextAction::kDelete: return interpreter.delete_context(options.context);
  }
  return {};
}

}  // namespace

Result<OpenSandbox> open_sandbox(engine::Machine& machine, const std::filesystem::path& data_folder,
                                 const std::string& id) {
  SW_TRY(const storage::ObjectName name, sandbox::EmbeddedSandbox::object_name(id));
  OpenSandbox open;
  SW_TRY(open.storage, storage::open_sqlite_storage(data_folder, {}));
  SW_TRY(open.object, open.storage->open(name, {}));
  SW_TRY(open.sandbox, sandbox::EmbeddedSandbox::open(*open.object, machine.clocks()));
  return open;
}

Result<int> contexts_command(const ContextOptions& options, bool json) {
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(const OpenSandbox open, open_sandbox(*machine, options.data_folder, options.sandbox));
  SW_TRY(const auto contexts, open.sandbox->contexts());
  if (json) {
    boost::json::array list;
    for (const sandbox::ContextEntry& entry : contexts) list.push_back(to_json(entry));
    fmt::print("{}\n", boost::json::serialize(list));
    return 0;
  }
  fmt::print(kRow, "CONTEXT", "LANGUAGE", "RUNS", "MEMORY", "FOLDER");
  for (const sandbox::ContextEntry& entry : contexts) {
    fmt::print(kRow, entry.id, entry.language, entry.row.executions, state_of(entry.row), entry.row.cwd);
  }
  return 0;
}

Result<int> context_command(ContextAction action, const ContextOptions& options) {
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(const OpenSandbox open, open_sandbox(*machine, options.data_folder, options.sandbox));
  SW_TRY(const auto contexts, open.sandbox->contexts());
  const auto found = std::ranges::find(contexts, options.context, &sandbox::ContextEntry::id);
  if (found == contexts.end()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("the sandbox '{}' has no context '{}'", options.sandbox, options.context), 0};
  }
  SW_TRY(auto language, engine::find_language(found->language));
  SW_TRY(const auto engine, load_engine(*machine, std::move(language)));
  SW_TRY(interpreter::Interpreter * interpreter, open.sandbox->interpreter(engine));
  SW_CHECK_OK(act(action, options, *interpreter));
  return 0;
}

}  // namespace sw::cli
