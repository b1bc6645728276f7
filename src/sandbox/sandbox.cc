// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "sandbox/names.h"

namespace sw::sandbox {

namespace json = boost::json;

namespace {

constexpr storage::TableId kMetaTable = 0x01;
constexpr storage::TableId kContextsTable = 0x02;
constexpr std::string_view kRecordKey = "sandbox";
constexpr std::size_t kContextIdBytesMax = 128;

// Before version 1 a sandbox held the memory of its contexts itself, three tables for each language.
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

bool is_success(const runtime::Response& response) { return response.status >= 200 && response.status < 300; }

Failure relay(runtime::Response response) {
  runtime::ErrorBody body = runtime::parse_error(response);
  return {.body = std::move(body), .relayed = std::move(response)};
}

bool is_context_id(std::string_view id) {
  return !id.empty() && id.size() <= kContextIdBytesMax && id.find('\0') == std::string_view::npos;
}

}  // namespace

storage::Schema Sandbox::schema() { return {.steps = {drop_embedded_contexts}}; }

Sandbox::Sandbox(storage::ObjectStorage& storage, const runtime::Bindings& bindings, object::Clock& clock,
                 const SandboxOptions& options)
    : storage_(storage),
      bindings_(bindings),
      clock_(clock),
      options_(options),
      key_(interpreter_key(storage.name())) {}

std::int64_t Sandbox::now_ms() const { return clock_.now().time_since_epoch().count(); }

std::uint64_t Sandbox::now_ns() const { return static_cast<std::uint64_t>(now_ms()) * 1'000'000; }

// --- what is stored, and the copy of it

Answer<Done> Sandbox::load() {
  if (record_) return Done{};
  std::optional<SandboxRecord> record;
  Contexts contexts;
  SW_CHECK_OK(answer(storage_.read([&](storage::Reader& reader) -> Result<void> {
    record.reset();
    contexts.clear();
    SW_TRY(const auto bytes, reader.get(kMetaTable, kRecordKey));
    if (bytes) {
      SW_TRY(record, decode_sandbox_record(*bytes));
    }
    return reader.scan({.table = kContextsTable, .from = {}, .to = {}}, storage::Order::kAscending,
                       [&](std::string_view id, BytesView value) -> Result<storage::Scan> {
                         SW_TRY(ContextRecord context, decode_context_record(id, value));
                         contexts.emplace(id, std::move(context));
                         return storage::Scan::kContinue;
                       });
  })));
  const bool is_new = !record;
  if (is_new) record = SandboxRecord{.created_ms = now_ms(), .last_used_ms = now_ms(), .env = {}};
  record_ = std::move(record);
  contexts_ = std::move(contexts);
  return is_new ? store({.record = true}) : Answer<Done>(Done{});
}

Answer<Done> Sandbox::store(const Step& step) {
  FileStore::Changes changes;
  if (step.files && store_) changes = store_->changes();
  const object::Time now = clock_.now();
  SandboxRecord record = *record_;
  std::optional<object::Time> expires = expires_;
  const auto stored = storage_.transact([&](storage::Transaction& transaction) -> Result<void> {
    bool write_record = step.record;
    if (step.used) {
      SW_TRY(const object::IdleAlarm alarm, object::touch_idle_alarm(transaction, now, options_.idle_ttl));
      expires = alarm.expires;
      if (alarm.moved) record.last_used_ms = now.time_since_epoch().count();
      write_record = write_record || alarm.moved;
    }
    if (write_record) SW_CHECK_OK(transaction.put(kMetaTable, kRecordKey, encode(record)));
    if (step.context) SW_CHECK_OK(transaction.put(kContextsTable, step.context->id, encode(*step.context)));
    if (step.erased) SW_CHECK_OK(transaction.erase(kContextsTable, *step.erased));
    return changes.write(transaction);
  });
  if (!stored.ok()) {
    forget();
    return host_failure(Error(stored.error()).while_doing("storing what was done"));
  }
  if (step.files && store_) store_->written(std::move(changes));
  record_ = std::move(record);
  expires_ = expires;
  if (step.used) last_used_ = now;
  return Done{};
}

void Sandbox::forget() {
  record_.reset();
  contexts_.clear();
  workspace_.reset();
  store_.reset();
  expires_.reset();
}

Answer<Workspace*> Sandbox::files() {
  if (!workspace_) {
    SW_TRY(store_, answer(FileStore::load(storage_, options_.files, now_ns())));
    workspace_.emplace(store_->tree());
  }
  return &*workspace_;
}

Answer<Workspace*> Sandbox::usable_files() {
  SW_CHECK_OK(load());
  if (options_.file_api) return files();
  return Failure{.body = {.code = "NOT_SUPPORTED",
                          .message = "The File API is disabled for this sandbox (SANDBOX_FILE_API=disabled)",
                          .context = {{"feature", "files"}},
                          .status = 403}};
}

// --- contexts

std::vector<ContextRecord> Sandbox::by_age() const {
  std::vector<ContextRecord> records;
  for (const auto& [id, record] : contexts_) records.push_back(record);
  std::ranges::sort(records, {},
                    [](const ContextRecord& record) { return std::pair(record.created_ms, record.number); });
  return records;
}

Answer<ContextRecord*> Sandbox::find(std::string_view id) {
  SW_CHECK_OK(load());
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) return Failure{.body = runtime::context_not_found(id)};
  return &found->second;
}

