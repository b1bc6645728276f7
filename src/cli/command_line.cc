// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "cli/ask_owner.h"
#include "cli/backup_command.h"
#include "cli/conformance_command.h"
#include "cli/engines_command.h"
#include "cli/options.h"
#include "cli/process_data_folder.h"
#include "cli/repl_command.h"
#include "cli/run_command.h"
#include "cli/statuses.h"
#include "cli/units.h"

namespace sw::cli {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

// For an owner that ends just when it is asked, again and again.
constexpr auto kAskPatience = 30s;
constexpr auto kPause = 20ms;

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

// --- run, repl

/// The options of `run` as text, before they are checked.
struct RunArguments {
  RunCommandOptions options;
  std::string code;
  std::string timeout = "10s";
  std::string cpu;
  std::string memory;
  std::string on_error = "keep";
  std::string durability;
};

Result<RunCommandOptions> checked(const CLI::App& command, const RunArguments& arguments) {
  RunCommandOptions options = arguments.options;
  if (command.count("-c") != 0) {
    options.code = arguments.code;
    // With -c there is no file: what stands there is the program's first argument.
    if (!options.file.empty()) options.arguments.insert(options.arguments.begin(), options.file);
    options.file.clear();
  } else if (options.file.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "nothing to run: pass -c CODE, a file, or - for stdin", 0};
  }
  SW_TRY(options.wall_max, parse_duration(arguments.timeout));
  if (!arguments.cpu.empty()) {
    SW_TRY(options.cpu_max, parse_duration(arguments.cpu));
  }
  if (!arguments.memory.empty()) {
    SW_TRY(options.memory_bytes_max, parse_bytes(arguments.memory));
  }
  const auto on_error = protocol::parse_on_error(arguments.on_error);
  if (!on_error) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("invalid --on-error '{}' (use keep or rollback)", arguments.on_error),
                 0};
  }
  options.on_error = *on_error;
  if (arguments.durability.empty()) return options;
  options.durability = protocol::parse_durability(arguments.durability);
  if (options.durability) return options;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("invalid --durability '{}' (use commit or relaxed)", arguments.durability), 0};
}

/// What is run, and with what.
void add_program_options(CLI::App& command, RunArguments& arguments) {
  RunCommandOptions& options = arguments.options;
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
  command
      .add_option("--workspace", options.workspace,
                  "Folder to load as /workspace; changes are written back")
      ->check(not_empty);
}

void add_limit_options(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("--on-error", arguments.on_error,
                  "What to do with the run's changes after an error: keep, rollback")
      ->capture_default_str();
  command.add_option("--timeout", arguments.timeout, "Time limit: 10s, 500ms, 2m, none")
      ->capture_default_str();
  command.add_option("--cpu", arguments.cpu, "CPU time limit, not counting sleep: 2s, 100ms");
  command.add_option("--memory", arguments.memory, "Memory limit: 512M, 1G");
}

void add_run(CLI::App& app, Chosen& chosen) {
  // Shared by the parser's functions.
  const auto arguments = std::make_shared<RunArguments>();
  const auto folder = std::make_shared<fs::path>(chosen.folder);
  CLI::App* const command = app.add_subcommand("run", "Run a program in a fresh sandbox");
  add_program_options(*command, *arguments);
  add_limit_options(*command, *arguments);
  RunCommandOptions& options = arguments->options;
  command->add_flag("--json", options.json, "Print the result, including output, as JSON");
  // An unset variable of the shell must not silently mean "keep nothing".
  command
      ->add_option("--sandbox", options.sandbox,
                   "Run in this named sandbox, whose files and state persist")
      ->check(not_empty);
  command
      ->add_option("--context", options.context,
                   "Context of the sandbox (default: the one named after the language)")
      ->check(not_empty);
  command->add_option("--durability", arguments->durability,
                      "When the run counts as stored in the sandbox: commit (on disk), or relaxed "
                      "(at once; a crash may lose the last 100 ms)");
  add_data_option(*command, *folder);
  command->callback([=, &chosen] {
    const RunCommandOptions& known = arguments->options;
    if (!known.sandbox.empty()) chosen.command.data_folder = *folder;
    chosen.command.reads_input = known.file == "-" || known.stdin_file == "-";
    chosen.command.perform = [options = checked(*command, *arguments)](
                                 const Caller& caller, DataFolder& data) -> Result<int> {
      if (!options.ok()) return options.error();
      return run_command(caller, data, *options);
    };
  });
}

