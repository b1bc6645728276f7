// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "cli/backup_command.h"
#include "cli/conformance_command.h"
#include "cli/engines_command.h"
#include "cli/repl_command.h"
#include "cli/run_command.h"
#include "cli/sandbox_command.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace {

using sw::Error;
using sw::Result;

int report(const Error& error) {
  sw::cli::complain(error.message);
  return sw::info_of(error.code).exit_status;
}

int report(const Result<int>& status) { return status.ok() ? *status : report(status.error()); }

std::string not_empty(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

/// One line for a command line that cannot be parsed; names the command as far as it was
/// understood.
std::string describe_wrong_use(const CLI::App* app, const CLI::Error& problem) {
  std::string command = app->get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    command += ' ' + app->get_name();
  }
  std::string what = problem.what();
  const std::vector<std::string> rest = app->remaining();
  // CLI11 says only that a subcommand is required, also if the one that is there is unknown.
  if (app->get_require_subcommand_min() > 0) {
    what = rest.empty()
               ? "missing command"
               : fmt::format("unknown {} '{}'",
                             rest.front().starts_with('-') ? "option" : "command", rest.front());
  } else if (app->get_name() == "run" &&
             dynamic_cast<const CLI::ExtrasError*>(&problem) != nullptr) {
    what += "; put -- before the program's arguments";
  }
  return fmt::format("sandbox-workers: {} (see {} --help)\n", what, command);
}

/// The options of `run` as text, before they are checked.
struct RunArguments {
  sw::cli::RunCommandOptions options;
  std::string code;
  std::string timeout = "10s";
  std::string cpu;
  std::string memory;
  std::string on_error = "keep";
};

Result<int> run(const CLI::App& command, RunArguments arguments) {
  sw::cli::RunCommandOptions& options = arguments.options;
  if (command.count("-c") != 0) {
    options.code = arguments.code;
    // With -c there is no file: what stands there is the program's first argument.
    if (!options.file.empty()) options.arguments.insert(options.arguments.begin(), options.file);
    options.file.clear();
  } else if (options.file.empty()) {
    return Error{sw::ErrorCode::kInvalidArgument,
                 "nothing to run: pass -c CODE, a file, or - for stdin", 0};
  }
  SW_TRY(options.wall_max, sw::cli::parse_duration(arguments.timeout));
  if (!arguments.cpu.empty()) {
    SW_TRY(options.cpu_max, sw::cli::parse_duration(arguments.cpu));
  }
  if (!arguments.memory.empty()) {
    SW_TRY(options.memory_bytes_max, sw::cli::parse_bytes(arguments.memory));
  }
  const auto on_error = sw::protocol::parse_on_error(arguments.on_error);
  if (!on_error) {
    return Error{sw::ErrorCode::kInvalidArgument,
                 fmt::format("invalid --on-error '{}' (use keep or rollback)", arguments.on_error),
                 0};
  }
  options.on_error = *on_error;
  return sw::cli::run_command(options);
}

void add_run_options(CLI::App& command, RunArguments& arguments) {
  sw::cli::RunCommandOptions& options = arguments.options;
  command.add_option("-l,--language", options.language,
                     "Language (default: from the file's extension or #! line)");
  command.add_option("-c,--code", arguments.code, "Code to run");
  command.add_option("file", options.file,
                     "File to run, - for stdin, or a folder with a main program");
  command.add_option("arguments", options.arguments, "Arguments for the program");
  command
      .add_option("--env", options.env,
                  "NAME=VALUE to set in the program's environment; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--stdin", options.stdin_file,
                     "File to use as the program's stdin; - for this process's own");
  command.add_option("--workspace", options.workspace,
                     "Folder to load as /workspace; changes are written back");
  command
      .add_option("--on-error", arguments.on_error,
                  "What to do with the run's changes after an error: keep, rollback")
      ->capture_default_str();
  command.add_option("--timeout", arguments.timeout, "Time limit: 10s, 500ms, 2m, none")
      ->capture_default_str();
  command.add_option("--cpu", arguments.cpu, "CPU time limit, not counting sleep: 2s, 100ms");
  command.add_option("--memory", arguments.memory, "Memory limit: 512M, 1G");
  command.add_flag("--json", options.json, "Print the result, including output, as JSON");
  command.add_option("--sandbox", options.sandbox,
                     "Run in this named sandbox, whose files and state persist");
  command.add_option("--context", options.context,
                     "Context of the sandbox (default: the one named after the language)");
  command.add_option("--data", options.data_folder, "Data folder for --sandbox")
      ->capture_default_str();
  // An unset variable of the shell must not silently mean "keep nothing".
  for (const char* name : {"--sandbox", "--context", "--workspace"})
    command.get_option(name)->check(not_empty);
}

