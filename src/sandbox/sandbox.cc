// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/messages.h"
#include "sandbox/names.h"
#include "sandbox_workers/runtime/answers.h"

namespace sw::sandbox {

namespace {

constexpr storage::TableId kMetaTable = 0x01;
constexpr storage::TableId kContextsTable = 0x02;
constexpr std::string_view kRecordKey = "sandbox";
constexpr std::string_view kInterpretersKey = "interpreters";

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

/// Has an Interpreter make a context. A name that the caller chose may have been left behind there
/// when we were interrupted before keeping it, or when the Interpreter could not be reached to
/// delete it.
Result<runtime::ContextInfo> make_anew(runtime::Interpreter& interpreter, std::string_view id,
                                       bool chosen,
                                       const std::function<Result<runtime::ContextInfo>()>& make) {
  auto made = make();
  if (made.ok() || !chosen || info_of(made.error().code).http_status >= 500) return made;
  (void)interpreter.remove(id);
  return make();
}

}  // namespace

storage::Schema Sandbox::schema() { return {.steps = {drop_embedded_contexts}}; }

Sandbox::Sandbox(storage::ObjectStorage& storage, const runtime::Bindings& bindings,
                 object::Clock& clock, const SandboxOptions& options)
    : storage_(storage), bindings_(bindings), clock_(clock), options_(options) {}

std::int64_t Sandbox::now_ms() const { return clock_.now().time_since_epoch().count(); }

std::uint64_t Sandbox::now_ns() const { return static_cast<std::uint64_t>(now_ms()) * 1'000'000; }

// --- what is stored, and the copy of it

Result<std::optional<std::string>> Sandbox::stored_key(storage::Reader& reader) const {
  SW_TRY(const auto bytes, reader.get(kMetaTable, kInterpretersKey));
  if (!bytes) return std::optional<std::string>();
  if (runtime::is_interpreter_key(as_text(*bytes)))
    return std::optional<std::string>(as_text(*bytes));
  return Error{ErrorCode::kCorrupt, "the key of the sandbox's interpreters is damaged", 0};
}

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
    SW_TRY(key, stored_key(reader));
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
  else key_ = is_new ? new_interpreter_key() : old_interpreter_key(storage_.name());
  return is_new ? store({.record = true, .key = true}) : Result<void>();
}

Result<void> Sandbox::store(const Step& step) {
  FileStore::Changes changes;
  if (step.files && store_) changes = store_->changes();
  const object::Time now = clock_.now();
  SandboxRecord record = *record_;
  std::optional<object::Time> expires = expires_;
  auto stored = storage_.transact([&](storage::Transaction& transaction) -> Result<void> {
    bool write_record = step.record;
    if (step.used) {
      SW_TRY(const object::IdleAlarm alarm,
             object::touch_idle_alarm(transaction, now, options_.idle_ttl));
      expires = alarm.expires;
      if (alarm.moved) record.last_used_ms = now.time_since_epoch().count();
      write_record = write_record || alarm.moved;
    }
    if (write_record) SW_CHECK_OK(transaction.put(kMetaTable, kRecordKey, encode(record)));
    if (step.key) SW_CHECK_OK(transaction.put(kMetaTable, kInterpretersKey, as_bytes(key_)));
    if (step.context)
      SW_CHECK_OK(transaction.put(kContextsTable, step.context->id, encode(*step.context)));
    if (step.erased) SW_CHECK_OK(transaction.erase(kContextsTable, *step.erased));
    return changes.write(transaction);
  });
  if (!stored.ok()) {
    forget();
    return std::move(stored).error().as_fault().while_doing("storing what was done");
  }
  if (step.files && store_) store_->written(std::move(changes));
  record_ = std::move(record);
  expires_ = expires;
  if (step.used) last_used_ = now;
  return {};
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
    auto loaded = FileStore::load(storage_, options_.files, now_ns());
    if (!loaded.ok()) return std::move(loaded).error().as_fault();
    store_ = *std::move(loaded);
    workspace_.emplace(store_->tree());
  }
  return &*workspace_;
}

