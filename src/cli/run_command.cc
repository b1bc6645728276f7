// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/standard_streams.h"
#include "cli/sandbox_command.h"
#include "cli/statuses.h"
#include "cli/terminal.h"
#include "cli/workspace_folder.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/host.h"

namespace sw::cli {

namespace {

namespace fs = std::filesystem;

/// A program to run: its text, and how it is called in tracebacks.
struct Program {
  std::string code;
  std::string name;
};

/// What is to be run, and with which files.
struct Job {
  Run run;
  std::string workspace_folder;
};

/// `main` is the program's name if `file` is a folder.
Result<Program> read_program(const Caller& caller, const RunCommandOptions& options,
                             const fs::path& file, const std::string& main) {
  if (options.code) return Program{*options.code, ""};
  if (!main.empty()) {
    SW_TRY(std::string code, WorkspaceFolder::read_text(caller.reach(file), main, kCodeBytesMax));
    return Program{std::move(code), ""};
  }
  if (file == "-") {
    SW_TRY(const std::string_view code, caller.streams.read_input(kCodeBytesMax));
    return Program{std::string(code), "<stdin>"};
  }
  SW_TRY(std::string code, caller.read_text_file(file.native(), kCodeBytesMax));
  return Program{std::move(code), file.native()};
}

Result<std::vector<std::pair<std::string, std::string>>> parse_env(
    const std::vector<std::string>& items) {
  std::vector<std::pair<std::string, std::string>> env;
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("invalid --env '{}' (use NAME=VALUE)", item), 0};
    }
    env.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return env;
}

/// What the program reads; null: nothing.
Result<std::shared_ptr<wasi::InputSource>> open_input(const Caller& caller,
                                                      const RunCommandOptions& options) {
  std::shared_ptr<wasi::InputSource> input;
  if (options.stdin_file.empty()) return input;
  if (options.stdin_file == "-" && options.file == "-") {
    return Error{ErrorCode::kInvalidArgument,
                 "the code and the program's input cannot both come from stdin", 0};
  }
  if (options.stdin_file == "-") {
    SW_TRY(const std::string_view text, caller.streams.read_input(kInputBytesMax));
    if (!text.empty()) input = std::make_shared<wasi::BytesInput>(wasi::BytesInput::lent(text));
    return input;
  }
  SW_TRY(std::string text, caller.read_text_file(options.stdin_file, kInputBytesMax));
  if (!text.empty()) input = text_input(std::move(text));
  return input;
}

int status_of(const Outcome& outcome) {
  switch (outcome.ending) {
    case Ending::kCompleted: return 0;
    case Ending::kExited: return outcome.exit_code.value_or(0);
    case Ending::kTimeLimit: return kStatusTimeLimit;
    case Ending::kMemoryLimit: return kStatusMemoryLimit;
    case Ending::kCancelled: return kStatusCancelled;
    case Ending::kGuestError:
    case Ending::kResultLimit:
    case Ending::kCrashed: return kStatusGuestError;
  }
  return kStatusHostFault;
}

/// A limit as --memory takes it.
std::string show_memory(std::uint64_t bytes) {
  return bytes >> 20 != 0 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} bytes", bytes);
}

/// What could not be printed is a failure. Only when the reader is gone, which the program may know
/// about and take for the reason to fail, its own status stands.
Result<int> status_of(const Outcome& outcome, const TerminalSink& terminal) {
  const int status = status_of(outcome);
  const auto failed = terminal.stdout_failure();
  if (terminal.gave_up()) return cannot_print(failed.value_or(EPIPE));
  if (failed && (status == 0 || *failed != EPIPE)) return cannot_print(*failed);
  return status;
}

/// Whether what a run wrote stays: as in a context, whose memory and files move together.
bool keeps_files(const Outcome& outcome, AfterError on_error) {
  return !outcome.cut_off && (on_error == AfterError::kKeep || status_of(outcome) == 0);
}

/// A run that leaves nothing but what it wrote into its workspace folder; `files` tells what became
/// of that.
Result<Outcome> run_fresh(const Caller& caller, const Host& host, Job& job, AfterError on_error,
                          RunEvents& events, std::optional<WriteBackReport>& files) {
  SW_TRY(auto folder, load_workspace(caller.streams, job.workspace_folder));
  if (folder) job.run.files = folder->files();
  auto outcome = host.run(job.run, events);
  if (outcome.ok() && folder && keeps_files(*outcome, on_error))
    files = write_back(*folder, *outcome);
  return outcome;
}

/// What a run may use unless it is said: what its language may.
Result<void> set_limits(const Host& host, const RunCommandOptions& options, Run& run) {
  if (run.language.empty()) {
    // It is the context's, which is there already.
    SW_TRY(const ContextInfo context,
           host.sandbox(options.sandbox).context(options.context).info());
    run.language = context.language;
  }
  SW_TRY(const LanguageInfo language, host.language(run.language));
  run.limits.wall_max = options.wall_max;
  run.limits.cpu_max = options.cpu_max;
  run.limits.memory_bytes_max = options.memory_bytes_max.value_or(language.memory_bytes_max);
  if (options.json) return {};
  // What is printed is passed on at once and need not be kept, nor is a value ever too long for a
  // terminal.
  run.limits.output_bytes_max = 0;
  run.limits.result_bytes_max = run.limits.memory_bytes_max;
  return {};
}

Error no_second_workspace() {
  return {.code = ErrorCode::kInvalidArgument,
          .message =
              "a sandbox has its own /workspace: --sandbox cannot be combined with "
              "--workspace or FOLDER"};
}

