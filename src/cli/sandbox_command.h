// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/caller.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/host/sandbox.h"

namespace sw::cli {

/// "2026-01-31T12:34:56.789Z"
std::string show_time(TimePoint time);

/// Digits only are a step, other texts a checkpoint's label, and nothing is what is saved now.
ContextVersion version_of(const std::string& text);

/// Says which files are not those that a context's memory saw, if any. `restore` begins a command that
/// goes to a step.
void tell_differences(const Streams& streams, const VersionFiles& files, std::string_view restore);

/// Does the note of a run say more than that its context is new?
bool is_worth_telling(std::string_view note);

/// "saved", "stale", "not saved"
std::string_view memory_state(const ContextInfo& context);

enum class ContextAction : std::uint8_t {
  kFork,
  kUndo,
  kCheckpoint,
  kRestore,
  kRemoveCheckpoint,
  kDelete,
};

struct ContextCommandOptions {
  std::string sandbox;
  std::string context;
  std::string argument;  ///< the new context's id, or a checkpoint's label
  std::uint32_t runs = 1;
  std::string from;    ///< a step or a checkpoint's label; empty: what is saved now
  bool files = false;  ///< go back as well
};

/// Lists the sandboxes of a data folder.
Result<int> sandboxes_command(const Caller& caller, DataFolder& folder, bool json);

/// Shows what is known of a sandbox.
Result<int> sandbox_info_command(const Caller& caller, DataFolder& folder, const std::string& id,
                                 bool json);

Result<int> delete_sandbox_command(const Caller& caller, DataFolder& folder, const std::string& id);

enum class SandboxAction : std::uint8_t {
  kCheckpoint,
  kRestore,
  kFork,
  kForkCheckpoint,
  kRemoveCheckpoint,
};

struct SandboxVersionOptions {
  std::string sandbox;
  std::string checkpoint;  ///< empty: it gets an id
  std::string new_sandbox;
};

/// Does something with a version of a whole sandbox.
Result<int> sandbox_version_command(const Caller& caller, DataFolder& folder, SandboxAction action,
                                    const SandboxVersionOptions& options);

/// Lists the checkpoints of sandboxes.
Result<int> checkpoints_command(const Caller& caller, DataFolder& folder, bool json);

/// Lists the steps of a context that can be gone back to.
Result<int> history_command(const Caller& caller, DataFolder& folder, const std::string& sandbox,
                            const std::string& context, bool json);

/// Lists the contexts of a sandbox.
Result<int> contexts_command(const Caller& caller, DataFolder& folder, const std::string& sandbox,
                             bool json);

/// Shows what is stored of the contexts' memory, and under which names.
Result<int> snapshots_command(const Caller& caller, DataFolder& folder, const std::string& sandbox,
                              bool json);

Result<int> context_command(const Caller& caller, DataFolder& folder, ContextAction action,
                            const ContextCommandOptions& options);

}  // namespace sw::cli
