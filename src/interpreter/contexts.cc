// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/contexts.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/protocol/answers.h"
#include "snapshot/old_history.h"

namespace sw::interpreter {

namespace {

namespace json = boost::json;

constexpr storage::TableId kMetaTable = 0x01;
constexpr storage::TableId kContextsTable = 0x10;
constexpr std::string_view kMetaKey = "interpreter";
constexpr int kMetaVersion = 1;

/// What is kept of the Interpreter itself.
struct Metadata {
  std::int64_t created_ms = 0;
  std::int64_t last_used_ms = 0;
};

Bytes encode(const Metadata& meta) {
  const std::string text = json::serialize(json::object{
      {"v", kMetaVersion}, {"createdAt", meta.created_ms}, {"lastUsed", meta.last_used_ms}});
  const BytesView bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

Result<std::optional<Metadata>> read_metadata(storage::Reader& reader) {
  SW_TRY(const auto bytes, reader.get(kMetaTable, kMetaKey));
  if (!bytes) return std::optional<Metadata>();
  try {
    const json::value value = json::parse(as_text(*bytes));
    const json::object& object = value.as_object();
    if (object.at("v").to_number<int>() != kMetaVersion) {
      return Error{ErrorCode::kCorrupt,
                   "an Interpreter was written by another version of this program", 0};
    }
    return std::optional(Metadata{.created_ms = object.at("createdAt").to_number<std::int64_t>(),
                                  .last_used_ms = object.at("lastUsed").to_number<std::int64_t>()});
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("an Interpreter's row is damaged: {}", describe(problem)), 0};
  }
}

/// A row that is damaged is told when it is used.
Result<std::uint64_t> saved_step(storage::Reader& reader, std::string_view context) {
  SW_TRY(const auto bytes, reader.get(kContextsTable, context));
  const auto row = bytes ? decode_context_row(*bytes) : Error{};
  if (!row.ok()) return std::uint64_t{1};
  return row->saved_execution.value_or(row->executions);
}

}  // namespace

Contexts::Contexts(storage::ObjectStorage& storage, object::Clock& clock,
                   const ContextsOptions& options)
    : storage_(storage), clock_(clock), options_(options) {}

storage::Schema Contexts::schema() {
  const auto add_histories = [](storage::Transaction& transaction) {
    return snapshot::add_histories(transaction, {}, &saved_step);
  };
  return {.steps = {add_histories}};
}

std::vector<storage::TableId> Contexts::tables() {
  const snapshot::Options snapshots;
  return {kMetaTable, kContextsTable, snapshots.contexts_table, snapshots.packs_table};
}

Result<std::unique_ptr<Contexts>> Contexts::open(storage::ObjectStorage& storage,
                                                 object::Clock& clock,
                                                 const ContextsOptions& options) {
  std::unique_ptr<Contexts> contexts(new Contexts(storage, clock, options));
  SW_TRY(contexts->snapshots_, snapshot::SnapshotStore::open(storage, options.snapshots));
  return contexts;
}

// --- use and expiry

Result<void> Contexts::ensure_metadata() {
  if (has_metadata_) return {};
  std::optional<Metadata> meta;
  SW_CHECK_OK(storage_.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(meta, read_metadata(reader));
    return {};
  }));
  if (!meta) {
    const Bytes row = encode(Metadata{.created_ms = now_ms(), .last_used_ms = now_ms()});
    SW_CHECK_OK(storage_.transact([&](storage::Transaction& transaction) {
      return transaction.put(kMetaTable, kMetaKey, row);
    }));
  }
  has_metadata_ = true;
  return {};
}

Result<void> Contexts::touch(storage::Transaction& transaction) {
  const object::Time now = clock_.now();
  SW_TRY(const object::IdleAlarm alarm,
         object::touch_idle_alarm(transaction, now, options_.idle_ttl));
  if (!alarm.moved) return {};
  SW_TRY(auto meta, read_metadata(transaction));
  const std::int64_t ms = now.time_since_epoch().count();
  if (!meta) meta = Metadata{.created_ms = ms, .last_used_ms = ms};
  meta->last_used_ms = ms;
  return transaction.put(kMetaTable, kMetaKey, encode(*meta));
}

snapshot::ExtraWrites Contexts::used(snapshot::ExtraWrites body) {
  return [this, body = std::move(body)](storage::Transaction& transaction) -> Result<void> {
    if (body) SW_CHECK_OK(body(transaction));
    return touch(transaction);
  };
}

Result<void> Contexts::use(const snapshot::ExtraWrites& body) {
  return storage_.transact(used(body));
}

Result<void> Contexts::touch() { return use({}); }

Result<object::IdleVerdict> Contexts::alarm() {
  object::IdleVerdict verdict = object::IdleVerdict::kDisabled;
  SW_CHECK_OK(storage_.transact([&](storage::Transaction& transaction) -> Result<void> {
    verdict = object::IdleVerdict::kDisabled;
    SW_TRY(const auto meta, read_metadata(transaction));
    if (!meta) return {};
    const object::Time last_used{std::chrono::milliseconds(meta->last_used_ms)};
    SW_TRY(verdict,
           object::check_idle_alarm(transaction, clock_.now(), options_.idle_ttl, last_used));
    return {};
  }));
  return verdict;
}