/// What is wrong whatever there is on the host.
Result<void> check(const RunCommandOptions& options) {
  if (options.sandbox.empty() && !options.context.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--context needs --sandbox", 0};
  }
  if (!options.sandbox.empty() && !options.workspace.empty()) return no_second_workspace();
  if (!options.language.empty()) SW_CHECK_OK(find_language(options.language));
  return options.sandbox.empty() ? Result<void>() : check_sandbox_id(options.sandbox);
}

/// "ts" of "a/b.ts".
std::string ending_of(const std::string& name) {
  const std::string ending = fs::path(name).extension();
  return ending.empty() ? ending : ending.substr(1);
}

/// What the program calls itself: where it lies in its workspace, or else its name here.
std::string name_for_program(const fs::path& file, const std::string& workspace_folder) {
  // Only fresh runs have one, and those are always this process's own.
  if (workspace_folder.empty()) return file.native();
  std::error_code failed;
  const fs::path inside = fs::proximate(file, workspace_folder, failed);
  if (failed || inside.is_absolute() || *inside.begin() == "..") return file.native();
  return "/workspace" / inside;
}

/// By which of its names the caller calls the language; empty: the context, which is there, has
/// one.
Result<std::string> language_of(const RunCommandOptions& options, const Program& program) {
  if (!options.language.empty()) return options.language;
  const auto guessed = guess_language(program.name, program.code);
  if (!guessed.ok() && !options.context.empty()) return std::string();
  if (!guessed.ok()) return guessed.error();
  // "ts" says more than "javascript".
  const std::string ending = ending_of(program.name);
  return find_language(ending).ok() ? ending : guessed->id;
}

Result<Job> prepare(const Caller& caller, const RunCommandOptions& options) {
  Job job;
  fs::path file = options.file;
  std::string main;
  job.workspace_folder = options.workspace;
  std::error_code ignored;
  if (!options.code && fs::is_directory(caller.reach(file), ignored)) {
    if (!options.sandbox.empty()) return no_second_workspace();
    // A folder is a program with its files, as for `python3 FOLDER`.
    if (job.workspace_folder.empty()) job.workspace_folder = file.native();
    SW_TRY(main, main_name(caller.reach(file)));
  }
  SW_TRY(Program program, read_program(caller, options, file, main));
  if (!main.empty()) file /= main;
  if (!options.code && file != "-") program.name = name_for_program(file, job.workspace_folder);
  SW_TRY(const std::string language, language_of(options, program));
  Run& run = job.run;
  run.code = std::move(program.code);
  run.language = language;
  run.context = options.context;
  run.file_name = program.name;
  run.args = {program.name.empty() ? "-c" : program.name};
  run.args.insert(run.args.end(), options.arguments.begin(), options.arguments.end());
  run.on_error = options.on_error;
  run.durability = options.durability;
  SW_TRY(run.env, parse_env(options.env));
  SW_TRY(run.input, open_input(caller, options));
  SW_CHECK_OK(validate(run));
  return job;
}

/// Prints what came of the run; the exit status.
Result<int> report(const Caller& caller, const Host& host, const RunCommandOptions& options,
                   const Job& job, const Outcome& outcome,
                   const std::optional<WriteBackReport>& files, TerminalSink& terminal) {
  if (options.json) {
    SW_TRY(const LanguageInfo language, host.language(job.run.language));
    write_text(terminal, wasi::Stream::kStdout,
               outcome_json(language, job.run, outcome, files) + '\n');
  } else {
    if (outcome.context && is_worth_telling(outcome.context->note))
      caller.streams.complain(outcome.context->note);
    // It was stopped because nothing could be printed, not by the user.
    if (!terminal.gave_up()) show(outcome, terminal);
    // A language's own out-of-memory error does not say that the limit is ours, nor how much it is.
    if (outcome.ending == Ending::kMemoryLimit && outcome.error &&
        outcome.error->name != kExecutionLimitError) {
      caller.streams.complain(fmt::format("memory limit of {} reached (--memory)",
                                          show_memory(job.run.limits.memory_bytes_max)));
    }
  }
  if (files) show(caller.streams, *files, job.workspace_folder);
  if (files && !files->error.empty()) return kStatusHostFault;
  return status_of(outcome, terminal);
}

}  // namespace

Result<int> run_command(const Caller& caller, DataFolder& folder,
                        const RunCommandOptions& options) {
  SW_CHECK_OK(check(options));
  const bool is_kept = !options.sandbox.empty();
  SW_TRY(const Host host, is_kept ? folder.open() : open_host(caller.streams));
  SW_TRY(Job job, prepare(caller, options));
  SW_CHECK_OK(set_limits(host, options, job.run));
  SW_CHECK_OK(host.load(job.run.language, show_progress(caller.streams)));

  // Until the files are written back. After that an interruption ends the command, which may be
  // waiting for its reader.
  auto interrupt = caller.interrupts.take();
  job.run.cancel = interrupt->token();
  TerminalSink terminal(caller.streams, [&] {
    if (interrupt) interrupt->request_stop();
  });
  RunOutput printed;
  RunEvents& events = options.json ? static_cast<RunEvents&>(printed) : terminal;
  std::optional<WriteBackReport> files;
  Result<Outcome> outcome = is_kept ? host.sandbox(options.sandbox).run(job.run, events)
                                    : run_fresh(caller, host, job, options.on_error, events, files);
  if (!outcome.ok() && interrupt->token().stop_requested()) {
    return kStatusCancelled;  // before the run began
  }
  if (!outcome.ok()) return std::move(outcome).error();
  interrupt.reset();
  outcome->out = std::move(printed.out);
  outcome->err = std::move(printed.err);
  return report(caller, host, options, job, *outcome, files, terminal);
}

}  // namespace sw::cli