/// The options of `repl` as text, before they are checked.
struct ReplArguments {
  sw::cli::ReplCommandOptions options;
  std::string timeout = "none";
};

Result<int> repl(ReplArguments arguments) {
  SW_TRY(arguments.options.wall_max, sw::cli::parse_duration(arguments.timeout));
  return sw::cli::repl_command(arguments.options);
}

void add_repl_options(CLI::App& command, ReplArguments& arguments) {
  sw::cli::ReplCommandOptions& options = arguments.options;
  options.data_folder = sw::cli::default_data_folder();
  command.add_option("-l,--language", options.language, "Language")->required();
  command.add_option("--sandbox", options.sandbox,
                     "Store files and state in this sandbox (default: discard them on exit)");
  command.add_option("--context", options.context,
                     "Context to start in (default: the one named after the language)");
  command.add_option("--data", options.data_folder, "Data folder for --sandbox")
      ->capture_default_str();
  // An unset variable of the shell must not silently mean "keep nothing".
  for (const char* name : {"--sandbox", "--context"}) command.get_option(name)->check(not_empty);
  command.add_option("--timeout", arguments.timeout, "Time limit per cell: 10s, 500ms, 2m, none")
      ->capture_default_str();
}

/// `sandboxes`, `delete`, `contexts` and `context …`: what is kept.
struct ContextArguments {
  sw::cli::ContextCommandOptions options;
  bool json = false;
  CLI::App* sandboxes = nullptr;
  CLI::App* remove = nullptr;
  CLI::App* list = nullptr;
  CLI::App* snapshots = nullptr;
  std::vector<std::pair<CLI::App*, sw::cli::ContextAction>> actions;
};

void add_context_commands(CLI::App& app, ContextArguments& arguments) {
  sw::cli::ContextCommandOptions& options = arguments.options;
  options.data_folder = sw::cli::default_data_folder();
  const auto common = [&](CLI::App* command) {
    command->add_option("--data", options.data_folder, "Data folder")->capture_default_str();
    command->add_option("sandbox", options.sandbox, "Name of the sandbox")->required();
  };
  arguments.sandboxes = app.add_subcommand("sandboxes", "List the sandboxes in the data folder");
  arguments.sandboxes->add_option("--data", options.data_folder, "Data folder")
      ->capture_default_str();
  arguments.sandboxes->add_flag("--json", arguments.json, "Print as JSON");
  arguments.remove =
      app.add_subcommand("delete", "Delete a sandbox with all its files and contexts");
  common(arguments.remove);
  arguments.list = app.add_subcommand("contexts", "List the contexts of a sandbox");
  common(arguments.list);
  arguments.list->add_flag("--json", arguments.json, "Print as JSON");
  arguments.snapshots =
      app.add_subcommand("snapshots", "Show the stored memory of a sandbox's contexts");
  common(arguments.snapshots);
  arguments.snapshots->add_flag("--json", arguments.json, "Print as JSON");
  CLI::App* group =
      app.add_subcommand("context", "Manage a context: fork, undo, checkpoint, restore, delete");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, sw::cli::ContextAction action,
                       const char* argument = nullptr, const char* meaning = "") {
    CLI::App* command = group->add_subcommand(name, what);
    common(command);
    command->add_option("context", options.context, "Name of the context")->required();
    if (argument != nullptr) command->add_option(argument, options.argument, meaning)->required();
    arguments.actions.emplace_back(command, action);
    return command;
  };
  add("fork", "Create a context from another context's state", sw::cli::ContextAction::kFork, "new",
      "Name of the new context");
  add("undo", "Undo the last runs' changes to memory", sw::cli::ContextAction::kUndo)
      ->add_option("--runs", options.runs, "Number of runs to undo")
      ->capture_default_str();
  add("checkpoint", "Save the state under a label", sw::cli::ContextAction::kCheckpoint, "label",
      "Label of the checkpoint");
  add("restore", "Restore a checkpoint", sw::cli::ContextAction::kRestore, "label",
      "Label of the checkpoint");
  add("remove-checkpoint", "Delete a checkpoint", sw::cli::ContextAction::kRemoveCheckpoint,
      "label", "Label of the checkpoint");
  add("delete", "Delete a context", sw::cli::ContextAction::kDelete);
}