// --- rows

Result<std::optional<ContextRow>> Contexts::find(std::string_view id) {
  std::optional<ContextRow> row;
  // What no context can be called is not looked for: the storage would refuse it as a key.
  if (!protocol::check_context_id(id).ok()) return row;
  SW_CHECK_OK(storage_.read([&](storage::Reader& reader) -> Result<void> {
    row.reset();
    SW_TRY(const auto bytes, reader.get(kContextsTable, id));
    if (!bytes) return {};
    SW_TRY(row, decode_context_row(*bytes));
    return {};
  }));
  return row;
}

Result<ContextRow> Contexts::existing(std::string_view id) {
  SW_TRY(const auto row, find(id));
  if (!row) return protocol::context_not_found(id);
  return *row;
}

Result<Contexts::Rows> Contexts::list() {
  Rows found;
  SW_CHECK_OK(storage_.read([&](storage::Reader& reader) {
    found.clear();
    return reader.scan(storage::Range{.table = kContextsTable, .from = {}, .to = {}},
                       storage::Order::kAscending,
                       [&](std::string_view id, BytesView value) -> Result<storage::Scan> {
                         // It goes into answers, which are JSON.
                         if (first_invalid_utf8(id))
                           return Error{ErrorCode::kCorrupt, "a context's id is damaged", 0};
                         SW_TRY(ContextRow row, decode_context_row(value));
                         found.emplace_back(id, std::move(row));
                         return storage::Scan::kContinue;
                       });
  }));
  std::ranges::sort(
      found, {}, [](const auto& entry) { return std::pair(entry.second.created_ms, entry.first); });
  return found;
}

Result<void> Contexts::check_new(std::string_view id) {
  SW_CHECK_OK(protocol::check_context_id(id));
  SW_TRY(const Rows existing, list());
  if (existing.size() >= options_.contexts_max) {
    return protocol::refusal(
        fmt::format("Cannot create more than {} code contexts", options_.contexts_max));
  }
  if (std::ranges::any_of(existing, [&](const auto& entry) { return entry.first == id; })) {
    return protocol::refusal(fmt::format("Code context '{}' already exists", id));
  }
  return {};
}

snapshot::ExtraWrites Contexts::writer_of(std::string_view id, const ContextRow& row) {
  return [id = std::string(id), bytes = encode(row)](storage::Transaction& transaction) {
    return transaction.put(kContextsTable, id, bytes);
  };
}

Result<ContextRow> Contexts::create(std::string_view id, std::string_view cwd) {
  SW_CHECK_OK(check_new(id));
  ContextRow row;
  row.cwd = cwd;
  row.created_ms = row.last_used_ms = now_ms();
  SW_CHECK_OK(use(writer_of(id, row)));
  return row;
}

Result<void> Contexts::remove(std::string_view id) {
  const snapshot::ExtraWrites erase_row = [&](storage::Transaction& transaction) {
    return transaction.erase(kContextsTable, id);
  };
  return has_memory(id) ? snapshots_->remove(id, used(erase_row)) : use(erase_row);
}

Result<void> Contexts::destroy() {
  SW_CHECK_OK(storage_.destroy());
  has_metadata_ = false;
  SW_TRY(snapshots_, snapshot::SnapshotStore::open(storage_, options_.snapshots));
  return {};
}

// --- runs

Result<snapshot::SaveStats> Contexts::save(snapshot::LiveMemory& live, snapshot::EncodedStep step,
                                           std::string_view id, ContextRow& row,
                                           const snapshot::Commit& commit) {
  ContextRow saved = row;
  saved.saved_execution = saved.executions;
  saved.saved_ms = step.stats().time_ms;
  const snapshot::ExtraWrites write_row = [&](storage::Transaction& transaction) {
    return transaction.put(kContextsTable, id, encode(saved));
  };
  SW_TRY(const snapshot::SaveStats stats,
         snapshots_->save(live, std::move(step), used(write_row), commit));
  row = std::move(saved);
  return stats;
}

Result<void> Contexts::write(std::string_view id, const ContextRow& row,
                             const snapshot::Commit& commit) {
  return commit({}, used(writer_of(id, row)));
}

Result<bool> Contexts::take_back(std::string_view id, ContextRow& row) {
  if (!row.before || row.executions == 0) return false;
  const bool memory_went_on = row.saved_execution == row.executions && !row.before->rolled_back;
  ContextRow earlier = row;
  --earlier.executions;
  earlier.cwd = row.before->cwd;
  earlier.saved_execution = row.before->saved_execution;
  earlier.before.reset();
  const snapshot::ExtraWrites write_row = writer_of(id, earlier);
  if (!memory_went_on) {
    SW_CHECK_OK(use(write_row));
  } else if (!earlier.saved_execution) {
    SW_CHECK_OK(snapshots_->remove(id, used(write_row)));
  } else {
    const auto version = snapshots_->take_back(id, now_ms(), used(write_row));
    if (!version.ok() && version.error().code == ErrorCode::kNotFound) return false;
    if (!version.ok()) return version.error();
  }
  row = std::move(earlier);
  return true;
}

}  // namespace sw::interpreter