ContextRecord* Sandbox::oldest_of(std::string_view binding) {
  for (const ContextRecord& record : by_age()) {
    if (record.binding == binding) return &contexts_.at(record.id);
  }
  return nullptr;
}

Answer<std::vector<ContextRecord>> Sandbox::contexts() {
  SW_CHECK_OK(load());
  SW_CHECK_OK(store({.used = true}));
  return by_age();
}

Answer<ContextRecord> Sandbox::context(std::string_view id) {
  SW_TRY(const ContextRecord* const context, find(id));
  return *context;
}

Answer<Done> Sandbox::room_for_context() {
  if (contexts_.size() < options_.contexts_max) return Done{};
  return refusal(fmt::format("Cannot create more than {} code contexts", options_.contexts_max));
}

Answer<ContextRecord> Sandbox::create_context(const NewContext& wanted) {
  SW_CHECK_OK(load());
  if (wanted.binding.empty()) return refusal("binding is required");
  const auto cwd = Workspace::normalize(wanted.cwd);
  if (!cwd.ok()) return refusal(cwd.error().message);
  if (wanted.id && !is_context_id(*wanted.id)) {
    return refusal("id must be a non-empty string of at most 128 characters");
  }
  if (wanted.id && contexts_.contains(*wanted.id)) {
    return refusal(fmt::format("Code context '{}' already exists", *wanted.id));
  }
  SW_CHECK_OK(room_for_context());
  SW_TRY(const Binding binding, Binding::find(bindings_, wanted.binding));
  SW_TRY(const BindingInfo info, binding.probe());
  if (!info.contexts) {
    return refusal(
        fmt::format("Code contexts are not supported by binding '{}' ({})", binding.name(), info.language));
  }
  NewContext normalized = wanted;
  normalized.cwd = *cwd;
  SW_TRY(const ContextRecord* const context, create(binding, info, normalized));
  return *context;
}

ContextRecord Sandbox::new_record(std::string id) {
  ContextRecord record;
  record.id = std::move(id);
  for (const auto& [other, known] : contexts_) record.number = std::max(record.number, known.number + 1);
  record.created_ms = record.last_used_ms = now_ms();
  return record;
}

Answer<ContextRecord*> Sandbox::create(const Binding& binding, const BindingInfo& info, const NewContext& wanted) {
  ContextRecord record = new_record(wanted.id.value_or(new_context_id()));
  SW_CHECK_OK(announce(binding, wanted, record.id));
  record.binding = binding.name();
  record.language = info.language;
  record.engine = info.engine;
  record.cwd = wanted.cwd;
  record.env = wanted.env;
  record.interpreter_executions = 0;
  return keep(std::move(record));
}

Answer<ContextRecord*> Sandbox::keep(ContextRecord record) {
  SW_CHECK_OK(store({.context = &record, .used = true}));
  return &contexts_.insert_or_assign(record.id, std::move(record)).first->second;
}

/// Has the Interpreter make the context.
Answer<Done> Sandbox::announce(const Binding& binding, const NewContext& wanted, const std::string& id) {
  const std::string path = fmt::format("/interpreters/{}/contexts", key_);
  const std::string body = json::serialize(json::object{{"id", id}, {"cwd", wanted.cwd}});
  SW_TRY(runtime::Response response, binding.request("POST", path, body));
  if (is_success(response)) return Done{};
  // A name that the caller chose may have been left behind there when we were interrupted before keeping it, or
  // when the Interpreter could not be reached to delete it.
  if (wanted.id && response.status < 500) {
    (void)binding.request("DELETE", context_path(id, ""));
    SW_TRY(response, binding.request("POST", path, body));
    if (is_success(response)) return Done{};
  }
  return relay(std::move(response));
}

