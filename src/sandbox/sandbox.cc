// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "protocol/messages.h"
#include "sandbox/execution.h"
#include "sandbox/names.h"
#include "sandbox/stored_sandbox.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

namespace {

// Before version 1 a sandbox held the memory of its contexts itself, three tables for each
// language.
constexpr std::string_view kOldLanguagesKey = "languages";
constexpr storage::TableId kOldFirstTable = 0x30;
constexpr storage::TableId kOldTables = 48;

Result<void> drop_embedded_contexts(storage::Transaction& transaction) {
  SW_CHECK_OK(transaction.erase(kMetaTable, kOldLanguagesKey));
  for (storage::TableId table = kOldFirstTable; table < kOldFirstTable + kOldTables; ++table) {
    SW_CHECK_OK(transaction.erase_range({.table = table, .from = {}, .to = {}}));
  }
  return {};
}

}  // namespace

storage::Schema Sandbox::schema() {
  // Programs that know nothing of version 2 would change files without logging it, and delete contents
  // that the log needs.
  const auto begin_log = [](storage::Transaction&) { return Result<void>(); };
  return {.steps = {drop_embedded_contexts, begin_log}};
}

Sandbox::Sandbox(storage::ObjectStorage& storage, const SandboxParts& parts)
    : parts_(parts), name_(storage.name()), storage_(storage) {}

Sandbox::~Sandbox() = default;

std::int64_t Sandbox::created_ms() const {
  const MutexLock lock(mutex_);
  return record_ ? record_->created_ms : 0;
}

std::int64_t Sandbox::now_ms() const { return parts_.clock.now().time_since_epoch().count(); }

std::uint64_t Sandbox::now_ns() const { return static_cast<std::uint64_t>(now_ms()) * 1'000'000; }

// --- what is stored, and the copy of it

Result<void> Sandbox::load() {
  if (record_) return {};
  std::optional<SandboxRecord> record;
  std::optional<std::string> key;
  Contexts contexts;
  const auto read = storage_.read([&](storage::Reader& reader) -> Result<void> {
    record.reset();
    contexts.clear();
    SW_TRY(const auto bytes, reader.get(kMetaTable, kRecordKey));
    if (bytes) {
      SW_TRY(record, decode_sandbox_record(*bytes));
    }
    SW_TRY(key, read_interpreter_key(reader));
    return reader.scan({.table = kContextsTable, .from = {}, .to = {}}, storage::Order::kAscending,
                       [&](std::string_view id, BytesView value) -> Result<storage::Scan> {
                         SW_TRY(ContextRecord context, decode_context_record(id, value));
                         contexts.emplace(id, std::move(context));
                         return storage::Scan::kContinue;
                       });
  });
  if (!read.ok()) return Error(read.error()).as_fault();
  const bool is_new = !record;
  if (is_new) record = SandboxRecord{.created_ms = now_ms(), .last_used_ms = now_ms(), .env = {}};
  record_ = std::move(record);
  contexts_ = std::move(contexts);
  if (key) key_ = *std::move(key);
  else key_ = is_new ? new_interpreter_key() : old_interpreter_key(name_);
  return is_new ? store({.record = true, .key = true}) : Result<void>();
}

FileStore::Changes Sandbox::file_changes(const Step& step) {
  FileStore::Changes changes = store_->changes();
  if (step.ended) store_->end_step(changes, {step.context->id, *step.ended});
  if (step.forked) store_->inherit_steps(changes, *step.forked, step.context->id);
  return changes;
}

Result<void> Sandbox::store(const Step& step) {
  const bool files = store_ && (step.files || step.ended || step.forked);
  FileStore::Changes changes;
  if (files) changes = file_changes(step);
  const object::Time now = parts_.clock.now();
  SandboxRecord record = *record_;
  const std::string key = key_;
  std::optional<object::Time> expires = expires_;
  auto stored = transact(step, [&](storage::Transaction& transaction) -> Result<void> {
    bool write_record = step.record;
    if (step.used) {
      SW_TRY(const object::IdleAlarm alarm,
             object::touch_idle_alarm(transaction, now, parts_.options.idle_ttl));
      expires = alarm.expires;
      if (alarm.moved) record.last_used_ms = now.time_since_epoch().count();
      write_record = write_record || alarm.moved;
    }
    if (write_record) SW_CHECK_OK(transaction.put(kMetaTable, kRecordKey, encode(record)));
    if (step.key) SW_CHECK_OK(transaction.put(kMetaTable, kInterpretersKey, as_bytes(key)));
    if (step.context)
      SW_CHECK_OK(transaction.put(kContextsTable, step.context->id, encode(*step.context)));
    if (step.erased) {
      SW_CHECK_OK(erase_context(transaction, *step.erased));
    }
    return changes.write(transaction);
  });
  if (!stored.ok()) {
    forget();
    return std::move(stored).error().as_fault().while_doing("storing the run");
  }
  if (files) store_->written(std::move(changes));
  if (store_ && step.erased) store_->forget_steps(*step.erased);
  record_ = std::move(record);
  expires_ = expires;
  if (step.used) last_used_ = now;
  return {};
}

