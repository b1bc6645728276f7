// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/repl_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "cli/completeness.h"
#include "cli/load_engine.h"
#include "cli/repl.h"
#include "cli/sandbox_command.h"
#include "sandbox_workers/engine/all_languages.h"

namespace sw::cli {

namespace {

namespace fs = std::filesystem;

/// $XDG_STATE_HOME/sandbox-workers/history-LANGUAGE; empty when there is no home.
fs::path history_file(const std::string& language) {
  fs::path state;
  if (const char* folder = std::getenv("XDG_STATE_HOME"); folder != nullptr && *folder == '/')
    state = folder;
  else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    state = fs::path(home) / ".local" / "state";
  else return {};
  return state / "sandbox-workers" / fmt::format("history-{}", language);
}

class SandboxTarget final : public ReplTarget {
 public:
  SandboxTarget(std::shared_ptr<engine::Engine> engine, LocalSandbox& local,
                const ReplOptions& options)
      : engine_(std::move(engine)),
        local_(local),
        completeness_(engine_),
        alias_(options.language),
        wall_max_(options.wall_max),
        is_kept_(!options.sandbox.empty()) {}

  const std::string& language() const override { return engine_->info().language; }
  bool is_complete(std::string_view code) override { return completeness_.is_complete(code); }

  Result<void> open_context(const std::string& context) override {
    SW_TRY(const auto opened, local_.context(context, language()));
    return {};
  }
  Result<Ran> run(const std::string& context, const std::string& code, std::stop_token stop,
                  RunEvents& output) override {
    SW_TRY(const sandbox::ContextRecord known, local_.context(context, language()));
    sandbox::Cell cell;
    cell.code = code;
    cell.alias = alias_;
    cell.context_id = known.id;
    cell.limits.wall_max = wall_max_;
    cell.limits.memory_bytes_max = engine_->info().limits.memory_bytes;
    cell.limits.output_bytes_max = 0;
    cell.limits.result_bytes_max = cell.limits.memory_bytes_max;
    cell.cancel = std::move(stop);
    SW_TRY(sandbox::Ran ran, local_.run(cell, output));
    // Where nothing is kept, a run that leaves has nothing to lose.
    const bool leaves = !is_kept_ && ran.response.outcome.ending == Ending::kExited;
    const bool tell = is_worth_telling(ran.response.note) && !leaves;
    return Ran{.outcome = std::move(ran.response.outcome), .note = tell ? ran.response.note : ""};
  }

  Result<std::vector<File>> files() override {
    using Entries = std::vector<WorkspaceEntry>;
    constexpr std::string_view kFolder = "/workspace";
    SW_TRY(const Entries entries,
           sandbox().with_files(sandbox::FileUse::kLook, "directory.list", kFolder,
                                [&](Workspace& workspace, std::uint64_t) {
                                  return workspace.list(kFolder, Depth::kAll);
                                }));
    std::vector<File> files;
    for (const WorkspaceEntry& entry : entries) {
      files.push_back({.path = entry.path.substr(kFolder.size() + 1),
                       .bytes = entry.size,
                       .is_folder = entry.type == wasi::FileType::kDirectory});
    }
    std::ranges::sort(files, {}, &File::path);
    return files;
  }

  Result<std::vector<Context>> contexts() override {
    SW_TRY(const auto records, sandbox().contexts());
    std::vector<Context> contexts;
    for (const sandbox::ContextRecord& record : records) {
      contexts.push_back({.id = record.id,
                          .language = record.language,
                          .executions = record.executions,
                          .memory = std::string(memory_state(record))});
    }
    return contexts;
  }

  Result<void> fork(const std::string& context, const std::string& new_context) override {
    SW_TRY(const auto made, sandbox().fork(context, new_context));
    return {};
  }
  Result<void> undo(const std::string& context, std::uint32_t runs) override {
    return sandbox().undo(context, runs);
  }
  Result<void> add_checkpoint(const std::string& context, const std::string& label) override {
    return sandbox().add_checkpoint(context, label);
  }
  Result<void> restore_checkpoint(const std::string& context, const std::string& label) override {
    return sandbox().restore_checkpoint(context, label);
  }
  Result<std::vector<std::string>> checkpoints(const std::string& context) override {
    SW_TRY(const auto found, sandbox().checkpoints(context));
    std::vector<std::string> labels;
    for (const protocol::Checkpoint& checkpoint : found) labels.push_back(checkpoint.name);
    return labels;
  }

 private:
  sandbox::Sandbox& sandbox() { return local_.sandbox(); }

  std::shared_ptr<engine::Engine> engine_;
  LocalSandbox& local_;
  Completeness completeness_;
  std::string alias_;
  std::chrono::nanoseconds wall_max_;
  bool is_kept_;
};

}  // namespace

Result<int> repl_command(const ReplOptions& options) {
  SW_TRY(auto language, engine::find_language(options.language));
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(const auto engine, load_engine(*machine, std::move(language)));
  std::unique_ptr<LocalSandbox> local;
  if (options.sandbox.empty()) {
    SW_TRY(local, LocalSandbox::in_memory("repl"));
  } else {
    SW_TRY(local, LocalSandbox::open(options.data_folder, options.sandbox));
  }
  SW_CHECK_OK(local->add_engine(engine));
  SandboxTarget target(engine, *local, options);
  const auto lines = make_line_reader(history_file(engine->info().language));
  // At a prompt Ctrl-C is a key, while a cell runs it interrupts the cell; between the two it means
  // nothing.
  if (lines->is_terminal()) ::signal(SIGINT, SIG_IGN);
  return run_repl(*lines, target,
                  options.context.empty() ? engine->info().language : options.context);
}

}  // namespace sw::cli