int run_program(int argc, char** argv) {
  CLI::App app("Run untrusted code in WebAssembly sandboxes", "sandbox-workers");
  app.require_subcommand(1);
  app.set_version_flag("--version", SW_VERSION);
  app.failure_message(describe_wrong_use);

  RunArguments run_arguments;
  run_arguments.options.data_folder = sw::cli::default_data_folder();
  CLI::App* run_app = app.add_subcommand("run", "Run a program in a fresh sandbox");
  add_run_options(*run_app, run_arguments);

  ReplArguments repl_arguments;
  CLI::App* repl_app = app.add_subcommand("repl", "Run code interactively, cell by cell");
  add_repl_options(*repl_app, repl_arguments);

  bool engines_json = false;
  CLI::App* engines_app = app.add_subcommand("engines", "List the languages");
  engines_app->add_flag("--json", engines_json, "Print as JSON");

  std::vector<std::string> bake_languages;
  CLI::App* bake_app =
      app.add_subcommand("bake", "Fetch, compile and boot languages ahead of their first use");
  bake_app->add_option("language", bake_languages, "Languages (default: all)");

  std::vector<std::string> conformance_languages;
  CLI::App* conformance_app =
      app.add_subcommand("conformance", "Check that languages meet the engine contract");
  conformance_app->add_option("language", conformance_languages, "Languages (default: all)");

  std::string backup_from = sw::cli::default_data_folder();
  std::string backup_to;
  CLI::App* backup_app =
      app.add_subcommand("backup", "Copy the data folder, even while it is in use");
  backup_app->add_option("--data", backup_from, "Data folder")->capture_default_str();
  backup_app->add_option("folder", backup_to, "New folder for the copy")->required();

  ContextArguments context_arguments;
  add_context_commands(app, context_arguments);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    std::ostringstream help;
    const int code = app.exit(problem, help, std::cerr);
    std::fputs(help.str().c_str(), stdout);
    return code == 0 ? 0 : sw::cli::kStatusWrongUse;
  }
  if (run_app->parsed()) return report(run(*run_app, std::move(run_arguments)));
  if (repl_app->parsed()) return report(repl(std::move(repl_arguments)));
  if (engines_app->parsed()) return report(sw::cli::engines_command(engines_json));
  if (backup_app->parsed()) return report(sw::cli::backup_command(backup_from, backup_to));
  if (bake_app->parsed()) return report(sw::cli::bake_command(bake_languages));
  if (conformance_app->parsed()) return report(sw::cli::conformance_command(conformance_languages));
  const std::filesystem::path& data_folder = context_arguments.options.data_folder;
  if (context_arguments.sandboxes->parsed()) {
    return report(sw::cli::sandboxes_command(data_folder, context_arguments.json));
  }
  if (context_arguments.remove->parsed()) {
    return report(sw::cli::delete_sandbox_command(data_folder, context_arguments.options.sandbox));
  }
  if (context_arguments.list->parsed()) {
    return report(sw::cli::contexts_command(context_arguments.options, context_arguments.json));
  }
  if (context_arguments.snapshots->parsed()) {
    return report(sw::cli::snapshots_command(context_arguments.options, context_arguments.json));
  }
  for (const auto& [command, action] : context_arguments.actions) {
    if (command->parsed())
      return report(sw::cli::context_command(action, context_arguments.options));
  }
  return sw::cli::kStatusWrongUse;
}

/// The same, with what could not be printed as a failure.
int run_and_print(int argc, char** argv) {
  int status = 0;
  try {
    status = run_program(argc, argv);
  } catch (const std::exception& problem) {
    sw::cli::complain(problem.what());
    return sw::cli::kStatusHostFault;
  }
  const auto printed = sw::flush_stdout();
  // One message is enough.
  return printed.ok() || status == sw::cli::kStatusHostFault ? status : report(printed.error());
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that went away, or a file that must not grow, is an error of the write, not the end of
  // the process.
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  sw::occupy_standard_streams();
  return run_and_print(argc, argv);
}