Result<Workspace*> Sandbox::usable_files() {
  SW_CHECK_OK(load());
  if (options_.file_api) return files();
  return Error{.code = ErrorCode::kNotSupported,
               .message = "The File API is disabled for this sandbox (SANDBOX_FILE_API=disabled)",
               .context = {{"feature", "files"}}};
}

// --- contexts

std::vector<ContextRecord> Sandbox::by_age() const {
  std::vector<ContextRecord> records;
  for (const auto& [id, record] : contexts_) records.push_back(record);
  std::ranges::sort(records, {}, [](const ContextRecord& record) {
    return std::pair(record.created_ms, record.number);
  });
  return records;
}

Result<ContextRecord*> Sandbox::find(std::string_view id) {
  SW_CHECK_OK(load());
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) return runtime::context_not_found(id);
  return &found->second;
}

ContextRecord* Sandbox::oldest_of(std::string_view binding) {
  for (const ContextRecord& record : by_age()) {
    if (record.binding == binding) return &contexts_.at(record.id);
  }
  return nullptr;
}

Result<std::vector<ContextRecord>> Sandbox::contexts() {
  SW_CHECK_OK(load());
  SW_CHECK_OK(store({.used = true}));
  return by_age();
}

Result<ContextRecord> Sandbox::context(std::string_view id) {
  SW_TRY(const ContextRecord* const context, find(id));
  return *context;
}

Result<void> Sandbox::room_for_context() {
  if (contexts_.size() < options_.contexts_max) return {};
  return runtime::refusal(
      fmt::format("Cannot create more than {} code contexts", options_.contexts_max));
}

Result<ContextRecord> Sandbox::create_context(const NewContext& wanted) {
  SW_CHECK_OK(load());
  if (wanted.binding.empty()) return runtime::refusal("binding is required");
  if (wanted.id) SW_CHECK_OK(runtime::check_context_id(*wanted.id));
  const auto cwd = Workspace::normalize(wanted.cwd);
  if (!cwd.ok()) return runtime::refusal(cwd.error().message);
  if (wanted.id && contexts_.contains(*wanted.id)) {
    return runtime::refusal(fmt::format("Code context '{}' already exists", *wanted.id));
  }
  SW_CHECK_OK(room_for_context());
  SW_TRY(const Binding binding, Binding::find(bindings_, wanted.binding));
  SW_TRY(const runtime::WorkerInfo info, binding.probe());
  if (!info.contexts) {
    return runtime::refusal(fmt::format("Code contexts are not supported by binding '{}' ({})",
                                        binding.name(), info.language));
  }
  NewContext normalized = wanted;
  normalized.cwd = *cwd;
  SW_TRY(const ContextRecord* const context, create(binding, info, normalized));
  return *context;
}

ContextRecord Sandbox::new_record(std::string id) {
  ContextRecord record;
  record.id = std::move(id);
  for (const auto& [other, known] : contexts_)
    record.number = std::max(record.number, known.number + 1);
  record.created_ms = record.last_used_ms = now_ms();
  return record;
}

Result<ContextRecord*> Sandbox::create(const Binding& binding, const runtime::WorkerInfo& info,
                                       const NewContext& wanted) {
  ContextRecord record = new_record(wanted.id.value_or(new_context_id()));
  SW_TRY(const auto interpreter, binding.interpreter(key_));
  SW_CHECK_OK(binding.answer(make_anew(*interpreter, record.id, wanted.id.has_value(), [&] {
    return interpreter->create(record.id, wanted.cwd);
  })));
  record.binding = binding.name();
  record.language = info.language;
  record.engine = info.engine;
  record.cwd = wanted.cwd;
  record.env = wanted.env;
  record.interpreter_executions = 0;
  return keep(std::move(record));
}

Result<ContextRecord*> Sandbox::keep(ContextRecord record) {
  SW_CHECK_OK(store({.context = &record, .used = true}));
  return &contexts_.insert_or_assign(record.id, std::move(record)).first->second;
}

