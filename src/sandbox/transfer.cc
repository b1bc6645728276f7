// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>
#include <utility>

#include "sandbox/binding.h"
#include "sandbox/file_store.h"
#include "sandbox/names.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

namespace {

namespace json = boost::json;

/// What is stored of a context or of the sandbox beside files, in one row.
constexpr std::size_t kRecordBytesMax = std::size_t{1} << 20;
/// That are in memory at once.
constexpr std::size_t kRowsBytesMax = std::size_t{4} << 20;

Result<StoredSandbox> stored_at(storage::ObjectStorage& object) {
  StoredSandbox stored;
  SW_CHECK_OK(object.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(stored, read_stored_sandbox(reader, object.name()));
    return {};
  }));
  return stored;
}

/// Some of a table's rows, from a key on.
Result<std::vector<ArchiveRow>> read_rows(storage::ObjectStorage& object, storage::TableId table,
                                          const std::string& from) {
  std::vector<ArchiveRow> rows;
  SW_CHECK_OK(object.read([&](storage::Reader& reader) {
    rows.clear();
    std::size_t bytes = 0;
    return reader.scan(
        {.table = table, .from = from, .to = {}}, storage::Order::kAscending,
        [&](std::string_view key, BytesView value) -> Result<storage::Scan> {
          rows.push_back({table, std::string(key), Bytes(value.begin(), value.end())});
          bytes += key.size() + value.size();
          return bytes < kRowsBytesMax ? storage::Scan::kContinue : storage::Scan::kStop;
        });
  }));
  return rows;
}

Result<void> write_object(ArchiveWriter& archive, storage::ObjectStorage& object,
                          const std::vector<storage::TableId>& tables) {
  for (const storage::TableId table : tables) {
    std::string from;
    while (true) {
      SW_TRY(const auto rows, read_rows(object, table, from));
      if (rows.empty()) break;
      for (const ArchiveRow& row : rows) SW_CHECK_OK(archive.row(row.table, row.key, row.value));
      from = rows.back().key + '\0';
    }
  }
  return {};
}

/// `schema` as it was when objects had that version.
storage::Schema up_to(storage::Schema schema, std::size_t version) {
  schema.steps.resize(version);
  return schema;
}

}  // namespace

/// A sandbox that nobody can use, and that goes with this object.
class Transfers::InBetween {
 public:
  InBetween(storage::Storage& storage, const SandboxParts& parts)
      : InBetween(storage, parts, {kTransferClass, new_context_id()}) {}
  InBetween(storage::Storage& storage, const SandboxParts& parts, storage::ObjectName name)
      : storage_(storage), parts_(parts), name_(std::move(name)) {}
  ~InBetween() { (void)remove(); }
  InBetween(const InBetween&) = delete;
  InBetween& operator=(const InBetween&) = delete;

  const storage::ObjectName& name() const { return name_; }
  Result<std::unique_ptr<storage::ObjectStorage>> open() const {
    return storage_.open(name_, Sandbox::schema());
  }

  Result<void> remove() const {
    SW_TRY(const auto known, storage_.find(name_));
    if (!known) return {};
    storage::Changes changes{.removed = {name_}};
    SW_TRY(const auto object, open());
    // What is damaged has no Interpreters that could be found.
    std::optional<std::string> key;
    (void)object->read([&](storage::Reader& reader) -> Result<void> {
      SW_TRY(key, read_interpreter_key(reader));
      return {};
    });
    for (const auto& [binding, worker] : parts_.bindings) {
      const auto interpreter = key ? parts_.interpreter_object(binding, *key) : std::nullopt;
      if (interpreter) changes.removed.push_back(interpreter->name);
    }
    return storage_.change(changes);
  }

 private:
  storage::Storage& storage_;
  const SandboxParts& parts_;
  const storage::ObjectName name_;
};