/// The options of `repl` as text, before they are checked.
struct ReplArguments {
  ReplCommandOptions options;
  std::string timeout = "none";
  fs::path folder;
};

void add_repl(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<ReplArguments>();  // shared by the parser's functions
  arguments->folder = chosen.folder;
  ReplCommandOptions& options = arguments->options;
  CLI::App* const command = app.add_subcommand("repl", "Run code interactively, cell by cell");
  command->add_option("-l,--language", options.language, "Language")->required();
  // An unset variable of the shell must not silently mean "keep nothing".
  command
      ->add_option("--sandbox", options.sandbox,
                   "Store files and state in this sandbox (default: discard them on exit)")
      ->check(not_empty);
  command
      ->add_option("--context", options.context,
                   "Context to start in (default: the one named after the language)")
      ->check(not_empty);
  add_data_option(*command, arguments->folder);
  command->add_option("--timeout", arguments->timeout, "Time limit per cell: 10s, 500ms, 2m, none")
      ->capture_default_str();
  command->callback([=, &chosen] {
    chosen.command.can_be_asked = false;
    if (!arguments->options.sandbox.empty()) chosen.command.data_folder = arguments->folder;
    chosen.command.perform = [=](const Caller& caller, DataFolder& data) -> Result<int> {
      ReplCommandOptions known = arguments->options;
      SW_TRY(known.wall_max, parse_duration(arguments->timeout));
      return repl_command(caller, data, known);
    };
  });
}

// --- the rest

void add_engines(CLI::App& app, Chosen& chosen) {
  const auto json = std::make_shared<bool>(false);  // shared by the parser's functions
  CLI::App* const command = app.add_subcommand("engines", "List the languages");
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([=, &chosen] {
    chosen.command.perform = [=](const Caller& caller, DataFolder&) {
      return engines_command(caller, *json);
    };
  });
}

/// A command for some languages, or all.
template <class Perform>
void add_for_languages(CLI::App& app, Chosen& chosen, const char* name, const char* what,
                       Perform perform) {
  // Shared by the parser's functions.
  const auto languages = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = app.add_subcommand(name, what);
  command->add_option("language", *languages, "Languages (default: all)");
  command->callback([=, &chosen] {
    chosen.command.perform = [=](const Caller& caller, DataFolder&) {
      return perform(caller, *languages);
    };
  });
}

void add_backup(CLI::App& app, Chosen& chosen) {
  const auto folder =
      std::make_shared<fs::path>(chosen.folder);  // shared by the parser's functions
  const auto target = std::make_shared<std::string>();
  CLI::App* const command =
      app.add_subcommand("backup", "Copy the data folder, even while it is in use");
  add_data_option(*command, *folder);
  command->add_option("folder", *target, "New folder for the copy")->required();
  command->callback([=, &chosen] {
    chosen.command.data_folder = *folder;
    chosen.command.perform = [=](const Caller& caller, DataFolder& data) {
      return backup_command(caller, data, *target);
    };
  });
}

void add_storage(CLI::App& app, Chosen& chosen) {
  const auto target = std::make_shared<std::string>();  // shared by the parser's functions
  CLI::App* const group = app.add_subcommand("storage", "Look after a data folder: check");
  group->require_subcommand(1);
  CLI::App* const check =
      group->add_subcommand("check", "Read everything in a data folder, and say what is damaged");
  check->add_option("folder", *target, "Data folder")->required();
  check->callback([=, &chosen] {
    chosen.command.perform = [=](const Caller& caller, DataFolder&) {
      return storage_check_command(caller, *target);
    };
  });
}