/// A run does not wait for the disk here: whoever uses the sandbox meanwhile need not wait for it. What
/// the Interpreter stores of it goes along if it can.
Result<void> Sandbox::transact(const Step& step, const storage::TransactionBody& body) {
  storage::CommitOptions options;
  if (step.run)
    options = {.durability = step.run->durability, .also = {}, .pending = &step.run->stored};
  if (!step.with) return storage_.transact(body, std::move(options));
  options.also.push_back({storage_, body});
  return step.with->object.transact(step.with->body, std::move(options));
}

void Sandbox::forget() {
  record_.reset();
  contexts_.clear();
  workspace_.reset();
  store_.reset();
  expires_.reset();
}

Result<Workspace*> Sandbox::files() {
  if (!workspace_) {
    auto loaded =
        FileStore::load(storage_, parts_.options.files, now_ns(), parts_.options.file_history);
    if (!loaded.ok()) return std::move(loaded).error().as_fault();
    store_ = *std::move(loaded);
    workspace_.emplace(store_->tree());
  }
  return &*workspace_;
}

Result<Workspace*> Sandbox::usable_files() {
  SW_CHECK_OK(load());
  if (parts_.options.file_api) return files();
  return Error{.code = ErrorCode::kNotSupported,
               .message = "The File API is disabled for this sandbox (SANDBOX_FILE_API=disabled)",
               .context = {{"feature", "files"}}};
}

Result<void> Sandbox::check_loads() {
  const MutexLock lock(mutex_);
  return load();
}

Result<void> Sandbox::check_files() {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(usable_files());
  return {};
}

// --- the rest

Result<void> Sandbox::set_env(const EnvChanges& changes) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(load());
  for (const auto& [name, value] : changes) SW_CHECK_OK(check_env(name, value.value_or("")));
  apply(record_->env, changes);
  record_->last_used_ms = now_ms();
  return store({.record = true, .used = true});
}

Result<void> Sandbox::set_durability(std::optional<Durability> durability) {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(load());
  record_->durability = durability;
  return store({.record = true, .used = true});
}

Result<SandboxInfo> Sandbox::info() {
  const MutexLock lock(mutex_);
  SW_CHECK_OK(load());
  SandboxInfo info;
  if (parts_.options.file_api) {
    SW_TRY(const Workspace* const workspace, files());
    info.files = workspace->tree()->usage().entries;
    info.bytes = workspace->tree()->usage().bytes;
  }
  SW_CHECK_OK(store({.used = true}));
  info.id = name_.id;
  info.record = *record_;
  info.record.last_used_ms =
      std::max(info.record.last_used_ms, last_used_.time_since_epoch().count());
  info.contexts = by_age();
  info.file_api = parts_.options.file_api;
  if (expires_) info.expires_at_ms = expires_->time_since_epoch().count();
  return info;
}

/// The bindings whose Interpreters may hold something of this sandbox. When its own records are
/// damaged, these are all.
std::set<std::string> Sandbox::bindings_in_use() {
  std::set<std::string> names;
  if (record_ || load().ok()) {
    for (const auto& [id, record] : contexts_) names.insert(record.binding);
    return names;
  }
  for (const auto& [name, worker] : parts_.bindings) names.insert(name);
  std::optional<std::string> key;
  (void)storage_.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(const auto stored, read_interpreter_key(reader));
    key = stored.value_or(old_interpreter_key(name_));
    return {};
  });
  if (key) key_ = *std::move(key);
  return names;
}

namespace {

/// For the exit handlers of a context after others have used up the time.
constexpr std::chrono::nanoseconds kExitHandlersWallMin = std::chrono::milliseconds(50);

}  // namespace