Result<void> Transfers::remove_leftovers() {
  SW_TRY(const auto left, storage_.list(kTransferClass, "", SIZE_MAX));
  for (const storage::ObjectInfo& object : left) {
    SW_CHECK_OK(InBetween(storage_, parts_, object.name).remove());
  }
  return {};
}

// --- export

Result<void> Transfers::export_sandbox(std::string_view id, const ExportSelection& selection,
                                       const WriteBytes& write) {
  SW_TRY(const storage::ObjectName name, object_name(id));
  SW_TRY(const auto known, storage_.find(name));
  if (!known) return Error{ErrorCode::kNotFound, fmt::format("There is no sandbox '{}'", id)};
  const InBetween copy(storage_, parts_);
  SW_CHECK_OK(select(copy, id, selection));
  SW_TRY(const auto object, copy.open());
  SW_TRY(const StoredSandbox stored, stored_at(*object));
  return write_objects(stored, id, write);
}

Result<void> Transfers::select(const InBetween& copy, std::string_view id,
                               const ExportSelection& selection) {
  SW_TRY(const auto lease, sandboxes_.get(id));
  const auto& wanted = selection.contexts;
  for (const std::string& context : wanted) SW_CHECK_OK(lease->context(context));
  std::vector<ContextRecord> others;
  std::vector<ContextRecord> kept;
  SW_CHECK_OK(lease->copy_to(copy.name(), [&](storage::Transaction& transaction) -> Result<void> {
    others.clear();
    kept.clear();
    SW_TRY(auto contexts, read_contexts(transaction));
    for (ContextRecord& context : contexts) {
      const bool keep = wanted.empty() || std::ranges::find(wanted, context.id) != wanted.end();
      if (!keep) SW_CHECK_OK(erase_context(transaction, context.id));
      (keep ? kept : others).push_back(std::move(context));
    }
    return selection.history ? Result<void>() : FileStore::forget_log(transaction);
  }));
  SW_TRY(const auto object, copy.open());
  SW_TRY(const StoredSandbox stored, stored_at(*object));
  const auto interpreter_of =
      [&](const ContextRecord& context) -> Result<std::shared_ptr<protocol::Interpreter>> {
    SW_TRY(const Binding binding, Binding::find(parts_.bindings, context.binding));
    return binding.interpreter(stored.key);
  };
  for (const ContextRecord& context : others) {
    SW_TRY(const auto interpreter, interpreter_of(context));
    const auto removed = interpreter->remove(context.id);
    if (!removed.ok() && removed.error().code != ErrorCode::kContextNotFound) return removed;
  }
  if (selection.history) return {};
  for (const ContextRecord& context : kept) {
    SW_TRY(const auto interpreter, interpreter_of(context));
    SW_CHECK_OK(interpreter->forget_history(context.id));
  }
  return {};
}

Result<void> Transfers::write_objects(const StoredSandbox& stored, std::string_view id,
                                      const WriteBytes& write) {
  ArchiveWriter archive(write);
  const std::int64_t now_ms = parts_.clock.now().time_since_epoch().count();
  SW_CHECK_OK(
      archive.about(json::serialize(json::object{{"sandbox", id}, {"exportedAt", now_ms}})));
  const auto add = [&](const std::string& binding, const TypedObject& what) -> Result<void> {
    SW_TRY(const auto object, storage_.open(what.name, what.schema));
    SW_CHECK_OK(archive.object(binding, static_cast<std::uint32_t>(what.schema.steps.size())));
    return write_object(archive, *object, what.tables);
  };
  SW_CHECK_OK(add("", typed_sandbox(stored.object)));
  for (const std::string& binding : stored.bindings) {
    SW_TRY(const TypedObject object, interpreter_object(parts_, binding, stored.key));
    SW_CHECK_OK(add(binding, object));
  }
  return archive.end();
}

// --- import

