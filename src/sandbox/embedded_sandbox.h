// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox in this process: files under /workspace and code contexts in several languages that share them, all in
// one object of the storage. What a run did to files and to memory is committed together.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/interpreter.h"
#include "sandbox/file_store.h"
#include "sandbox/names.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "storage/storage.h"

namespace sw::sandbox {

struct ContextEntry {
  std::string id;
  std::string language;
  interpreter::ContextRow row;
};

/// Threads: one at a time; runs need a guest's stack.
class EmbeddedSandbox {
 public:
  /// The name of the storage's object for a sandbox. Errors: those of check_sandbox_id.
  static Result<storage::ObjectName> object_name(std::string_view id);

  /// `storage` belongs to this sandbox alone and outlives it.
  static Result<std::unique_ptr<EmbeddedSandbox>> open(storage::ObjectStorage& storage,
                                                       const wasi::Clocks& clocks);
  ~EmbeddedSandbox();

  const std::shared_ptr<wasi::Tree>& workspace() const { return files_.tree(); }
  /// Stores what was changed in the workspace other than by a run.
  Result<void> save_files();

  /// The contexts of a language; made on first use.
  Result<interpreter::Interpreter*> interpreter(const std::shared_ptr<engine::Engine>& engine);
  /// All contexts there are, whatever their language.
  Result<std::vector<ContextEntry>> contexts();

  /// Runs a cell in a context, which is made if it is new.
  /// Errors: kInvalidArgument when the id is that of a context in another language.
  Result<interpreter::ExecuteResult> execute(const std::shared_ptr<engine::Engine>& engine,
                                             std::string_view context, engine::RunRequest request,
                                             wasi::OutputSink& output);

 private:
  EmbeddedSandbox(storage::ObjectStorage& storage, const wasi::Clocks& clocks, FileStore files);
  Result<interpreter::Options> options_for(const std::string& language);
  Result<std::vector<std::string>> languages();

  storage::ObjectStorage& storage_;
  const wasi::Clocks& clocks_;
  FileStore files_;
  std::map<std::string, std::unique_ptr<interpreter::Interpreter>> interpreters_;  // by language
};

}  // namespace sw::sandbox