Result<void> Sandbox::delete_context(std::string_view id) {
  SW_TRY(const ContextRecord* const context, find(id));
  const std::string name = context->id;
  // Best effort: what cannot be reached now expires on its own.
  (void)ask<void>(*context,
                  [&](runtime::Interpreter& interpreter) { return interpreter.remove(name); });
  SW_CHECK_OK(store({.erased = name, .used = true}));
  contexts_.erase(name);
  return {};
}

// --- runs

Env Sandbox::merged_env(const ContextRecord* context, const EnvChanges& call) const {
  Env env = record_->env;
  if (context) {
    for (const auto& [name, value] : context->env) env[name] = value;
  }
  apply(env, call);
  return env;
}

Result<Ran> Sandbox::execute(const Cell& cell, RunEvents& output) {
  SW_CHECK_OK(load());
  SW_CHECK_OK(runtime::check_code(cell.code, options_.code_bytes_max));
  ContextRecord* context = nullptr;
  if (cell.context_id) {
    SW_TRY(context, find(*cell.context_id));
  } else if (!cell.binding) {
    return runtime::refusal("Pass a context or a binding");
  } else if (context = oldest_of(*cell.binding); !context) {
    SW_TRY(const Binding binding, Binding::find(bindings_, *cell.binding));
    SW_TRY(const runtime::WorkerInfo info, binding.probe());
    if (!info.contexts) return run_once(binding, info, cell, output);
    SW_CHECK_OK(room_for_context());
    SW_TRY(context, create(binding, info, {.binding = binding.name(), .id = {}, .env = {}}));
  }
  return run_in(*context, cell, output);
}

Result<Ran> Sandbox::run_once(const Binding& binding, const runtime::WorkerInfo& info,
                              const Cell& cell, RunEvents& output) {
  Run request;
  request.code = cell.code;
  request.language = cell.alias;
  request.file_name = cell.file_name;
  const Env env = merged_env(nullptr, cell.env);
  request.env.assign(env.begin(), env.end());
  request.stdin_data = cell.stdin_data;
  request.args = cell.args;
  request.limits = cell.limits;
  request.cancel = cell.cancel;
  SW_CHECK_OK(validate(request));
  Ran ran{.language = info.language,
          .engine = info.engine,
          .response = {},
          .context = {},
          .expires_at_ms = {}};
  SW_TRY(ran.response.outcome, binding.answer(binding.worker().run(request, output)));
  SW_CHECK_OK(store({.used = true}));
  return ran;
}

runtime::ExecuteArgs Sandbox::args_of(const ContextRecord& context, const Cell& cell) const {
  runtime::ExecuteArgs args;
  args.context_id = context.id;
  args.code = cell.code;
  args.alias = cell.alias;
  args.file_name = cell.file_name;
  const Env env = merged_env(&context, cell.env);
  args.env.assign(env.begin(), env.end());
  args.executions_known = context.interpreter_executions;
  args.stdin_data = cell.stdin_data;
  args.args = cell.args;
  args.limits = cell.limits;
  args.after_error = cell.on_error.value_or(cell.profile.value_or(options_.profile).after_error);
  args.cancel = cell.cancel;
  return args;
}

Result<Ran> Sandbox::run_in(ContextRecord& context, const Cell& cell, RunEvents& output) {
  SW_TRY(const Binding binding, Binding::find(bindings_, context.binding));
  SW_TRY(const auto interpreter, binding.interpreter(key_));
  runtime::ExecuteArgs args = args_of(context, cell);
  Workspace* workspace = nullptr;
  if (options_.file_api) {
    SW_TRY(workspace, files());
    args.workspace = workspace->manifest();
    args.workspace.limits = options_.files;
  } else {
    args.workspace.disabled = true;
  }
  const runtime::GetFiles get_files = [&](const std::vector<std::string>& paths) {
    std::vector<WorkspaceFile> found;
    for (const std::string& path : paths) {
      if (!workspace) break;
      if (auto file = workspace->read_bytes(path); file.ok()) found.push_back(*std::move(file));
    }
    return found;
  };
  auto response = binding.answer(interpreter->execute(std::move(args), get_files, output));
  if (!response.ok()) {
    if (response.error().code == ErrorCode::kContextNotFound) {
      const std::string id = context.id;
      SW_CHECK_OK(store({.erased = id}));
      contexts_.erase(id);
    }
    return std::move(response).error();
  }
  SW_CHECK_OK(take_over(context, *response));
  Ran ran{.language = context.language,
          .engine = context.engine,
          .response = *std::move(response),
          .context = context,
          .expires_at_ms = {}};
  if (expires_) ran.expires_at_ms = expires_->time_since_epoch().count();
  return ran;
}

