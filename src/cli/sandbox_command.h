// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/host/sandbox.h"

namespace sw::cli {

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
  std::filesystem::path data_folder;
  std::string sandbox;
  std::string context;
  std::string argument;  ///< the new context's id, or a checkpoint's label
  std::uint32_t runs = 1;
};

/// Lists the sandboxes of a data folder.
Result<int> sandboxes_command(const std::filesystem::path& data_folder, bool json);

Result<int> delete_sandbox_command(const std::filesystem::path& data_folder, const std::string& id);

/// Lists the contexts of a sandbox.
Result<int> contexts_command(const ContextCommandOptions& options, bool json);

/// Shows what is stored of the contexts' memory, and under which names.
Result<int> snapshots_command(const ContextCommandOptions& options, bool json);

Result<int> context_command(ContextAction action, const ContextCommandOptions& options);

}  // namespace sw::cli
