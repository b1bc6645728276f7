// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// `sandboxes …`, `contexts`, `snapshots`, `context …`

#include <memory>

#include "cli/options.h"
#include "cli/sandbox_command.h"
#include "cli/transfer_command.h"

namespace sw::cli {

namespace {

/// What the commands of a group share. The parser's functions share it, too.
struct Arguments {
  std::filesystem::path folder;
  bool json = false;
  ContextCommandOptions options;
  SandboxVersionOptions versions;
  TransferOptions transfer;
};

using Perform = std::function<Result<int>(const Caller&, DataFolder&, const Arguments&)>;

/// `perform` does it with what the arguments are when they are parsed.
void choose(CLI::App& command, Chosen& chosen, const std::shared_ptr<Arguments>& arguments,
            Perform perform, bool (*reads_input)(const Arguments&) = nullptr) {
  command.callback([arguments, &chosen, reads_input, perform = std::move(perform)] {
    chosen.command.data_folder = arguments->folder;
    chosen.command.reads_input = reads_input && reads_input(*arguments);
    chosen.command.perform = [perform, known = *arguments](const Caller& caller,
                                                           DataFolder& folder) {
      return perform(caller, folder, known);
    };
  });
}

std::shared_ptr<Arguments> arguments_with(const Chosen& chosen) {
  auto arguments = std::make_shared<Arguments>();
  arguments->folder = chosen.folder;
  return arguments;
}

void add_sandbox(CLI::App& command, Arguments& arguments) {
  command.add_option("sandbox", arguments.options.sandbox, "Name of the sandbox")->required();
}

/// A new command of a group; the group's options may stand behind it, too.
using NewCommand = std::function<CLI::App*(const char* name, const char* what)>;

void add_versions(const NewCommand& add, Chosen& chosen,
                  const std::shared_ptr<Arguments>& arguments) {
  SandboxVersionOptions& options = arguments->versions;
  const auto acting = [&](CLI::App& command, SandboxAction action) {
    choose(command, chosen, arguments,
           [action](const Caller& caller, DataFolder& folder, const Arguments& known) {
             return sandbox_version_command(caller, folder, action, known.versions);
           });
  };
  const char* const of_sandbox = "Name of the sandbox";
  const char* const of_new = "Name of the new sandbox";
  const char* const of_checkpoint = "Name of the checkpoint";
  CLI::App* const checkpoint = add("checkpoint", "Keep a whole sandbox as it is now");
  checkpoint->add_option("sandbox", options.sandbox, of_sandbox)->required();
  checkpoint->add_option("name", options.checkpoint,
                         "Name of the checkpoint (default: an id, which is printed)");
  acting(*checkpoint, SandboxAction::kCheckpoint);
  choose(*add("checkpoints", "List the checkpoints of all sandboxes"), chosen, arguments,
         [](const Caller& caller, DataFolder& folder, const Arguments& known) {
           return checkpoints_command(caller, folder, known.json);
         });
  CLI::App* const restore = add("restore", "Make a sandbox what a checkpoint is");
  restore->add_option("sandbox", options.sandbox, of_sandbox)->required();
  restore->add_option("checkpoint", options.checkpoint, of_checkpoint)->required();
  acting(*restore, SandboxAction::kRestore);
  CLI::App* const fork = add("fork", "Create a sandbox from another sandbox's state");
  fork->add_option("sandbox", options.sandbox, of_sandbox)->required();
  fork->add_option("new", options.new_sandbox, of_new)->required();
  acting(*fork, SandboxAction::kFork);
  CLI::App* const from = add("fork-checkpoint", "Create a sandbox from a checkpoint");
  from->add_option("checkpoint", options.checkpoint, of_checkpoint)->required();
  from->add_option("new", options.new_sandbox, of_new)->required();
  acting(*from, SandboxAction::kForkCheckpoint);
  CLI::App* const remove = add("remove-checkpoint", "Delete a checkpoint");
  remove->add_option("checkpoint", options.checkpoint, of_checkpoint)->required();
  acting(*remove, SandboxAction::kRemoveCheckpoint);
}

void add_transfers(const NewCommand& add, Chosen& chosen,
                   const std::shared_ptr<Arguments>& arguments) {
  TransferOptions& options = arguments->transfer;
  CLI::App* const out = add("export", "Write a sandbox to a file, to keep it or to move it");
  out->add_option("sandbox", options.sandbox, "Name of the sandbox")->required();
  out->add_option("file", options.file, "File to write (default: stdout)")->check(not_empty);
  out->add_option("--context", options.contexts,
                  "Context to include (default: all); can be repeated");
  out->add_flag("--without-history", options.without_history,
                "Leave out earlier steps, and what files were before");
  choose(*out, chosen, arguments,
         [](const Caller& caller, DataFolder& folder, const Arguments& known) {
           return export_command(caller, folder, known.transfer);
         });
  CLI::App* const in = add("import", "Create a sandbox from a file that export has written");
  in->add_option("sandbox", options.sandbox, "Name of the new sandbox")->required();
  in->add_option("file", options.file, "File to read (default: stdin)")->check(not_empty);
  choose(
      *in, chosen, arguments,
      [](const Caller& caller, DataFolder& folder, const Arguments& known) {
        return import_command(caller, folder, known.transfer);
      },
      [](const Arguments& known) { return known.transfer.file == "-"; });
}

void add_sandboxes(CLI::App& app, Chosen& chosen) {
  const auto arguments = arguments_with(chosen);
  CLI::App* const group = app.add_subcommand("sandboxes",
                                             "Manage sandboxes: list (the default), info, delete, "
                                             "checkpoint, restore, fork, export, import");
  group->require_subcommand(0, 1);
  add_data_option(*group, arguments->folder);
  group->add_flag("--json", arguments->json, "Print as JSON");
  const auto add = [&](const char* name, const char* what) {
    // The group's options may stand behind the command, too.
    return group->add_subcommand(name, what)->fallthrough();
  };
  const Perform list = [](const Caller& caller, DataFolder& folder, const Arguments& known) {
    return sandboxes_command(caller, folder, known.json);
  };
  choose(*add("list", "List the sandboxes in the data folder"), chosen, arguments, list);
  CLI::App* const info = add("info", "Show what is known of a sandbox");
  add_sandbox(*info, *arguments);
  choose(*info, chosen, arguments,
         [](const Caller& caller, DataFolder& folder, const Arguments& known) {
           return sandbox_info_command(caller, folder, known.options.sandbox, known.json);
         });
  CLI::App* const remove = add("delete", "Delete a sandbox with all its files and contexts");
  add_sandbox(*remove, *arguments);
  choose(*remove, chosen, arguments,
         [](const Caller& caller, DataFolder& folder, const Arguments& known) {
           return delete_sandbox_command(caller, folder, known.options.sandbox);
         });
  add_versions(add, chosen, arguments);
  add_transfers(add, chosen, arguments);
  // Called after those of its commands.
  group->callback([=, &chosen] {
    if (!group->get_subcommands().empty()) return;
    chosen.command.data_folder = arguments->folder;
    chosen.command.perform = [=, known = *arguments](const Caller& caller, DataFolder& folder) {
      return list(caller, folder, known);
    };
  });
}

/// `contexts`, `snapshots`
void add_listing(CLI::App& app, Chosen& chosen, const char* name, const char* what,
                 Result<int> (*perform)(const Caller&, DataFolder&, const std::string&, bool)) {
  const auto arguments = arguments_with(chosen);
  CLI::App* const command = app.add_subcommand(name, what);
  add_data_option(*command, arguments->folder);
  add_sandbox(*command, *arguments);
  command->add_flag("--json", arguments->json, "Print as JSON");
  choose(*command, chosen, arguments,
         [perform](const Caller& caller, DataFolder& folder, const Arguments& known) {
           return perform(caller, folder, known.options.sandbox, known.json);
         });
}

void add_context(CLI::App& app, Chosen& chosen) {
  const auto arguments = arguments_with(chosen);
  CLI::App* const group =
      app.add_subcommand("context",
                         "Manage a context: history, fork, undo, checkpoint, restore, "
                         "delete");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, ContextAction action,
                       const char* argument = nullptr, const char* meaning = "") {
    CLI::App* const command = group->add_subcommand(name, what);
    add_data_option(*command, arguments->folder);
    add_sandbox(*command, *arguments);
    ContextCommandOptions& options = arguments->options;
    command->add_option("context", options.context, "Name of the context")->required();
    if (argument != nullptr) command->add_option(argument, options.argument, meaning)->required();
    choose(*command, chosen, arguments,
           [action](const Caller& caller, DataFolder& folder, const Arguments& known) {
             return context_command(caller, folder, action, known.options);
           });
    return command;
  };
  const char* const label = "Label of the checkpoint";
  const auto with_files = [&](CLI::App* command) {
    command->add_flag("--files", arguments->options.files,
                      "Put the sandbox's files back as well, as they were then");
    return command;
  };
  with_files(add("fork", "Create a context from another context's state", ContextAction::kFork,
                 "new", "Name of the new context"))
      ->add_option("--from", arguments->options.from,
                   "Step or checkpoint to begin from (default: what is saved now)");
  with_files(add("undo", "Undo the last runs' changes to memory", ContextAction::kUndo))
      ->add_option("--runs", arguments->options.runs, "Number of runs to undo")
      ->capture_default_str();
  add("checkpoint", "Save the state under a label", ContextAction::kCheckpoint, "label", label);
  with_files(add("restore", "Go back to a step or a checkpoint", ContextAction::kRestore, "version",
                 "Number of a step (see context history), or label of a checkpoint"));
  add("remove-checkpoint", "Delete a checkpoint", ContextAction::kRemoveCheckpoint, "label", label);
  add("delete", "Delete a context", ContextAction::kDelete);
  CLI::App* const history =
      group->add_subcommand("history", "List the steps of a context that can be gone back to");
  add_data_option(*history, arguments->folder);
  add_sandbox(*history, *arguments);
  history->add_option("context", arguments->options.context, "Name of the context")->required();
  history->add_flag("--json", arguments->json, "Print as JSON");
  choose(*history, chosen, arguments,
         [](const Caller& caller, DataFolder& folder, const Arguments& known) {
           return history_command(caller, folder, known.options.sandbox, known.options.context,
                                  known.json);
         });
}

}  // namespace

void add_sandbox_commands(CLI::App& app, Chosen& chosen) {
  add_sandboxes(app, chosen);
  add_listing(app, chosen, "contexts", "List the contexts of a sandbox", contexts_command);
  add_listing(app, chosen, "snapshots", "Show the stored memory of a sandbox's contexts",
              snapshots_command);
  add_context(app, chosen);
}

}  // namespace sw::cli