void add_commands(CLI::App& app, Chosen& chosen) {
  add_run(app, chosen);
  add_repl(app, chosen);
  add_sandbox_commands(app, chosen);
  add_files_commands(app, chosen);
  add_engines(app, chosen);
  add_for_languages(app, chosen, "bake",
                    "Fetch, compile and boot languages ahead of their first use", bake_command);
  add_for_languages(app, chosen, "conformance", "Check that languages meet the engine contract",
                    conformance_command);
  add_backup(app, chosen);
  add_storage(app, chosen);
}

int report(const Caller& caller, const Error& error) {
  caller.streams.complain(error.message);
  return info_of(error.code).exit_status;
}

/// What came of a command, and whether all of it could be printed.
int finish(const Caller& caller, const Result<int>& status) {
  const int code = status.ok() ? *status : report(caller, status.error());
  const auto printed = caller.streams.flush();
  // One message is enough.
  return printed.ok() || code == kStatusHostFault ? code : report(caller, printed.error());
}

/// Exceptions of a command are failures like others.
Result<int> perform(const Command& command, const Caller& caller, DataFolder& folder) {
  try {
    return command.perform(caller, folder);
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kInternal, problem.what(), 0};
  }
}

/// What to do when another process has the folder.
Error with_advice(Error error, const Command& command) {
  error.message +=
      command.can_be_asked
          ? ", which takes no commands: wait until it ends, or use another folder (--data)"
          : ": end it first, or use `run --sandbox`, which works beside it";
  return error;
}

}  // namespace

fs::path default_data_folder() {
  const auto variable = [](const char* name) -> const char* {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  };
  if (const char* folder = variable("SANDBOX_WORKERS_DATA")) return folder;
  if (const char* folder = variable("XDG_DATA_HOME")) return fs::path(folder) / "sandbox-workers";
  const char* home = variable("HOME");
  return fs::path(home != nullptr ? home : "/") / ".local" / "share" / "sandbox-workers";
}

std::variant<Command, int> parse_command(const Caller& caller, const fs::path& folder,
                                         const std::vector<std::string>& arguments) {
  CLI::App app("Run untrusted code in WebAssembly sandboxes", "sandbox-workers");
  app.require_subcommand(1);
  app.set_version_flag("--version", SW_VERSION);
  app.failure_message(describe_wrong_use);
  Chosen chosen{.folder = folder};
  add_commands(app, chosen);
  try {
    // The parser takes them from the end.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& problem) {
    std::ostringstream help;
    std::ostringstream wrong;
    const int code = app.exit(problem, help, wrong);
    caller.streams.print("{}", help.str());
    caller.streams.tell(wrong.str());
    return code == 0 ? 0 : kStatusWrongUse;
  }
  return std::move(chosen.command);
}

int perform_command(const Caller& caller, const std::vector<std::string>& arguments) {
  const auto parsed = parse_command(caller, default_data_folder(), arguments);
  if (const int* const status = std::get_if<int>(&parsed)) return finish(caller, *status);
  const Command& command = std::get<Command>(parsed);
  const auto end = std::chrono::steady_clock::now() + kAskPatience;
  while (true) {
    ProcessDataFolder folder(command.data_folder, caller);
    Result<int> status = perform(command, caller, folder);
    if (!status.ok() && is_in_use(status.error())) {
      if (folder.owner() && command.can_be_asked && std::chrono::steady_clock::now() < end) {
        const auto asked = ask_owner(folder.owner(), caller, arguments, command.reads_input);
        if (!asked.ok()) return report(caller, asked.error());
        if (*asked) return **asked;
        std::this_thread::sleep_for(kPause);
        continue;
      }
      status = with_advice(std::move(status).error(), command);
    }
    const int code = finish(caller, status);
    folder.close(code);
    return code;
  }
}

int perform_for_other(const Caller& caller, DataFolder& folder,
                      const std::vector<std::string>& arguments) {
  const auto parsed = parse_command(caller, folder.path(), arguments);
  if (const int* const status = std::get_if<int>(&parsed)) return finish(caller, *status);
  const Command& command = std::get<Command>(parsed);
  if (!command.can_be_asked || command.data_folder.empty()) {
    return finish(caller, Error{ErrorCode::kNotSupported, "not a command for another process", 0});
  }
  return finish(caller, perform(command, caller, folder));
}

}  // namespace sw::cli
