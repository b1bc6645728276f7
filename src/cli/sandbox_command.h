// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/load_engine.h"
#include "object/clock.h"
#include "sandbox/sandbox.h"
#include "sandbox_workers/base/result.h"
#include "storage/memory/memory_storage.h"
#include "storage/storage.h"

namespace sw::cli {

/// A sandbox, its Interpreters, and what they stand on. Nothing in it expires, and limits are those
/// of this machine rather than of a server.
class LocalSandbox {
 public:
  /// In a data folder. Errors: kUnavailable while another process uses it.
  static Result<std::unique_ptr<LocalSandbox>> open(const std::filesystem::path& data_folder,
                                                    const std::string& id);
  /// The same for one that is there already. Errors: also kNotFound.
  static Result<std::unique_ptr<LocalSandbox>> open_existing(
      const std::filesystem::path& data_folder, const std::string& id);
  /// One that ends with this object.
  static Result<std::unique_ptr<LocalSandbox>> in_memory(const std::string& id);

  /// Contexts can be made and used in the engine's language from now on.
  Result<void> add_engine(std::shared_ptr<engine::Engine> engine);

  sandbox::Sandbox& sandbox() { return *sandbox_; }

  /// The context of that name, made if it is new. Errors: kInvalidArgument for one in another
  /// language.
  Result<sandbox::ContextRecord> context(const std::string& id, const std::string& language);
  Result<sandbox::Ran> run(const sandbox::Cell& cell, RunEvents& output);

 private:
  LocalSandbox() = default;
  Result<void> open_object(const std::string& id);

  storage::MemoryDisk memory_;
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<object::Clock> clock_ = object::make_system_clock();
  protocol::Bindings bindings_;
  std::unique_ptr<storage::ObjectStorage> object_;
  std::unique_ptr<sandbox::Sandbox> sandbox_;
};

/// Does the note of a run say more than that its context is new?
bool is_worth_telling(std::string_view note);

/// "saved", "stale", "not saved"
std::string_view memory_state(const sandbox::ContextRecord& context);

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

/// Shows what is stored of the contexts' memory, and under which names.
Result<int> snapshots_command(const ContextOptions& options, bool json);

Result<int> context_command(ContextAction action, const ContextOptions& options);

}  // namespace sw::cli
