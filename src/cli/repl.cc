// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/repl.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/standard_streams.h"
#include "cli/sandbox_command.h"
#include "cli/statuses.h"
#include "cli/terminal.h"

namespace sw::cli {

namespace {

constexpr const char* kHelp =
    ":files                 list the files in /workspace\n"
    ":contexts              list the contexts of the sandbox\n"
    ":context NAME          switch to another context, creating it if necessary\n"
    ":fork NAME             fork this context and switch to the fork\n"
    ":checkpoint NAME       save the current state under a name\n"
    ":checkpoints           list saved states\n"
    ":restore NAME          return to a saved state, or to that after a cell, by its number\n"
    ":undo [N]              undo the memory changes of the last N cells (default 1)\n"
    "                       (:fork, :restore and :undo take the files along with --files)\n"
    ":quit                  quit (or Ctrl-D)\n"
    "Ctrl-C discards the line, or interrupts the running cell and keeps its variables.\n";

class Repl {
 public:
  Repl(const Caller& caller, LineReader& lines, ReplTarget& target, std::string context)
      : streams_(caller.streams),
        interrupts_(caller.interrupts),
        lines_(lines),
        target_(target),
        context_(std::move(context)) {}

  int run() {
    if (lines_.is_terminal()) streams_.print("{} (:help lists the commands)\n", target_.language());
    (void)streams_.flush();
    while (!status_) {
      const std::optional<std::string> cell = read_cell();
      if (!cell) break;
      if (cell->starts_with(':')) obey(*cell);
      else if (cell->find_first_not_of(" \t\n") != std::string::npos) evaluate(*cell);
      // Nobody sees what comes of the next one.
      if (const auto printed = streams_.flush(); !status_ && !printed.ok()) fail(printed.error());
    }
    return status_.value_or(0);
  }

 private:
  std::string prompt() const {
    if (context_ == target_.language()) return fmt::format("{}> ", context_);
    return fmt::format("{}:{}> ", target_.language(), context_);
  }

  /// Lines until they are a whole cell, or an empty one says that they have to do. nullopt: the
  /// end.
  std::optional<std::string> read_cell() {
    std::string cell;
    for (bool first = true;; first = false) {
      const std::string ask = prompt();
      const LineReader::Line line =
          lines_.read(first ? ask : fmt::format("{:>{}}", ". ", ask.size()));
      switch (line.kind) {
        case LineReader::Kind::kInterrupted: return "";
        case LineReader::Kind::kEnd: return first ? std::nullopt : std::optional(cell);
        case LineReader::Kind::kLine: break;
      }
      if (!first) cell += '\n';
      cell += line.text;
      if (cell.size() > kCodeBytesMax) return cell;  // it is refused as it is
      if (first && line.text.starts_with(':')) return cell;
      if (!first && line.text.empty() && lines_.is_terminal()) return cell;
      if (target_.is_complete(cell)) return cell;
    }
  }

  void evaluate(const std::string& cell) {
    const auto interrupt = interrupts_.take();
    TerminalSink sink(streams_, [&] { interrupt->request_stop(); });
    const auto ran = target_.run(context_, cell, interrupt->token(), sink);
    if (interrupt->end()) status_ = kStatusCancelled;
    if (!ran.ok()) return complain(ran.error());
    if (!ran->note.empty()) streams_.complain(ran->note);
    show(ran->outcome, sink);
    if (const auto failed = sink.stdout_failure()) return fail(cannot_print(*failed));
    if (ran->outcome.ending == Ending::kExited) status_ = ran->outcome.exit_code.value_or(0);
  }

