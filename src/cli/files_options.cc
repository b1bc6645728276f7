// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// `files …`

#include <memory>

#include "cli/files_command.h"
#include "cli/options.h"

namespace sw::cli {

namespace {

using Perform = Result<int> (*)(const Caller&, DataFolder&, const FilesOptions&);

/// Shared by the parser's functions.
struct Arguments {
  std::filesystem::path folder;
  FilesOptions options;
};

class FilesGroup {
 public:
  FilesGroup(CLI::App& app, Chosen& chosen)
      : chosen_(chosen),
        group_(*app.add_subcommand("files", "Manage the files of sandboxes")),
        arguments_(std::make_shared<Arguments>()) {
    group_.require_subcommand(1);
    arguments_->folder = chosen.folder;
  }

  FilesOptions& options() const { return arguments_->options; }

  CLI::App& add(const char* name, const char* what, Perform perform) const {
    CLI::App& command = *group_.add_subcommand(name, what);
    add_data_option(command, arguments_->folder);
    command.callback([&chosen = chosen_, arguments = arguments_, perform] {
      chosen.command.data_folder = arguments->folder;
      chosen.command.reads_input = arguments->options.host == "-" || arguments->options.from == "-";
      chosen.command.perform = [perform, options = arguments->options](const Caller& caller,
                                                                       DataFolder& folder) {
        return perform(caller, folder, options);
      };
    });
    return command;
  }

 private:
  Chosen& chosen_;
  CLI::App& group_;
  const std::shared_ptr<Arguments> arguments_;
};

void add_cp(const FilesGroup& group) {
  FilesOptions& options = group.options();
  CLI::App& cp = group.add("cp", "Copy between host and sandbox, or sandboxes", files_cp_command);
  cp.add_option("from", options.from, "SANDBOX:PATH, or a path on the host")
      ->required()
      ->check(not_empty);
  cp.add_option("to", options.to, "The same")->required()->check(not_empty);
  cp.add_flag("-r,--recursive", options.recursive, "Copy folders");
}

}  // namespace

void add_files_commands(CLI::App& app, Chosen& chosen) {
  const FilesGroup group(app, chosen);
  FilesOptions& options = group.options();
  const auto sandbox = [&](CLI::App& command) {
    command.add_option("sandbox", options.sandbox, "Name of the sandbox")->required();
  };
  const char* const in_sandbox = "Path in the sandbox, absolute or relative to /workspace";

  CLI::App& ls = group.add("ls", "List a folder", files_ls_command);
  sandbox(ls);
  ls.add_option("path", options.path, in_sandbox);
  ls.add_flag("-R,--recursive", options.recursive, "Include everything below");
  ls.add_flag("--json", options.json, "Print as JSON");

  CLI::App& cat = group.add("cat", "Print a file", files_cat_command);
  sandbox(cat);
  cat.add_option("path", options.path, in_sandbox)->required()->check(not_empty);

  CLI::App& get = group.add("get", "Copy a file to the host", files_get_command);
  sandbox(get);
  get.add_option("path", options.path, in_sandbox)->required()->check(not_empty);
  get.add_option("host", options.host, "File or folder on the host (default: its name, here)");

  CLI::App& put = group.add("put", "Copy a file into a sandbox", files_put_command);
  sandbox(put);
  put.add_option("host", options.host, "File on the host, or - for stdin")
      ->required()
      ->check(not_empty);
  put.add_option("path", options.path, in_sandbox);

  CLI::App& rm = group.add("rm", "Delete a file or folder", files_rm_command);
  sandbox(rm);
  rm.add_option("path", options.path, in_sandbox)->required()->check(not_empty);
  rm.add_flag("-r,--recursive", options.recursive, "Delete folders with all that is in them");

  add_cp(group);
}

}  // namespace sw::cli
