// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a process does that is killed, and a model of what has to be there afterwards: sandboxes with
// files and contexts in all languages, forks, checkpoints, both durabilities.

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sandbox_workers/host.h"

namespace sw::kill_model {

/// Each context counts; the count is in its memory and in a file.
inline const std::map<std::string, std::string>& cells() {
  static const std::map<std::string, std::string> code = {
      {"javascript",
       "globalThis.n = (globalThis.n ?? 0) + 1; fs.writeFileSync('javascript', String(n)); n"},
      {"python",
       "n = globals().get('n', 0) + 1\nwith open('python', 'w') as f: f.write(str(n))\nn"},
      {"perl", "our $n; $n += 1; open(my $f, '>', 'perl'); print $f $n; close $f; $n"},
      {"ruby", "$n = $n.to_i + 1; File.write('ruby', $n.to_s); $n"},
  };
  return code;
}
inline const std::map<std::string, std::string>& counts() {
  static const std::map<std::string, std::string> code = {{"javascript", "globalThis.n ?? 0"},
                                                          {"python", "globals().get('n', 0)"},
                                                          {"perl", "our $n; $n + 0"},
                                                          {"ruby", "$n.to_i"}};
  return code;
}

struct SandboxState {
  using Files = std::map<std::string, std::string>;
  std::map<std::string, std::uint64_t> contexts;  ///< by language
  Files files;
  /// What the runs since the process began left, by language: a run is undone only after another.
  std::map<std::string, std::vector<Files>> left = {};
  bool operator==(const SandboxState&) const = default;
};

struct State {
  std::map<std::string, SandboxState> sandboxes;
  std::map<std::string, SandboxState> checkpoints;
  bool operator==(const State&) const = default;
};

/// Looking at contexts is a step of theirs.
inline void forget_runs(State& state) {
  for (auto* const all : {&state.sandboxes, &state.checkpoints}) {
    for (auto& [name, sandbox] : *all) sandbox.left.clear();
  }
}

enum class Action : std::uint8_t {
  kRun,
  kUndo,
  kWrite,
  kFork,
  kCheckpoint,
  kRestore,
  kForkCheckpoint,
  kRemoveCheckpoint,
  kDestroy
};

struct Operation {
  Action action = Action::kRun;
  std::string sandbox;
  std::string other;  ///< a language, a checkpoint, or a sandbox
  std::string text;
  bool relaxed = false;
};

/// The next thing to do, which can be done in this state.
inline Operation next(const State& state, std::mt19937& random) {
  const auto pick = [&](const char* kind) { return fmt::format("{}{}", kind, random() % 3); };
  for (;;) {
    Operation operation{.sandbox = pick("s"), .other = pick("s"), .text = {}};
    const bool there = state.sandboxes.contains(operation.sandbox);
    switch (random() % 19) {
      case 0:
        operation.action = Action::kFork;
        if (there && !state.sandboxes.contains(operation.other)) return operation;
        break;
      case 1:
        operation.action = Action::kCheckpoint;
        operation.other = pick("c");
        if (there && !state.checkpoints.contains(operation.other)) return operation;
        break;
      case 2:
        operation.action = random() % 2 == 0 ? Action::kRestore : Action::kForkCheckpoint;
        operation.other = pick("c");
        if (!state.checkpoints.contains(operation.other)) break;
        if (operation.action == Action::kRestore || !there) return operation;
        break;
      case 3:
        operation.action = Action::kRemoveCheckpoint;
        operation.other = pick("c");
        if (state.checkpoints.contains(operation.other)) return operation;
        break;
      case 4:
        operation.action = Action::kDestroy;
        if (there && random() % 2 == 0) return operation;
        break;
      case 5:
      case 6:
      case 7:
        operation.action = Action::kUndo;
        if (!there) break;
        for (const auto& [language, left] : state.sandboxes.at(operation.sandbox).left) {
          operation.other = language;
          if (left.size() > 1) return operation;
        }
        break;
      case 8:
      case 9:
        operation.action = Action::kWrite;
        operation.other = pick("f");
        operation.text = std::string(random() % 3000, static_cast<char>('a' + random() % 26));
        return operation;
      default:
        operation.other =
            std::next(cells().begin(), static_cast<std::ptrdiff_t>(random() % 4))->first;
        operation.relaxed = random() % 2 == 0;
        return operation;
    }
  }
}

inline void apply(const Operation& operation, State& state) {
  const std::string& sandbox = operation.sandbox;
  const std::string& other = operation.other;
  switch (operation.action) {
    case Action::kRun: {
      SandboxState& changed = state.sandboxes[sandbox];
      changed.files[other] = std::to_string(++changed.contexts[other]);
      changed.left[other].push_back(changed.files);
      break;
    }
    case Action::kUndo: {
      SandboxState& changed = state.sandboxes[sandbox];
      --changed.contexts[other];
      changed.left[other].pop_back();
      changed.files = changed.left[other].back();
      break;
    }
    case Action::kWrite: state.sandboxes[sandbox].files[other] = operation.text; break;
    case Action::kFork: state.sandboxes[other] = state.sandboxes[sandbox]; break;
    case Action::kCheckpoint: state.checkpoints[other] = state.sandboxes[sandbox]; break;
    case Action::kRestore:
    case Action::kForkCheckpoint: state.sandboxes[sandbox] = state.checkpoints[other]; break;
    case Action::kRemoveCheckpoint: state.checkpoints.erase(other); break;
    case Action::kDestroy: state.sandboxes.erase(sandbox); break;
  }
}

inline Result<void> perform(const Operation& operation, const Host& host) {
  const Sandbox sandbox = host.sandbox(operation.sandbox);
  switch (operation.action) {
    case Action::kRun: {
      Run run{.language = operation.other, .code = cells().at(operation.other)};
      run.durability = operation.relaxed ? Durability::kRelaxed : Durability::kCommit;
      SW_TRY(const Outcome outcome, sandbox.run(std::move(run)));
      if (outcome.error) return Error{ErrorCode::kInternal, outcome.error->message};
      return {};
    }
    case Action::kUndo:
      SW_CHECK_OK(sandbox.context(operation.other).undo(1, {.files = true}));
      return {};
    case Action::kWrite: return sandbox.files().write(operation.other, operation.text);
    case Action::kFork: {
      SW_TRY([[maybe_unused]] const Sandbox made, sandbox.fork(operation.other));
      return {};
    }
    case Action::kCheckpoint: {
      SW_TRY([[maybe_unused]] const auto made, sandbox.checkpoint(operation.other));
      return {};
    }
    case Action::kRestore: return sandbox.restore(operation.other);
    case Action::kForkCheckpoint: {
      SW_TRY([[maybe_unused]] const Sandbox made,
             host.fork_checkpoint(operation.other, operation.sandbox));
      return {};
    }
    case Action::kRemoveCheckpoint: return host.remove_checkpoint(operation.other);
    case Action::kDestroy: return sandbox.destroy();
  }
  return {};
}

/// What is in a host, but for the content of checkpoints, of which only the names are looked at.
/// `notes` gets what the answers say beside their values.
inline Result<State> look(const Host& host, std::string& notes) {
  State state;
  SW_TRY(const auto ids, host.sandboxes());
  for (const std::string& id : ids) {
    SandboxState& found = state.sandboxes[id];
    SW_TRY(const auto entries, host.sandbox(id).files().list());
    for (const WorkspaceEntry& entry : entries) {
      SW_TRY(found.files[entry.path.substr(entry.path.rfind('/') + 1)],
             host.sandbox(id).files().read_text(entry.path));
    }
    SW_TRY(const auto contexts, host.sandbox(id).contexts());
    for (const ContextInfo& context : contexts) {
      SW_TRY(const Outcome outcome, host.sandbox(id).run({.language = context.language,
                                                          .code = counts().at(context.language),
                                                          .context = context.id}));
      if (!outcome.value) return Error{ErrorCode::kInternal, "a context does not answer"};
      // A context that is made for a run is there before the run.
      const std::uint64_t count = std::stoull(outcome.value->text);
      if (count != 0) found.contexts[context.id] = count;
      notes += outcome.context->note;
    }
  }
  SW_TRY(const auto checkpoints, host.checkpoints());
  for (const SandboxCheckpoint& one : checkpoints) state.checkpoints[one.name];
  return state;
}

/// What can be told apart by `look`: a sandbox that is made for something is there before it.
inline State as_seen(State state) {
  forget_runs(state);
  for (auto& [name, checkpoint] : state.checkpoints) checkpoint = {};
  std::erase_if(state.sandboxes, [](const auto& one) { return one.second == SandboxState{}; });
  return state;
}

/// Whether `found` may be what is left of `state` when the process was killed within `operation`. A
/// sandbox is destroyed context by context.
inline bool may_be(const State& found, const State& state, const Operation& in_flight) {
  State seen = as_seen(found);
  State expected = as_seen(state);
  if (in_flight.action == Action::kDestroy) {
    seen.sandboxes.erase(in_flight.sandbox);
    expected.sandboxes.erase(in_flight.sandbox);
  }
  return seen == expected;
}

/// What it takes for `found` to become `state`: what was begun is ended.
inline Result<void> tidy(const Host& host, const State& found, const State& state) {
  for (const auto& [name, sandbox] : found.sandboxes) {
    if (!state.sandboxes.contains(name)) SW_CHECK_OK(host.sandbox(name).destroy());
  }
  return {};
}

inline std::string show(const State& state) {
  std::string text;
  for (const auto& [name, sandbox] : state.sandboxes) {
    text += name + ":";
    for (const auto& [id, count] : sandbox.contexts) text += fmt::format(" {}={}", id, count);
    for (const auto& [path, content] : sandbox.files)
      text += fmt::format(" {}:{}", path, content.size() < 9 ? content : content.substr(0, 2));
    text += "; ";
  }
  for (const auto& [name, checkpoint] : state.checkpoints) text += name + " ";
  return text;
}

}  // namespace sw::kill_model
