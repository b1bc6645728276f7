// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/load_engine.h"
#include "sandbox/embedded_sandbox.h"
#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::cli {

/// A sandbox of a data folder, and what it stands on.
struct OpenSandbox {
  std::unique_ptr<storage::Storage> storage;
  std::unique_ptr<storage::ObjectStorage> object;
  std::unique_ptr<sandbox::EmbeddedSandbox> sandbox;
};

/// Errors: kUnavailable while another process uses the folder.
Result<OpenSandbox> open_sandbox(engine::Machine& machine, const std::filesystem::path& data_folder,
                                 const std::string& id);

enum class ContextAction : std::uint8_t { kFork, kUndo, kCheckpoint, kRestore, kDelete };

struct ContextOptions {
  std::filesystem::path data_folder;
  std::string sandbox;
  std::string context;
  std::string argument;  ///< the new context's id, or a checkpoint's label
  std::uint32_t runs = 1;
};

/// Lists the contexts of a sandbox.
Result<int> contexts_command(const ContextOptions& options, bool json);

Result<int> context_command(ContextAction action, const ContextOptions& options);

}  // namespace sw::cli