std::string Sandbox::context_path(std::string_view id, std::string_view sub_path) const {
  return fmt::format("/interpreters/{}/contexts/{}{}", key_, runtime::percent_encoded(id), sub_path);
}

Answer<Done> Sandbox::delete_context(std::string_view id) {
  SW_TRY(const ContextRecord* const context, find(id));
  const std::string name = context->id;
  // Best effort: what cannot be reached now expires on its own.
  if (const auto binding = Binding::find(bindings_, context->binding); binding.ok()) {
    (void)binding->request("DELETE", context_path(name, ""));
  }
  SW_CHECK_OK(store({.erased = name, .used = true}));
  contexts_.erase(name);
  return Done{};
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

Answer<RunAnswer> Sandbox::execute(const Cell& cell, wasi::OutputSink& output) {
  SW_CHECK_OK(load());
  if (auto refused = runtime::check_code(cell.code, options_.code_bytes_max)) {
    return Failure{.body = *std::move(refused)};
  }
  ContextRecord* context = nullptr;
  if (cell.context_id) {
    SW_TRY(context, find(*cell.context_id));
  } else if (!cell.binding) {
    return refusal("Pass a context or a binding");
  } else if (context = oldest_of(*cell.binding); !context) {
    SW_TRY(const Binding binding, Binding::find(bindings_, *cell.binding));
    SW_TRY(const BindingInfo info, binding.probe());
    if (!info.contexts) return run_once(binding, cell);
    SW_CHECK_OK(room_for_context());
    SW_TRY(context, create(binding, info, {.binding = binding.name(), .id = {}, .env = {}}));
  }
  SW_TRY(Ran ran, run_in(*context, cell, output));
  return RunAnswer(std::move(ran));
}

Answer<RunAnswer> Sandbox::run_once(const Binding& binding, const Cell& cell) {
  json::object env;
  for (const auto& [name, value] : merged_env(nullptr, cell.env)) env[name] = value;
  const json::object body = {{"code", cell.code}, {"envVars", std::move(env)}};
  SW_TRY(runtime::Response response, binding.request("POST", "/execute", json::serialize(body), cell.cancel));
  SW_CHECK_OK(store({.used = true}));
  return RunAnswer(runtime::json_text_response(response.status, std::move(response.body)));
}

Answer<Ran> Sandbox::run_in(ContextRecord& context, const Cell& cell, wasi::OutputSink& output) {
  SW_TRY(const Binding binding, Binding::find(bindings_, context.binding));
  runtime::ExecuteArgs args;
  args.context_id = context.id;
  args.code = cell.code;
  args.alias = cell.alias;
  const Env env = merged_env(&context, cell.env);
  args.env.assign(env.begin(), env.end());
  args.executions_known = context.interpreter_executions;
  args.stdin_data = cell.stdin_data;
  args.args = cell.args;
  args.limits = cell.limits;
  args.after_error = cell.on_error.value_or(cell.profile.value_or(options_.profile).after_error);
  args.cancel = cell.cancel;
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

  auto called = binding.worker().execute_in_context(key_, args, get_files, output);
  if (!called.ok()) {
    const Error& error = called.error();
    return Failure{.body = runtime::internal_error(
                       fmt::format("Binding '{}' failed: {}", context.binding, error.message), 502),
                   .cause = error};
  }
  if (auto* refused = std::get_if<runtime::ErrorBody>(&*called)) {
    if (refused->code == "CONTEXT_NOT_FOUND") {
      const std::string id = context.id;
      SW_CHECK_OK(store({.erased = id}));
      contexts_.erase(id);
    }
    return Failure{.body = std::move(*refused)};
  }
  auto& response = std::get<runtime::ExecuteResponse>(*called);
  SW_CHECK_OK(take_over(context, response));
  Ran ran{.context = context, .response = std::move(response), .expires_at_ms = {}};
  if (expires_) ran.expires_at_ms = expires_->time_since_epoch().count();
  return ran;
}

Answer<Done> Sandbox::take_over(ContextRecord& context, const runtime::ExecuteResponse& response) {
  if (options_.file_api) {
    if (auto applied = workspace_->apply_diff(response.workspace, now_ns()); !applied.ok()) {
      const Error& error = applied.error();
      forget();  // some of it may be in the tree
      return Failure{.body = runtime::internal_error(
                         fmt::format("the Interpreter returned an invalid workspace: {}", error.message)),
                     .cause = error};
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
  return Done{};
}

// --- versions

Answer<json::value> Sandbox::ask(const ContextRecord& context, std::string method, std::string_view sub_path,
                                 const json::value& body) {
  SW_TRY(const Binding binding, Binding::find(bindings_, context.binding));
  const std::string text = body.is_null() ? std::string() : json::serialize(body);
  SW_TRY(runtime::Response response, binding.request(std::move(method), context_path(context.id, sub_path), text));
  if (!is_success(response)) return relay(std::move(response));
  json::error_code failed;
  json::value value = json::parse(response.body.empty() ? "{}" : response.body, failed);
  if (failed || !value.is_object()) {
    return Failure{.body = runtime::internal_error(
                       fmt::format("Binding '{}' returned an invalid answer", context.binding), 502)};
  }
  return value;
}

namespace {

/// What an Interpreter says of a context after something other than a run.
void take_over_versions(ContextRecord& record, const json::value& said) {
  record.interpreter_executions.reset();  // compared again from the next run on, unless it is said
  const json::object& object = said.as_object();
  if (const json::value* count = object.if_contains("executions"); count && count->is_number()) {
    json::error_code failed;
    const auto number = count->to_number<std::uint64_t>(failed);
    if (!failed) record.interpreter_executions = number;
  }
  if (const json::value* snapshot = object.if_contains("snapshot")) {
    record.snapshot = runtime::parse_snapshot(*snapshot);
  }
  if (const json::value* cwd = object.if_contains("cwd"); cwd && cwd->is_string()) {
    record.cwd = std::string(cwd->as_string());
  }
}

}  // namespace

Answer<ContextRecord> Sandbox::fork(std::string_view id, const std::optional<std::string>& new_id) {
  SW_TRY(const ContextRecord* const original, find(id));
  if (new_id && !is_context_id(*new_id)) {
    return refusal("id must be a non-empty string of at most 128 characters");
  }
  if (new_id && contexts_.contains(*new_id)) {
    return refusal(fmt::format("Code context '{}' already exists", *new_id));
  }
  SW_CHECK_OK(room_for_context());
  SW_TRY(const Binding binding, Binding::find(bindings_, original->binding));
  ContextRecord record = new_record(new_id.value_or(new_context_id()));
  auto forked = ask(*original, "POST", "/fork", json::object{{"id", record.id}});
  if (new_id && !forked.ok() && forked.error().body.status < 500) {
    // As for a new context: the name may have been left behind there.
    (void)binding.request("DELETE", context_path(record.id, ""));
    forked = ask(*original, "POST", "/fork", json::object{{"id", record.id}});
  }
  SW_TRY(const json::value said, std::move(forked));
  record.binding = original->binding;
  record.language = original->language;
  record.engine = original->engine;
  record.cwd = original->cwd;
  record.env = original->env;
  record.executions = original->executions;
  take_over_versions(record, said);
  if (record.interpreter_executions) record.executions = *record.interpreter_executions;
  SW_TRY(const ContextRecord* const kept, keep(std::move(record)));
  return *kept;
}

Answer<Done> Sandbox::rewound(std::string_view id, std::string_view sub_path, const json::value& body) {
  SW_TRY(ContextRecord* const context, find(id));
  SW_TRY(const json::value said, ask(*context, "POST", sub_path, body));
  ContextRecord after = *context;
  take_over_versions(after, said);
  SW_CHECK_OK(store({.context = &after, .used = true}));
  *context = std::move(after);
  return Done{};
}

Answer<Done> Sandbox::undo(std::string_view id, std::uint32_t runs) {
  return rewound(id, "/undo", json::object{{"runs", runs}});
}

Answer<Done> Sandbox::restore_checkpoint(std::string_view id, std::string_view name) {
  return rewound(id, "/restore", json::object{{"name", name}});
}

Answer<Done> Sandbox::add_checkpoint(std::string_view id, std::string_view name) {
  SW_TRY(const ContextRecord* const context, find(id));
  SW_CHECK_OK(ask(*context, "POST", "/checkpoints", json::object{{"name", name}}));
  return store({.used = true});
}

Answer<Done> Sandbox::remove_checkpoint(std::string_view id, std::string_view name) {
  SW_TRY(const ContextRecord* const context, find(id));
  SW_CHECK_OK(ask(*context, "DELETE", fmt::format("/checkpoints/{}", runtime::percent_encoded(name)), nullptr));
  return store({.used = true});
}

Answer<std::vector<Checkpoint>> Sandbox::checkpoints(std::string_view id) {
  SW_TRY(const ContextRecord* const context, find(id));
  SW_TRY(const json::value said, ask(*context, "GET", "/checkpoints", nullptr));
  std::vector<Checkpoint> checkpoints;
  try {
    for (const json::value& item : said.at("checkpoints").as_array()) {
      checkpoints.push_back({.name = json::value_to<std::string>(item.at("name")),
                             .taken_at_ms = item.at("takenAt").to_number<std::int64_t>()});
    }
  } catch (const std::exception&) {
    return Failure{.body = runtime::internal_error(
                       fmt::format("Binding '{}' returned an invalid answer", context->binding), 502)};
  }
  SW_CHECK_OK(store({.used = true}));
  return checkpoints;
}

// --- the rest

Answer<Done> Sandbox::set_env(const EnvChanges& changes) {
  SW_CHECK_OK(load());
  for (const auto& [name, value] : changes) {
    if (!is_identifier(name)) return refusal(fmt::format("Invalid envVars key: {}", name));
  }
  apply(record_->env, changes);
  record_->last_used_ms = now_ms();
  return store({.record = true, .used = true});
}

Answer<SandboxInfo> Sandbox::info() {
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
  info.record.last_used_ms = std::max(info.record.last_used_ms, last_used_.time_since_epoch().count());
  info.contexts = by_age();
  info.file_api = options_.file_api;
  if (expires_) info.expires_at_ms = expires_->time_since_epoch().count();
  return info;
}

Answer<Done> Sandbox::destroy() {
  // Best effort: Interpreters that cannot be reached expire on their own. When our own records are damaged, all
  // may hold something of ours.
  std::set<std::string> names;
  if (record_ || load().ok()) {
    for (const auto& [id, record] : contexts_) names.insert(record.binding);
  } else {
    for (const auto& [name, worker] : bindings_) names.insert(name);
  }
  for (const std::string& name : names) {
    if (const auto binding = Binding::find(bindings_, name); binding.ok()) {
      (void)binding->request("DELETE", fmt::format("/interpreters/{}", key_));
    }
  }
  auto destroyed = storage_.destroy();
  forget();
  return answer(std::move(destroyed));
}

Answer<Done> Sandbox::alarm() {
  SW_CHECK_OK(load());
  object::IdleVerdict verdict = object::IdleVerdict::kDisabled;
  const object::Time noted{std::chrono::milliseconds(record_->last_used_ms)};
  SW_CHECK_OK(answer(storage_.transact([&](storage::Transaction& transaction) -> Result<void> {
    SW_TRY(verdict,
           object::check_idle_alarm(transaction, clock_.now(), options_.idle_ttl, std::max(noted, last_used_)));
    return {};
  })));
  return verdict == object::IdleVerdict::kDestroy ? destroy() : Answer<Done>(Done{});
}

// --- files

namespace {

/// The protocol's code and status for an errno.
std::pair<std::string_view, int> code_of(wasi::Errno error) {
  switch (error) {
    case wasi::Errno::kNoent: return {"FILE_NOT_FOUND", 404};
    case wasi::Errno::kExist: return {"FILE_EXISTS", 409};
    case wasi::Errno::kAcces: return {"PERMISSION_DENIED", 403};
    case wasi::Errno::kIsdir: return {"IS_DIRECTORY", 400};
    case wasi::Errno::kNotdir: return {"NOT_DIRECTORY", 400};
    case wasi::Errno::kFbig: return {"FILE_TOO_LARGE", 413};
    case wasi::Errno::kNospc: return {"NO_SPACE", 500};
    default: return {"FILESYSTEM_ERROR", 500};
  }
}

}  // namespace

Failure Sandbox::file_failure(std::string_view operation, std::string_view path, const WorkspaceError& error) {
  auto [code, status] = code_of(error.error);
  const bool kept = error.error == wasi::Errno::kAcces || error.error == wasi::Errno::kNospc;
  if (operation == "directory.create" && !kept) std::tie(code, status) = code_of(wasi::Errno::kIo);
  runtime::ErrorBody body{.code = std::string(code),
                          .message = error.message,
                          .context = {{"path", std::string(path)},
                                      {"operation", std::string(operation)},
                                      {"errno", std::string(error.errno_name())}},
                          .status = status,
                          .operation = std::string(operation)};
  for (const auto& [key, figure] : error.details) body.context.emplace(key, std::to_string(figure));
  return {.body = std::move(body)};
}

}  // namespace sw::sandbox
