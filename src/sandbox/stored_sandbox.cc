// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/stored_sandbox.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "protocol/messages.h"
#include "sandbox/file_log.h"
#include "sandbox/file_store.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"

namespace sw::sandbox {

TypedObject typed_sandbox(const storage::ObjectName& name) {
  return {.name = name,
          .schema = Sandbox::schema(),
          .tables = {kMetaTable, kContextsTable, kEntriesTable, kContentsTable, kLogTable,
                     kStepsTable}};
}

Result<TypedObject> interpreter_object(const SandboxParts& parts, const std::string& binding,
                                       const std::string& key) {
  auto object = parts.interpreter_object ? parts.interpreter_object(binding, key) : std::nullopt;
  if (object) return *std::move(object);
  return Error{ErrorCode::kNotSupported,
               fmt::format("the contexts of binding '{}' are kept by a Worker elsewhere, so the "
                           "sandbox cannot be copied as a whole",
                           binding)};
}

Result<std::optional<std::string>> read_interpreter_key(storage::Reader& reader) {
  SW_TRY(const auto bytes, reader.get(kMetaTable, kInterpretersKey));
  if (!bytes) return std::optional<std::string>();
  if (protocol::is_interpreter_key(as_text(*bytes)))
    return std::optional<std::string>(as_text(*bytes));
  return Error{ErrorCode::kCorrupt, "the key of the sandbox's interpreters is damaged", 0};
}

Result<std::vector<std::string>> read_context_ids(storage::Reader& reader) {
  std::vector<std::string> ids;
  SW_CHECK_OK(reader.scan_keys({.table = kContextsTable, .from = {}, .to = {}},
                               storage::Order::kAscending,
                               [&](std::string_view id, std::size_t) -> Result<storage::Scan> {
                                 ids.emplace_back(id);
                                 return storage::Scan::kContinue;
                               }));
  return ids;
}

Result<std::vector<ContextRecord>> read_contexts(storage::Reader& reader) {
  std::vector<ContextRecord> contexts;
  SW_CHECK_OK(reader.scan({.table = kContextsTable, .from = {}, .to = {}},
                          storage::Order::kAscending,
                          [&](std::string_view id, BytesView value) -> Result<storage::Scan> {
                            SW_TRY(contexts.emplace_back(), decode_context_record(id, value));
                            return storage::Scan::kContinue;
                          }));
  return contexts;
}

Result<void> erase_context(storage::Transaction& transaction, std::string_view id) {
  SW_CHECK_OK(transaction.erase(kContextsTable, id));
  return FileLog::erase_steps(transaction, id);
}

Result<StoredSandbox> read_stored_sandbox(storage::Reader& reader,
                                          const storage::ObjectName& object) {
  StoredSandbox stored{.object = object, .key = {}, .bindings = {}};
  SW_TRY(const auto key, read_interpreter_key(reader));
  stored.key = key.value_or(old_interpreter_key(object));
  SW_TRY(const auto contexts, read_contexts(reader));
  for (const ContextRecord& context : contexts) stored.bindings.insert(context.binding);
  return stored;
}

Result<std::vector<storage::ObjectName>> interpreter_objects(const SandboxParts& parts,
                                                             const StoredSandbox& stored) {
  std::vector<storage::ObjectName> names;
  for (const std::string& binding : stored.bindings) {
    SW_TRY(TypedObject object, interpreter_object(parts, binding, stored.key));
    names.push_back(std::move(object.name));
  }
  return names;
}

Result<void> add_copy(const SandboxParts& parts, const StoredSandbox& from,
                      const storage::ObjectName& to, const storage::TransactionBody& body,
                      storage::Changes& changes) {
  const std::string key = new_interpreter_key();
  changes.copies.push_back({.from = from.object,
                            .to = to,
                            .body = [key, body](storage::Transaction& transaction) -> Result<void> {
                              SW_CHECK_OK(
                                  transaction.put(kMetaTable, kInterpretersKey, as_bytes(key)));
                              return body(transaction);
                            }});
  for (const std::string& binding : from.bindings) {
    SW_TRY(TypedObject source, interpreter_object(parts, binding, from.key));
    SW_TRY(TypedObject target, interpreter_object(parts, binding, key));
    changes.copies.push_back({.from = std::move(source.name), .to = std::move(target.name)});
  }
  return {};
}

}  // namespace sw::sandbox