Result<void> Sandbox::take_over(ContextRecord& context, const runtime::ExecuteResponse& response) {
  if (options_.file_api) {
    if (auto applied = workspace_->apply_diff(response.workspace, now_ns()); !applied.ok()) {
      const Error& error = applied.error();
      forget();  // some of it may be in the tree
      return Error{ErrorCode::kBadReply,
                   fmt::format("the Interpreter returned an invalid workspace: {}", error.message),
                   0};
    }
  }
  ContextRecord after = context;
  ++after.executions;
  after.interpreter_executions = response.executions;
  after.last_used_ms = now_ms();
  after.cwd = response.cwd;
  after.snapshot = response.snapshot;
  SW_CHECK_OK(store({.files = options_.file_api, .context = &after, .used = true}));
  context = std::move(after);
  return {};
}

// --- versions

template <class T>
Result<T> Sandbox::ask(const ContextRecord& context,
                       const std::function<Result<T>(runtime::Interpreter&)>& question) {
  SW_TRY(const Binding binding, Binding::find(bindings_, context.binding));
  SW_TRY(const auto interpreter, binding.interpreter(key_));
  return binding.answer(question(*interpreter));
}

namespace {

/// What an Interpreter says of a context after something other than a run.
void take_over_versions(ContextRecord& record, const runtime::ContextInfo& said) {
  record.interpreter_executions = said.executions;
  record.snapshot = said.snapshot;
  record.cwd = said.cwd;
}

}  // namespace

Result<ContextRecord> Sandbox::fork(std::string_view id, const std::optional<std::string>& new_id) {
  SW_TRY(const ContextRecord* const original, find(id));
  if (new_id) SW_CHECK_OK(runtime::check_context_id(*new_id));
  if (new_id && contexts_.contains(*new_id)) {
    return runtime::refusal(fmt::format("Code context '{}' already exists", *new_id));
  }
  SW_CHECK_OK(room_for_context());
  ContextRecord record = new_record(new_id.value_or(new_context_id()));
  SW_TRY(const runtime::ContextInfo said,
         ask<runtime::ContextInfo>(*original, [&](runtime::Interpreter& interpreter) {
           return make_anew(interpreter, record.id, new_id.has_value(),
                            [&] { return interpreter.fork(original->id, record.id); });
         }));
  record.binding = original->binding;
  record.language = original->language;
  record.engine = original->engine;
  record.env = original->env;
  record.executions = said.executions;
  take_over_versions(record, said);
  SW_TRY(const ContextRecord* const kept, keep(std::move(record)));
  return *kept;
}

Result<void> Sandbox::rewound(
    std::string_view id,
    const std::function<Result<runtime::ContextInfo>(runtime::Interpreter&)>& question) {
  SW_TRY(ContextRecord* const context, find(id));
  SW_TRY(const runtime::ContextInfo said, ask(*context, question));
  ContextRecord after = *context;
  take_over_versions(after, said);
  SW_CHECK_OK(store({.context = &after, .used = true}));
  *context = std::move(after);
  return {};
}

Result<void> Sandbox::undo(std::string_view id, std::uint32_t runs) {
  return rewound(id, [&](runtime::Interpreter& interpreter) { return interpreter.undo(id, runs); });
}

Result<void> Sandbox::restore_checkpoint(std::string_view id, std::string_view name) {
  return rewound(id, [&](runtime::Interpreter& interpreter) {
    return interpreter.restore_checkpoint(id, name);
  });
}

