// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/repl_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

#include "cli/completeness.h"
#include "cli/load_engine.h"
#include "cli/repl.h"
#include "cli/sandbox_command.h"
#include "sandbox_workers/engine/all_languages.h"
#include "storage/memory/memory_storage.h"

namespace sw::cli {

namespace {

namespace fs = std::filesystem;

/// $XDG_STATE_HOME/sandbox-workers/history-LANGUAGE; empty when there is no home.
fs::path history_file(const std::string& language) {
  fs::path state;
  if (const char* folder = std::getenv("XDG_STATE_HOME"); folder != nullptr && *folder == '/') state = folder;
  else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    state = fs::path(home) / ".local" / "state";
  else return {};
  return state / "sandbox-workers" / fmt::format("history-{}", language);
}

std::string_view memory_of(const interpreter::ContextRow& row) {
  if (!row.saved_execution) return "not saved";
  return row.stale() ? "stale" : "saved";
}

class SandboxTarget final : public ReplTarget {
 public:
  SandboxTarget(std::shared_ptr<engine::Engine> engine, sandbox::EmbeddedSandbox& sandbox,
                const ReplOptions& options)
      : engine_(std::move(engine)),
        sandbox_(sandbox),
        completeness_(engine_),
        alias_(options.language),
        wall_max_(options.wall_max) {}

  const std::string& language() const override { return engine_->info().language; }
  bool is_complete(std::string_view code) override { return completeness_.is_complete(code); }

  Result<Ran> run(const std::string& context, const std::string& code, std::stop_token stop,
                  wasi::OutputSink& output) override {
    engine::RunRequest request;
    request.code = code;
    request.alias = alias_;
    request.limits.wall_max = wall_max_;
    request.limits.memory_bytes_max = engine_->info().limits.memory_bytes;
    request.limits.output_bytes_max = 0;
    request.limits.result_bytes_max = request.limits.memory_bytes_max;
    request.cancel = std::move(stop);
    SW_CHECK_OK(engine::validate(request));
    Result<interpreter::ExecuteResult> result = Error{};
    SW_CHECK_OK(engine_->on_guest_thread([&] { result = sandbox_.execute(engine_, context, request, output); }));
    if (!result.ok()) return std::move(result).error();
    return Ran{.outcome = std::move(result->outcome), .note = result->row.executions > 1 ? result->note : ""};
  }

  Result<std::vector<File>> files() override {
    std::vector<File> files;
    const wasi::TreeState state = wasi::TreeState::of(*sandbox_.workspace());
    for (const auto& [path, entry] : state.entries()) {
      if (path.empty()) continue;
      files.push_back({.path = path,
                       .bytes = entry.bytes.bytes.size(),
                       .is_folder = entry.type == wasi::FileType::kDirectory});
    }
    return files;
  }

  Result<std::vector<Context>> contexts() override {
    SW_TRY(const auto entries, sandbox_.contexts());
    std::vector<Context> contexts;
    for (const sandbox::ContextEntry& entry : entries) {
      contexts.push_back({.id = entry.id,
                          .language = entry.language,
                          .executions = entry.row.executions,
                          .memory = std::string(memory_of(entry.row))});
    }
    return contexts;
  }

  Result<void> fork(const std::string& context, const std::string& new_context) override {
    SW_TRY(interpreter::Interpreter * interpreter, sandbox_.interpreter(engine_));
    return interpreter->fork(context, new_context);
  }
  Result<void> undo(const std::string& context, std::uint32_t runs) override {
    SW_TRY(interpreter::Interpreter * interpreter, sandbox_.interpreter(engine_));
    return interpreter->undo(context, runs);
  }
  Result<void> add_checkpoint(const std::string& context, const std::string& label) override {
    SW_TRY(interpreter::Interpreter * interpreter, sandbox_.interpreter(engine_));
    return interpreter->add_checkpoint(context, label);
  }
  Result<void> restore_checkpoint(const std::string& context, const std::string& label) override {
    SW_TRY(interpreter::Interpreter * interpreter, sandbox_.interpreter(engine_));
    return interpreter->restore_checkpoint(context, label);
  }
  Result<std::vector<std::string>> checkpoints(const std::string& context) override {
    SW_TRY(interpreter::Interpreter * interpreter, sandbox_.interpreter(engine_));
    SW_TRY(const auto found, interpreter->checkpoints(context));
    std::vector<std::string> labels;
    for (const snapshot::CheckpointInfo& info : found) labels.push_back(info.label);
    return labels;
  }

 private:
  std::shared_ptr<engine::Engine> engine_;
  sandbox::EmbeddedSandbox& sandbox_;
  Completeness completeness_;
  std::string alias_;
  std::chrono::nanoseconds wall_max_;
};

}  // namespace

Result<int> repl_command(const ReplOptions& options) {
  SW_TRY(auto language, engine::find_language(options.language));
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(const auto engine, load_engine(*machine, std::move(language)));
  storage::MemoryDisk disk;
  OpenSandbox open;
  if (options.sandbox.empty()) {
    SW_TRY(const storage::ObjectName name, sandbox::EmbeddedSandbox::object_name("repl"));
    open.storage = storage::open_memory_storage(disk);
    SW_TRY(open.object, open.storage->open(name, {}));
    SW_TRY(open.sandbox, sandbox::EmbeddedSandbox::open(*open.object, machine->clocks()));
  } else {
    SW_TRY(open, open_sandbox(*machine, options.data_folder, options.sandbox));
  }
  SandboxTarget target(engine, *open.sandbox, options);
  const auto lines = make_line_reader(history_file(engine->info().language));
  // At a prompt Ctrl-C is a key, while a cell runs it interrupts the cell; between the two it means nothing.
  if (lines->is_terminal()) ::signal(SIGINT, SIG_IGN);
  return run_repl(*lines, target, options.context.empty() ? engine->info().language : options.context);
}

}  // namespace sw::cli
