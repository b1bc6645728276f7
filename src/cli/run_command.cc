// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/standard_streams.h"
#include "cli/interrupt.h"
#include "cli/load_engine.h"
#include "cli/sandbox_command.h"
#include "cli/terminal.h"
#include "cli/workspace_folder.h"
#include "engine/result_json.h"
#include "sandbox/names.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/protocol/answers.h"
#include "sandbox_workers/wasm/guest_thread.h"

namespace sw::cli {

namespace {

namespace fs = std::filesystem;

// The program's input is kept in memory.
constexpr std::size_t kStdinBytesMax = std::size_t{1} << 30;

/// A program to run: its text, and how it is called in tracebacks.
struct Program {
  std::string code;
  std::string name;
};

/// What is to be run, and with which engine.
struct Job {
  Run request;
  std::unique_ptr<engine::Language> language;
  std::string workspace_folder;
};

/// `main` is the program's name if `file` is a folder.
Result<Program> read_program(const RunOptions& options, const fs::path& file,
                             const std::string& main) {
  if (options.code) return Program{*options.code, ""};
  if (!main.empty()) {
    SW_TRY(std::string code, read_main(file, main));
    return Program{std::move(code), ""};
  }
  if (file == "-") {
    SW_TRY(std::string code, read_stdin(kCodeBytesMax));
    return Program{std::move(code), "<stdin>"};
  }
  SW_TRY(std::string code, read_text_file(file, kCodeBytesMax));
  return Program{std::move(code), file.native()};
}

Result<std::vector<std::pair<std::string, std::string>>> parse_env(
    const std::vector<std::string>& items) {
  std::vector<std::pair<std::string, std::string>> env;
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("--env {}: write NAME=value", item), 0};
    }
    env.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return env;
}

Result<std::string> read_stdin_option(const RunOptions& options) {
  if (options.stdin_file.empty()) return std::string();
  if (options.stdin_file == "-" && options.file == "-") {
    return Error{ErrorCode::kInvalidArgument,
                 "the code and the program's input cannot both come from stdin", 0};
  }
  if (options.stdin_file == "-") return read_stdin(kStdinBytesMax);
  return read_text_file(options.stdin_file, kStdinBytesMax);
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
Result<Outcome> run_fresh(engine::Machine& machine, const std::shared_ptr<engine::Engine>& engine,
                          Job& job, AfterError on_error, RunEvents& sink,
                          std::optional<engine::WriteBackReport>& files) {
  Run& request = job.request;
  SW_TRY(auto workspace, load_workspace(job.workspace_folder, machine.clocks()));
  if (workspace) request.workspace = std::make_shared<Workspace>(workspace->tree());
  Result<Outcome> outcome = Error{ErrorCode::kInternal, "the run did not begin", 0};
  SW_CHECK_OK(engine->on_guest_thread([&] { outcome = engine->run(request, sink); }));
  if (outcome.ok() && workspace && keeps_files(*outcome, on_error)) files = write_back(*workspace);
  return outcome;
}

/// A run in a context that goes on from the runs before it.
Result<sandbox::Ran> run_in_sandbox(const std::shared_ptr<engine::Engine>& engine, Run& request,
                                    const RunOptions& options, RunEvents& sink) {
  const std::string& language = engine->info().language;
  SW_TRY(const auto local, LocalSandbox::open(options.data_folder, options.sandbox));
  SW_CHECK_OK(local->add_engine(engine));
  SW_TRY(const sandbox::ContextRecord context,
         local->context(options.context.empty() ? language : options.context, language));
  sandbox::Cell cell;
  cell.code = request.code;
  cell.alias = request.language;
  cell.file_name = request.file_name;
  cell.context_id = context.id;
  for (const auto& [name, value] : request.env) cell.env.insert_or_assign(name, value);
  cell.stdin_data = request.stdin_data;
  cell.args = request.args;
  cell.limits = request.limits;
  cell.on_error = options.on_error;
  cell.cancel = request.cancel;
  return local->run(cell, sink);
}

Result<void> check_sandbox_options(const RunOptions& options, const std::string& workspace_folder) {
  if (options.sandbox.empty() && !options.context.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--context needs --sandbox", 0};
  }
  if (options.sandbox.empty()) return {};
  if (!workspace_folder.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "a sandbox has a /workspace of its own: --sandbox cannot be combined with "
                 "--workspace or FOLDER",
                 0};
  }
  return sandbox::check_sandbox_id(options.sandbox);
}

/// "ts" of "a/b.ts".
std::string ending_of(const std::string& name) {
  const std::string ending = fs::path(name).extension();
  return ending.empty() ? ending : ending.substr(1);
}