Result<void> Sandbox::add_checkpoint(std::string_view id, std::string_view name) {
  SW_TRY(const ContextRecord* const context, find(id));
  SW_CHECK_OK(ask<runtime::Checkpoint>(*context, [&](runtime::Interpreter& interpreter) {
    return interpreter.add_checkpoint(id, name);
  }));
  return store({.used = true});
}

Result<void> Sandbox::remove_checkpoint(std::string_view id, std::string_view name) {
  SW_TRY(const ContextRecord* const context, find(id));
  SW_CHECK_OK(ask<void>(*context, [&](runtime::Interpreter& interpreter) {
    return interpreter.remove_checkpoint(id, name);
  }));
  return store({.used = true});
}

Result<std::vector<runtime::Checkpoint>> Sandbox::checkpoints(std::string_view id) {
  using Checkpoints = std::vector<runtime::Checkpoint>;
  SW_TRY(const ContextRecord* const context, find(id));
  SW_TRY(Checkpoints known, ask<Checkpoints>(*context, [&](runtime::Interpreter& interpreter) {
           return interpreter.checkpoints(id);
         }));
  SW_CHECK_OK(store({.used = true}));
  return known;
}

// --- the rest

Result<void> Sandbox::set_env(const EnvChanges& changes) {
  SW_CHECK_OK(load());
  for (const auto& [name, value] : changes) {
    if (!is_identifier(name)) return runtime::refusal(fmt::format("Invalid envVars key: {}", name));
  }
  apply(record_->env, changes);
  record_->last_used_ms = now_ms();
  return store({.record = true, .used = true});
}

Result<SandboxInfo> Sandbox::info() {
  SW_CHECK_OK(load());
  SandboxInfo info;
  if (options_.file_api) {
    SW_TRY(const Workspace* const workspace, files());
    info.files = workspace->tree()->usage().entries;
    info.bytes = workspace->tree()->usage().bytes;
  }
  SW_CHECK_OK(store({.used = true}));
  info.id = storage_.name().id;
  info.record = *record_;
  info.record.last_used_ms =
      std::max(info.record.last_used_ms, last_used_.time_since_epoch().count());
  info.contexts = by_age();
  info.file_api = options_.file_api;
  if (expires_) info.expires_at_ms = expires_->time_since_epoch().count();
  return info;
}

Result<void> Sandbox::destroy() {
  // Best effort: Interpreters that cannot be reached expire on their own. When our own records are
  // damaged, all may hold something of ours.
  std::set<std::string> names;
  if (record_ || load().ok()) {
    for (const auto& [id, record] : contexts_) names.insert(record.binding);
  } else {
    for (const auto& [name, worker] : bindings_) names.insert(name);
    (void)storage_.read([&](storage::Reader& reader) -> Result<void> {
      SW_TRY(const auto key, stored_key(reader));
      key_ = key.value_or(old_interpreter_key(storage_.name()));
      return {};
    });
  }
  for (const std::string& name : names) {
    const auto binding = Binding::find(bindings_, name);
    if (!binding.ok()) continue;
    if (const auto interpreter = binding->interpreter(key_); interpreter.ok())
      (void)(*interpreter)->destroy();
  }
  auto destroyed = storage_.destroy();
  forget();
  if (!destroyed.ok()) return std::move(destroyed).error().as_fault();
  return {};
}

Result<void> Sandbox::alarm() {
  SW_CHECK_OK(load());
  object::IdleVerdict verdict = object::IdleVerdict::kDisabled;
  const object::Time noted{std::chrono::milliseconds(record_->last_used_ms)};
  const auto checked = storage_.transact([&](storage::Transaction& transaction) -> Result<void> {
    SW_TRY(verdict, object::check_idle_alarm(transaction, clock_.now(), options_.idle_ttl,
                                             std::max(noted, last_used_)));
    return {};
  });
  if (!checked.ok()) return Error(checked.error()).as_fault();
  return verdict == object::IdleVerdict::kDestroy ? destroy() : Result<void>();
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