/// Puts the rows of an archive where they belong.
class Transfers::Incoming {
 public:
  Incoming(storage::Storage& storage, const SandboxParts& parts, storage::ObjectName sandbox)
      : storage_(storage), parts_(parts), sandbox_(std::move(sandbox)) {}

  Result<void> read_all(const ReadBytes& read) {
    ArchiveReader archive(read);
    while (true) {
      SW_TRY(ArchiveRecord record, archive.next());
      if (std::holds_alternative<ArchiveEnd>(record)) return finish();
      if (const auto* const object = std::get_if<ArchiveObject>(&record)) {
        SW_CHECK_OK(begin(*object));
      } else if (auto* const row = std::get_if<ArchiveRow>(&record)) {
        SW_CHECK_OK(add(std::move(*row)));
      }
    }
  }

  const std::set<std::string>& bindings() const { return bindings_; }

 private:
  static Error damaged(std::string_view what) {
    return Error{ErrorCode::kCorrupt, fmt::format("the archive is damaged: {}", what), 0};
  }

  Result<void> begin(const ArchiveObject& object) {
    SW_CHECK_OK(flush());
    const bool is_sandbox = object.binding.empty();
    if (is_sandbox != (object_ == nullptr)) return damaged("its objects are in the wrong order");
    TypedObject place = typed_sandbox(sandbox_);
    if (!is_sandbox) {
      if (!bindings_.insert(object.binding).second) return damaged("an object is there twice");
      SW_CHECK_OK(Binding::find(parts_.bindings, object.binding));
      SW_TRY(place, interpreter_object(parts_, object.binding, key_));
    }
    if (object.schema > place.schema.steps.size()) {
      return protocol::refusal("The sandbox was exported by a later version of this program");
    }
    SW_TRY(object_, storage_.open(place.name, up_to(std::move(place.schema), object.schema)));
    tables_ = std::move(place.tables);
    in_sandbox_ = is_sandbox;
    if (!is_sandbox) return {};
    return object_->transact([&](storage::Transaction& transaction) {
      return transaction.put(kMetaTable, kInterpretersKey, as_bytes(key_));
    });
  }

  Result<void> add(ArchiveRow row) {
    const bool has_place = object_ && std::ranges::find(tables_, row.table) != tables_.end();
    if (!has_place) return damaged("a row is of no table");
    if (in_sandbox_) {
      // Those of the sandbox that it was.
      if (row.table == kMetaTable && row.key != kRecordKey) return {};
      if (row.table <= kContextsTable && row.value.size() > kRecordBytesMax)
        return damaged("a record is too large");
      SW_CHECK_OK(count(row));
    }
    rows_bytes_ += row.key.size() + row.value.size();
    rows_.push_back(std::move(row));
    return rows_bytes_ < kRowsBytesMax ? Result<void>() : flush();
  }

  /// All files of a sandbox are in memory when it is used.
  Result<void> count(const ArchiveRow& row) {
    const wasi::TreeLimits& files = parts_.options.files;
    const std::uint64_t bytes_max = files.tree_bytes_max + parts_.options.file_history.bytes_max;
    if (row.table == kEntriesTable && ++entries_ > files.entries_max) {
      return too_much(fmt::format("{} files and folders", files.entries_max));
    }
    if (row.table == kContentsTable) content_bytes_ += row.value.size();
    if (content_bytes_ > bytes_max) return too_much(fmt::format("{} bytes in files", bytes_max));
    if (row.table == kContextsTable && ++contexts_ > parts_.options.contexts_max) {
      return too_much(fmt::format("{} contexts", parts_.options.contexts_max));
    }
    return {};
  }