  void obey(const std::string& line) {
    const std::size_t space = std::min(line.find_first_of(" \t"), line.size());
    const std::string command = line.substr(1, space - 1);
    std::string argument = line.substr(std::min(line.find_first_not_of(" \t", space), line.size()));
    argument.erase(argument.find_last_not_of(" \t") + 1);
    const bool goes_back = command == "fork" || command == "restore" || command == "undo";
    const VersionOptions options{.files = goes_back && take_flag(argument, "--files")};
    const bool wants_name = command == "context" || command == "fork" || command == "checkpoint" ||
                            command == "restore";
    if (wants_name && argument.empty()) {
      streams_.complain(fmt::format(":{} needs a name", command));
    } else if (command == "help") {
      streams_.print("{}", kHelp);
    } else if (command == "quit" || command == "q" || command == "exit") {
      status_ = 0;
    } else if (command == "files") {
      show_files();
    } else if (command == "contexts") {
      show_contexts();
    } else if (command == "context") {
      if (done(target_.open_context(argument))) context_ = argument;
    } else if (command == "fork") {
      if (went_back(target_.fork(context_, argument, options), options)) context_ = argument;
    } else if (command == "checkpoint") {
      done(target_.add_checkpoint(context_, argument));
    } else if (command == "restore") {
      went_back(target_.restore(context_, argument, options), options);
    } else if (command == "checkpoints") {
      show_checkpoints();
    } else if (command == "undo") {
      undo(argument, options);
    } else {
      streams_.complain(fmt::format("unknown command :{}; see :help", command));
    }
  }

  /// Takes a flag away from the end.
  static bool take_flag(std::string& argument, std::string_view flag) {
    if (!argument.ends_with(flag)) return false;
    const std::string rest = argument.substr(0, argument.size() - flag.size());
    if (!rest.empty() && rest.find_last_of(" \t") != rest.size() - 1) return false;
    argument = rest.substr(0, rest.find_last_not_of(" \t") + 1);
    return true;
  }

  void undo(const std::string& argument, const VersionOptions& options) {
    std::uint32_t runs = 1;
    if (!argument.empty()) {
      const auto [end, problem] =
          std::from_chars(argument.data(), argument.data() + argument.size(), runs);
      if (problem != std::errc() || end != argument.data() + argument.size() || runs == 0) {
        streams_.complain(fmt::format("invalid number of cells '{}'", argument));
        return;
      }
    }
    went_back(target_.undo(context_, runs, options), options);
  }

  void show_files() {
    const auto files = target_.files();
    if (!files.ok()) return complain(files.error());
    for (const ReplTarget::File& file : *files) {
      if (file.is_folder) streams_.print("{:>10}  {}/\n", "", printable(file.path));
      else streams_.print("{:>10}  {}\n", file.bytes, printable(file.path));
    }
  }

  void show_contexts() {
    const auto contexts = target_.contexts();
    if (!contexts.ok()) return complain(contexts.error());
    for (const ReplTarget::Context& context : *contexts) {
      streams_.print("{} {:<24} {:<12} {:>6} runs  {}\n", context.id == context_ ? '*' : ' ',
                     context.id, context.language, context.executions, context.memory);
    }
  }

  void show_checkpoints() {
    const auto labels = target_.checkpoints(context_);
    if (!labels.ok()) return complain(labels.error());
    for (const std::string& label : *labels) streams_.print("{}\n", label);
  }

  bool done(const Result<void>& result) {
    if (!result.ok()) complain(result.error());
    return result.ok();
  }
  bool went_back(const Result<VersionFiles>& files, const VersionOptions& options) {
    if (!files.ok()) complain(files.error());
    else if (!options.files) tell_differences(streams_, *files, ":restore");
    return files.ok();
  }
  void complain(const Error& error) { streams_.complain(error.message); }
  void fail(const Error& error) {
    complain(error);
    status_ = kStatusHostFault;
  }

  Streams& streams_;
  Interrupts& interrupts_;
  LineReader& lines_;
  ReplTarget& target_;
  std::string context_;
  std::optional<int> status_;
};

}  // namespace

int run_repl(const Caller& caller, LineReader& lines, ReplTarget& target, std::string context) {
  return Repl(caller, lines, target, std::move(context)).run();
}

}  // namespace sw::cli