Result<void> Sandbox::destroy(RunEvents& events) {
  MutexLock lock(mutex_);
  ++ending_;  // no run begins until it is done
  std::vector<ContextRecord> contexts;
  if (load().ok()) contexts = by_age();
  std::set<std::string> bindings = bindings_in_use();  // while there are contexts
  {
    const Unlocked unlocked(mutex_);
    interrupt_all();
    const auto deadline = std::chrono::steady_clock::now() + kExitHandlersWallMax;
    for (const ContextRecord& context : contexts) {
      const std::chrono::nanoseconds left = deadline - std::chrono::steady_clock::now();
      (void)end_context(context.id, std::max(left, kExitHandlersWallMin), events);
    }
  }
  while (!runs_.empty()) no_runs_.wait(lock);
  turns_.wait_for_none(lock);
  bindings.merge(bindings_in_use());
  auto destroyed = destroy_all(bindings);
  --ending_;
  return destroyed;
}

Result<void> Sandbox::destroy_all(const std::set<std::string>& bindings) {
  const std::string key = key_;
  auto destroyed = storage_.destroy();
  forget();
  if (!destroyed.ok()) return std::move(destroyed).error().as_fault();
  // Whoever uses the sandbox from now on has Interpreters of another key. Best effort: those that cannot
  // be reached expire on their own.
  const Unlocked unlocked(mutex_);
  for (const std::string& name : bindings) {
    const auto binding = Binding::find(parts_.bindings, name);
    if (!binding.ok()) continue;
    if (const auto interpreter = binding->interpreter(key); interpreter.ok()) {
      (void)(*interpreter)->destroy();
    }
  }
  return {};
}

Result<void> Sandbox::on_alarm(object::Time /*scheduled*/) {
  MutexLock lock(mutex_);
  SW_CHECK_OK(load());
  object::IdleVerdict verdict = object::IdleVerdict::kDisabled;
  const object::Time noted{std::chrono::milliseconds(record_->last_used_ms)};
  const object::Time last_used = std::max(noted, last_used_);
  const auto checked = storage_.transact([&](storage::Transaction& transaction) -> Result<void> {
    SW_TRY(verdict, object::check_idle_alarm(transaction, parts_.clock.now(),
                                             parts_.options.idle_ttl, last_used));
    return {};
  });
  if (!checked.ok()) return Error(checked.error()).as_fault();
  if (verdict != object::IdleVerdict::kDestroy) return {};
  // However a run ends that is under way, there is an alarm to come.
  if (!runs_.empty() || !turns_.none()) return store({.used = true});
  ++ending_;  // no run begins until it is done
  auto destroyed = destroy_all(bindings_in_use());
  --ending_;
  return destroyed;
}

// --- copies

Result<StoredSandbox> Sandbox::stored() {
  SW_CHECK_OK(load());
  return StoredSandbox{.object = name_, .key = key_, .bindings = bindings_in_use()};
}

Result<void> Sandbox::copy_to(const storage::ObjectName& to, const storage::TransactionBody& body) {
  // Nobody stores anything of it meanwhile, so files and memory are of one moment.
  const MutexLock lock(mutex_);
  SW_TRY(const StoredSandbox from, stored());
  storage::Changes changes;
  SW_CHECK_OK(add_copy(parts_, from, to, body, changes));
  return parts_.storage->change(changes);
}

Result<void> Sandbox::become(const StoredSandbox& other, const storage::TransactionBody& body) {
  MutexLock lock(mutex_);
  ++ending_;  // no run begins until it is done
  {
    const Unlocked unlocked(mutex_);
    interrupt_all();
  }
  while (!runs_.empty()) no_runs_.wait(lock);
  turns_.wait_for_none(lock);
  const auto replaced = replace_by(other, body);
  forget();
  --ending_;
  return replaced;
}

Result<void> Sandbox::replace_by(const StoredSandbox& other, const storage::TransactionBody& body) {
  storage::Changes changes;
  SW_TRY(const StoredSandbox now, stored());
  SW_TRY(changes.removed, interpreter_objects(parts_, now));
  SW_CHECK_OK(add_copy(parts_, other, name_, body, changes));
  return parts_.storage->change(changes);
}

// --- files

Error Sandbox::file_failure(std::string_view operation, std::string_view path, Error error) {
  const bool kept = error.code == ErrorCode::kPermission || error.code == ErrorCode::kNoSpace;
  if (operation == "directory.create" && !kept) error.code = ErrorCode::kFileSystem;
  error.context.emplace("path", path);
  error.context.emplace("operation", operation);
  return error;
}

}  // namespace sw::sandbox