  static Error too_much(std::string_view of_what) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("the exported sandbox is too large: here it may have {}", of_what), 0};
  }

  Result<void> flush() {
    if (rows_.empty()) return {};
    SW_CHECK_OK(object_->transact([&](storage::Transaction& transaction) -> Result<void> {
      for (const ArchiveRow& row : rows_) {
        SW_CHECK_OK(transaction.put(row.table, row.key, row.value));
      }
      return {};
    }));
    rows_.clear();
    rows_bytes_ = 0;
    return {};
  }

  Result<void> finish() {
    if (!object_) return damaged("there is no sandbox in it");
    return flush();
  }

  storage::Storage& storage_;
  const SandboxParts& parts_;
  const storage::ObjectName sandbox_;
  const std::string key_ = new_interpreter_key();
  std::unique_ptr<storage::ObjectStorage> object_;  // whose rows come
  std::vector<storage::TableId> tables_;            // that it has
  bool in_sandbox_ = false;
  std::set<std::string> bindings_;
  std::vector<ArchiveRow> rows_;  // not stored yet
  std::size_t rows_bytes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t content_bytes_ = 0;
  std::size_t contexts_ = 0;
};

Result<void> Transfers::import_sandbox(std::string_view new_id, const ReadBytes& read) {
  SW_CHECK_OK(versions_.check_new(new_id));
  const InBetween copy(storage_, parts_);
  Incoming incoming(storage_, parts_, copy.name());
  SW_CHECK_OK(incoming.read_all(read));
  SW_TRY(const auto object, copy.open());
  SW_CHECK_OK(object->read([&](storage::Reader& reader) { return check_rows(reader); }));
  SW_TRY(const StoredSandbox stored, stored_at(*object));
  if (!std::ranges::includes(incoming.bindings(), stored.bindings)) {
    return Error{ErrorCode::kCorrupt, "the archive lacks the memory of some contexts", 0};
  }
  SW_CHECK_OK(check(*object, stored));
  SW_TRY(const auto files,
         FileStore::load(*object, parts_.options.files, 0, parts_.options.file_history));
  return versions_.fork_stored(stored, new_id);
}

Result<void> Transfers::check_rows(storage::Reader& reader) const {
  SW_TRY(const auto bytes, reader.get(kMetaTable, kRecordKey));
  if (!bytes) return Error{ErrorCode::kCorrupt, "the archive lacks the sandbox's record", 0};
  SW_TRY(const SandboxRecord record, decode_sandbox_record(*bytes));
  for (const auto& [name, value] : record.env) SW_CHECK_OK(check_env(name, value));
  SW_TRY(const auto contexts, read_contexts(reader));
  for (const ContextRecord& context : contexts) {
    SW_CHECK_OK(protocol::check_context_id(context.id));
    for (const auto& [name, value] : context.env) SW_CHECK_OK(check_env(name, value));
    SW_CHECK_OK(Workspace::normalize(context.cwd));
  }
  return {};
}

Result<void> Transfers::check(storage::ObjectStorage& object, const StoredSandbox& stored) {
  std::vector<ContextRecord> contexts;
  SW_CHECK_OK(object.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(contexts, read_contexts(reader));
    return {};
  }));
  const auto unlike = [](std::string_view what) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the archive is damaged: what it says of the contexts of '{}' differs "
                             "between sandbox and interpreter",
                             what),
                 0};
  };
  for (const std::string& name : stored.bindings) {
    SW_TRY(const Binding binding, Binding::find(parts_.bindings, name));
    SW_TRY(const auto interpreter, binding.interpreter(stored.key));
    SW_TRY(const auto info, binding.probe());
    SW_TRY(const auto known, interpreter->contexts());
    std::set<std::string> there;
    for (const protocol::ContextInfo& context : known) there.insert(context.id);
    std::set<std::string> expected;
    for (const ContextRecord& context : contexts) {
      if (context.binding != name) continue;
      expected.insert(context.id);
      if (context.language != info.language) return unlike(context.id);
    }
    // It may have one that an attempt to make it left behind.
    if (!std::ranges::includes(there, expected) || there.size() > parts_.options.contexts_max)
      return unlike(name);
  }
  return {};
}

}  // namespace sw::sandbox