/// What the program calls itself: where it lies in its workspace, or else its name here.
std::string name_for_program(const fs::path& file, const std::string& workspace_folder) {
  if (workspace_folder.empty()) return file.native();
  std::error_code failed;
  const fs::path inside = fs::proximate(file, workspace_folder, failed);
  if (failed || inside.is_absolute() || *inside.begin() == "..") return file.native();
  return "/workspace" / inside;
}

Result<Job> prepare(const RunOptions& options) {
  Job job;
  fs::path file = options.file;
  std::string main;
  job.workspace_folder = options.workspace;
  std::error_code ignored;
  if (!options.code && fs::is_directory(file, ignored)) {
    // A folder is a program with its files, as for `python3 FOLDER`.
    if (job.workspace_folder.empty()) job.workspace_folder = file.native();
    SW_TRY(main, main_name(file));
  }
  SW_CHECK_OK(check_sandbox_options(options, job.workspace_folder));
  SW_TRY(Program program, read_program(options, file, main));
  if (!main.empty()) file /= main;
  if (!options.code && file != "-") program.name = name_for_program(file, job.workspace_folder);
  SW_TRY(job.language, options.language.empty() ? engine::guess_language(program.name, program.code)
                                                : engine::find_language(options.language));
  Run& request = job.request;
  request.code = std::move(program.code);
  request.language = options.language.empty() ? ending_of(program.name) : options.language;
  request.file_name = program.name;
  request.args = {program.name.empty() ? "-c" : program.name};
  request.args.insert(request.args.end(), options.arguments.begin(), options.arguments.end());
  SW_TRY(request.env, parse_env(options.env));
  SW_TRY(request.stdin_data, read_stdin_option(options));
  request.limits.wall_max = options.wall_max;
  request.limits.cpu_max = options.cpu_max;
  request.limits.memory_bytes_max =
      options.memory_bytes_max.value_or(job.language->manifest().memory_bytes_max);
  if (!options.json) {
    // What is printed is passed on at once and need not be kept, nor is a value ever too long for a terminal.
    request.limits.output_bytes_max = 0;
    request.limits.result_bytes_max = request.limits.memory_bytes_max;
  }
  SW_CHECK_OK(validate(request));
  return job;
}

}  // namespace

Result<int> run_command(const RunOptions& options) {
  SW_TRY(Job job, prepare(options));
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(const auto engine, load_engine(*machine, std::move(job.language)));

  // Until the files are written back. After that a signal ends the process, which may be waiting for its reader.
  std::optional<InterruptScope> interrupt(std::in_place);
  job.request.cancel = interrupt->token();
  TerminalSink terminal([&] {
    if (interrupt) interrupt->request_stop();
  });
  RunOutput buffer;
  RunEvents& sink = options.json ? static_cast<RunEvents&>(buffer) : terminal;
  Outcome outcome;
  std::optional<engine::ContextReport> report;
  std::optional<engine::WriteBackReport> files;
  if (options.sandbox.empty()) {
    SW_TRY(outcome, run_fresh(*machine, engine, job, options.on_error, sink, files));
  } else {
    auto answer = run_in_sandbox(engine, job.request, options, sink);
    if (!answer.ok() && interrupt->token().stop_requested())
      return kStatusCancelled;  // before the run began
    if (!answer.ok()) return std::move(answer).error();
    sandbox::Ran& ran = *answer;
    outcome = std::move(ran.response.outcome);
    report = engine::ContextReport{.id = ran.context->id,
                                   .cwd = ran.context->cwd,
                                   .executions = ran.context->executions,
                                   .state = std::string(protocol::state_name(ran.response.state)),
                                   .note = ran.response.note};
    if (ran.response.snapshot_ms) {
      report->saved_bytes = ran.response.snapshot_bytes_written;
      report->snapshot_ms = ran.response.snapshot_ms;
    }
  }
  interrupt.reset();
  if (options.json) {
    const std::string text = engine::execution_result_json(engine->info(), job.request, outcome,
                                                           buffer.out, buffer.err, report, files);
    write_text(terminal, wasi::Stream::kStdout, text + '\n');
  } else {
    if (report && is_worth_telling(report->note)) complain(report->note);
    // It was stopped because nothing could be printed, not by the user.
    if (!terminal.gave_up()) show(outcome, terminal);
    // A language's own out-of-memory error does not say that the limit is ours, nor how much it is.
    if (outcome.ending == Ending::kMemoryLimit && outcome.error &&
        outcome.error->name != kExecutionLimitError) {
      complain(fmt::format("memory limit of {} reached (--memory)",
                           show_memory(job.request.limits.memory_bytes_max)));
    }
  }
  if (files) show(*files, job.workspace_folder);
  if (files && !files->error.empty()) return kStatusHostFault;
  return status_of(outcome, terminal);
}

}  // namespace sw::cli
