// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sandboxes as streams of bytes, to keep them elsewhere or to move them to another host. Both ways
// lead through objects of their own, which nobody else uses: what is read is of one moment, and what
// is written becomes a sandbox only when all of it is there and right.

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/archive.h"
#include "sandbox/sandboxes.h"
#include "sandbox/stored_sandbox.h"
#include "sandbox/versions.h"
#include "sandbox_workers/base/byte_stream.h"
#include "storage/storage.h"

namespace sw::sandbox {

/// The class of the objects in between.
inline constexpr char kTransferClass[] = "transfer";

/// What goes into an archive beside files and environment.
struct ExportSelection {
  std::vector<std::string> contexts = {};  ///< empty: all
  bool history = true;                     ///< earlier steps, and what files were before
};

/// Threads: any.
class Transfers {
 public:
  /// All outlive it.
  Transfers(storage::Storage& storage, Sandboxes& sandboxes, Versions& versions,
            const SandboxParts& parts)
      : storage_(storage), sandboxes_(sandboxes), versions_(versions), parts_(parts) {}

  /// Errors: kNotFound; kContextNotFound; kNotSupported for contexts in a Worker elsewhere; those of
  /// `write`.
  Result<void> export_sandbox(std::string_view id, const ExportSelection& selection,
                              const WriteBytes& write);
  /// Makes a new sandbox.
  /// Errors: kInvalidArgument for what is no archive, names that cannot be or are taken, and languages
  /// that are not there; kLimitExceeded for more than a sandbox may have; kCorrupt; those of `read`.
  Result<void> import_sandbox(std::string_view new_id, const ReadBytes& read);

  /// Deletes what was left in between when the program ended.
  Result<void> remove_leftovers();

 private:
  class InBetween;
  class Incoming;

  Result<void> select(const InBetween& copy, std::string_view id, const ExportSelection& selection);
  Result<void> write_objects(const StoredSandbox& stored, std::string_view id,
                             const WriteBytes& write);
  /// Whether it can be a sandbox here.
  Result<void> check(storage::ObjectStorage& object, const StoredSandbox& stored);
  Result<void> check_rows(storage::Reader& reader) const;

  storage::Storage& storage_;
  Sandboxes& sandboxes_;
  Versions& versions_;
  const SandboxParts& parts_;
};

}  // namespace sw::sandbox
