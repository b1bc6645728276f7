// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/versions.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <exception>
#include <utility>

#include "sandbox/names.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

namespace {

namespace json = boost::json;

constexpr std::string_view kCheckpointKey = "checkpoint";
constexpr int kVersion = 1;

Result<storage::ObjectName> checkpoint_object(std::string_view name) {
  if (const auto valid = check_sandbox_id(name); !valid.ok()) {
    return protocol::refusal(fmt::format("Invalid checkpoint name: {}", valid.error().message));
  }
  return storage::ObjectName{kCheckpointClass, std::string(name)};
}

storage::TransactionBody marking(std::string_view sandbox, std::int64_t now_ms) {
  const std::string text =
      json::serialize(json::object{{"v", kVersion}, {"sandbox", sandbox}, {"takenAt", now_ms}});
  return [text](storage::Transaction& transaction) {
    return transaction.put(kMetaTable, kCheckpointKey, as_bytes(text));
  };
}

Result<void> read_mark(BytesView bytes, SandboxCheckpoint& checkpoint) {
  try {
    const json::value value = json::parse(as_text(bytes));
    checkpoint.sandbox = json::value_to<std::string>(value.at("sandbox"));
    checkpoint.taken_at_ms = value.at("takenAt").to_number<std::int64_t>();
    return {};
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("checkpoint '{}' is damaged: {}", checkpoint.name, describe(problem))};
  }
}

Error no_checkpoint(std::string_view name) {
  return Error{ErrorCode::kNotFound, fmt::format("There is no checkpoint '{}'", name)};
}

}  // namespace

Result<void> Versions::check_new(std::string_view sandbox) const {
  SW_TRY(const storage::ObjectName name, object_name(sandbox));
  SW_TRY(const auto known, storage_.find(name));
  if (known) return protocol::refusal(fmt::format("Sandbox '{}' already exists", sandbox));
  return {};
}

Result<SandboxCheckpoint> Versions::checkpoint(std::string_view sandbox,
                                               const std::optional<std::string>& name) {
  SandboxCheckpoint made{.name = name.value_or(new_context_id()),
                         .sandbox = std::string(sandbox),
                         .taken_at_ms = parts_.clock.now().time_since_epoch().count()};
  SW_TRY(const storage::ObjectName object, checkpoint_object(made.name));
  SW_TRY(const storage::ObjectName source, object_name(sandbox));
  const MutexLock lock(mutex_);
  SW_TRY(const auto known, storage_.find(object));
  if (known) return protocol::refusal(fmt::format("Checkpoint '{}' already exists", made.name));
  SW_TRY(const auto exists, storage_.find(source));
  if (!exists) return Error{ErrorCode::kNotFound, fmt::format("There is no sandbox '{}'", sandbox)};
  SW_TRY(const auto lease, sandboxes_.get(sandbox));
  SW_CHECK_OK(lease->copy_to(object, marking(sandbox, made.taken_at_ms)));
  SW_TRY(const auto contexts, lease->contexts());
  for (const ContextRecord& context : contexts) made.contexts.push_back(context.id);
  return made;
}

Result<StoredSandbox> Versions::find(std::string_view checkpoint) {
  SW_TRY(const storage::ObjectName object, checkpoint_object(checkpoint));
  SW_TRY(const auto known, storage_.find(object));
  if (!known) return no_checkpoint(checkpoint);
  SW_TRY(const auto storage, storage_.open(object, Sandbox::schema()));
  StoredSandbox stored;
  SW_CHECK_OK(storage->read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(stored, read_stored_sandbox(reader, object));
    return {};
  }));
  return stored;
}

Result<std::vector<SandboxCheckpoint>> Versions::checkpoints(std::string_view after,
                                                             std::size_t count_max) {
  SW_TRY(const auto objects, storage_.list(kCheckpointClass, after, count_max));
  std::vector<SandboxCheckpoint> found;
  for (const storage::ObjectInfo& object : objects) {
    SW_TRY(const auto storage, storage_.open(object.name, Sandbox::schema()));
    SandboxCheckpoint& checkpoint = found.emplace_back();
    checkpoint.name = object.name.id;
    SW_CHECK_OK(storage->read([&](storage::Reader& reader) -> Result<void> {
      SW_TRY(const auto mark, reader.get(kMetaTable, kCheckpointKey));
      SW_CHECK_OK(read_mark(mark.value_or(Bytes()), checkpoint));
      SW_TRY(checkpoint.contexts, read_context_ids(reader));
      return {};
    }));
  }
  return found;
}

Result<void> Versions::remove_checkpoint(std::string_view name) {
  SW_TRY(const StoredSandbox stored, find(name));
  storage::Changes changes{.removed = {stored.object}};
  SW_TRY(const auto interpreters, interpreter_objects(parts_, stored));
  changes.removed.insert(changes.removed.end(), interpreters.begin(), interpreters.end());
  return storage_.change(changes);
}

Result<void> Versions::restore(std::string_view sandbox, std::string_view checkpoint) {
  SW_TRY(const StoredSandbox stored, find(checkpoint));
  SW_TRY(const auto lease, sandboxes_.get(sandbox));
  return lease->become(stored, [this](storage::Transaction& t) { return begin_life(t); });
}

Result<void> Versions::fork(std::string_view sandbox, std::string_view new_sandbox) {
  SW_TRY(const storage::ObjectName source, object_name(sandbox));
  const MutexLock lock(mutex_);
  SW_TRY(const storage::ObjectName target, object_name(new_sandbox));
  SW_CHECK_OK(check_new(new_sandbox));
  SW_TRY(const auto exists, storage_.find(source));
  if (!exists) return Error{ErrorCode::kNotFound, fmt::format("There is no sandbox '{}'", sandbox)};
  SW_TRY(const auto lease, sandboxes_.get(sandbox));
  return lease->copy_to(target, [this](storage::Transaction& t) { return begin_life(t); });
}

Result<void> Versions::fork_checkpoint(std::string_view checkpoint, std::string_view new_sandbox) {
  SW_TRY(const StoredSandbox stored, find(checkpoint));
  return fork_stored(stored, new_sandbox);
}

Result<void> Versions::fork_stored(const StoredSandbox& stored, std::string_view new_sandbox) {
  const MutexLock lock(mutex_);
  SW_TRY(const storage::ObjectName target, object_name(new_sandbox));
  SW_CHECK_OK(check_new(new_sandbox));
  storage::Changes changes;
  SW_CHECK_OK(add_copy(
      parts_, stored, target, [this](storage::Transaction& t) { return begin_life(t); }, changes));
  return storage_.change(changes);
}

/// A copy that is used from now on: it is no checkpoint, and expires as others do.
Result<void> Versions::begin_life(storage::Transaction& transaction) const {
  SW_CHECK_OK(transaction.erase(kMetaTable, kCheckpointKey));
  SW_TRY([[maybe_unused]] const auto alarm,
         object::touch_idle_alarm(transaction, parts_.clock.now(), parts_.options.idle_ttl));
  return {};
}

}  // namespace sw::sandbox
