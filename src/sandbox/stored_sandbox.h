// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox as it is stored: its own object, and those of its Interpreters.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/records.h"
#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::sandbox {

struct SandboxParts;

/// An object, and what objects of its class have.
struct TypedObject {
  storage::ObjectName name;
  storage::Schema schema;
  std::vector<storage::TableId> tables;  ///< that it has
};

struct StoredSandbox {
  storage::ObjectName object;
  std::string key;                 ///< of its Interpreters
  std::set<std::string> bindings;  ///< with contexts
};

// Where things are in its object.
inline constexpr storage::TableId kMetaTable = 0x01;
inline constexpr storage::TableId kContextsTable = 0x02;
inline constexpr std::string_view kRecordKey = "sandbox";
inline constexpr std::string_view kInterpretersKey = "interpreters";

/// The key of its Interpreters, if it has one. Errors: kCorrupt.
Result<std::optional<std::string>> read_interpreter_key(storage::Reader& reader);
Result<std::vector<std::string>> read_context_ids(storage::Reader& reader);
Result<std::vector<ContextRecord>> read_contexts(storage::Reader& reader);
/// With what is known of its steps.
Result<void> erase_context(storage::Transaction& transaction, std::string_view id);
/// What the object says of itself.
Result<StoredSandbox> read_stored_sandbox(storage::Reader& reader,
                                          const storage::ObjectName& object);

TypedObject typed_sandbox(const storage::ObjectName& name);
/// Errors: kNotSupported naming a binding whose Worker is elsewhere.
Result<TypedObject> interpreter_object(const SandboxParts& parts, const std::string& binding,
                                       const std::string& key);
/// Its Interpreters' objects. Errors: as above.
Result<std::vector<storage::ObjectName>> interpreter_objects(const SandboxParts& parts,
                                                             const StoredSandbox& stored);

/// Adds to `changes` a copy of all of it under another name, with Interpreters of its own. `body`
/// changes what else is to be different.
/// Errors: as above.
Result<void> add_copy(const SandboxParts& parts, const StoredSandbox& from,
                      const storage::ObjectName& to, const storage::TransactionBody& body,
                      storage::Changes& changes);

}  // namespace sw::sandbox
