// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/repl_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/standard_streams.h"
#include "cli/repl.h"
#include "cli/sandbox_command.h"
#include "cli/terminal.h"
#include "sandbox_workers/host.h"

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
  SandboxTarget(Host host, Sandbox sandbox, LanguageInfo language,
                const ReplCommandOptions& options)
      : host_(std::move(host)),
        sandbox_(std::move(sandbox)),
        language_(std::move(language)),
        options_(options) {}

  const std::string& language() const override { return language_.id; }
  bool is_complete(std::string_view code) override { return host_.is_complete(language_.id, code); }

  Result<void> open_context(const std::string& context) override {
    const auto known = sandbox_.context(context).info();
    if (known.ok() && known->language != language_.id) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("context '{}' is a {} context, not {}", context, known->language,
                               language_.id),
                   0};
    }
    if (known.ok()) return {};
    if (known.error().code != ErrorCode::kContextNotFound) return known.error();
    SW_CHECK_OK(sandbox_.create_context({.language = language_.id, .id = context}));
    return {};
  }

  Result<CellResult> run(const std::string& context, const std::string& code, std::stop_token stop,
                         RunEvents& events) override {
    Run run{.language = options_.language, .code = code, .context = context};
    run.limits.wall_max = options_.wall_max;
    run.limits.memory_bytes_max = language_.memory_bytes_max;
    run.limits.output_bytes_max = 0;
    run.limits.result_bytes_max = run.limits.memory_bytes_max;
    run.cancel = std::move(stop);
    SW_TRY(Outcome outcome, sandbox_.run(std::move(run), events));
    // Where nothing is kept, a run that leaves has nothing to lose.
    const bool leaves = options_.sandbox.empty() && outcome.ending == Ending::kExited;
    std::string note = outcome.context->note;
    if (leaves || !is_worth_telling(note)) note.clear();
    return CellResult{.outcome = std::move(outcome), .note = std::move(note)};
  }

  Result<std::vector<File>> files() override {
    SW_TRY(const auto entries, sandbox_.files().list(kFolder, Depth::kAll));
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
    SW_TRY(const auto known, sandbox_.contexts());
    std::vector<Context> contexts;
    for (const ContextInfo& context : known) {
      contexts.push_back({.id = context.id,
                          .language = context.language,
                          .executions = context.executions,
                          .memory = std::string(memory_state(context))});
    }
    return contexts;
  }

  Result<VersionFiles> fork(const std::string& context, const std::string& new_context,
                            const VersionOptions& options) override {
    SW_TRY(Fork made, sandbox_.context(context).fork(new_context, {}, options));
    return std::move(made.files);
  }
  Result<VersionFiles> undo(const std::string& context, std::uint32_t runs,
                            const VersionOptions& options) override {
    return sandbox_.context(context).undo(runs, options);
  }
  Result<void> add_checkpoint(const std::string& context, const std::string& label) override {
    return sandbox_.context(context).checkpoint(label);
  }
  Result<VersionFiles> restore(const std::string& context, const std::string& version,
                               const VersionOptions& options) override {
    return sandbox_.context(context).restore(version_of(version), options);
  }
  Result<std::vector<std::string>> checkpoints(const std::string& context) override {
    SW_TRY(const auto found, sandbox_.context(context).checkpoints());
    std::vector<std::string> labels;
    for (const Checkpoint& checkpoint : found) labels.push_back(checkpoint.name);
    return labels;
  }

 private:
  static constexpr std::string_view kFolder = "/workspace";

  const Host host_;
  const Sandbox sandbox_;
  const LanguageInfo language_;
  const ReplCommandOptions options_;
};

}  // namespace

Result<int> repl_command(const Caller& caller, DataFolder& folder,
                         const ReplCommandOptions& options) {
  SW_TRY(const LanguageInfo language, find_language(options.language));
  const bool is_kept = !options.sandbox.empty();
  if (is_kept) SW_CHECK_OK(check_sandbox_id(options.sandbox));
  SW_TRY(const Host host, is_kept ? folder.open() : open_host(caller.streams));
  SW_CHECK_OK(host.load(language.id, show_progress(caller.streams)));
  const Sandbox sandbox = host.sandbox(is_kept ? options.sandbox : "repl");
  SandboxTarget target(host, sandbox, language, options);
  const auto lines = make_line_reader(history_file(language.id));
  // At a prompt Ctrl-C is a key, while a cell runs it interrupts the cell; between the two it means
  // nothing.
  if (lines->is_terminal()) ::signal(SIGINT, SIG_IGN);
  const int status =
      run_repl(caller, *lines, target, options.context.empty() ? language.id : options.context);
  if (!is_kept) {
    // The program ends here, with its exit handlers.
    TerminalSink terminal(caller.streams);
    SW_CHECK_OK(sandbox.destroy(terminal));
    const auto failed = terminal.stdout_failure();
    if (failed && status == 0) return cannot_print(*failed);
  }
  return status;
}

}  // namespace sw::cli
