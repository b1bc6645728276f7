// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_store.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "sandbox_workers/base/sha256.h"

namespace sw::sandbox {

namespace {

namespace json = boost::json;

constexpr storage::TableId kEntriesTable = 0x20;
constexpr storage::TableId kContentsTable = 0x21;

using Entry = FileStore::Entry;

std::string encode(const Entry& row) {
  json::object object = {{"type", static_cast<int>(row.type)}, {"modified", row.modified_ns}};
  if (row.type == wasi::FileType::kRegularFile) object["sha256"] = row.digest;
  if (row.type == wasi::FileType::kSymbolicLink) object["target"] = row.target;
  return json::serialize(object);
}

Result<Entry> decode(std::string_view path, BytesView bytes) {
  try {
    const json::value value = json::parse(as_text(bytes));
    const json::object& object = value.as_object();
    Entry row;
    row.type = static_cast<wasi::FileType>(object.at("type").to_number<int>());
    row.modified_ns = object.at("modified").to_number<std::uint64_t>();
    if (const json::value* digest = object.if_contains("sha256"))
      row.digest = json::value_to<std::string>(*digest);
    if (const json::value* target = object.if_contains("target"))
      row.target = json::value_to<std::string>(*target);
    return row;
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the entry of /workspace/{} is damaged: {}", path, problem.what()), 0};
  }
}

/// Reads a content and checks that it is the one its name promises.
Result<wasi::SharedBytes> read_content(storage::Reader& reader, std::string_view path,
                                       const std::string& digest) {
  SW_TRY(auto bytes, reader.get(kContentsTable, digest));
  if (!bytes)
    return Error{ErrorCode::kCorrupt, fmt::format("the content of /workspace/{} is missing", path),
                 0};
  if (sha256_hex(*bytes) != digest) {
    return Error{ErrorCode::kCorrupt, fmt::format("the content of /workspace/{} is damaged", path),
                 0};
  }
  return wasi::SharedBytes::own(*std::move(bytes));
}

bool has_bytes_of(const wasi::TreeState::Entry& a, const wasi::TreeState::Entry& b) {
  return a.bytes.bytes.data() == b.bytes.bytes.data() &&
         a.bytes.bytes.size() == b.bytes.bytes.size();
}

/// Is it stored as it is now? The same bytes elsewhere may be others.
bool is_stored(const wasi::TreeState::Entry& a, const wasi::TreeState::Entry& b) {
  return a.type == b.type && a.target == b.target && a.times.modified == b.times.modified &&
         has_bytes_of(a, b);
}

}  // namespace

Result<FileStore> FileStore::load(storage::ObjectStorage& storage, const wasi::TreeLimits& limits,
                                  std::uint64_t now_ns) {
  FileStore store;
  // What was stored while limits were wider can still be read.
  store.tree_ = std::make_shared<wasi::Tree>(wasi::TreeLimits{.file_bytes_max = UINT64_MAX,
                                                              .tree_bytes_max = UINT64_MAX,
                                                              .entries_max = UINT64_MAX,
                                                              .depth_max = UINT32_MAX},
                                             now_ns);
  std::vector<std::pair<std::string, wasi::TreeState::Entry>> entries;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    entries.clear();
    store.digests_.clear();
    return reader.scan({.table = kEntriesTable, .from = {}, .to = {}}, storage::Order::kAscending,
                       [&](std::string_view path, BytesView value) -> Result<storage::Scan> {
                         SW_TRY(const Entry row, decode(path, value));
                         wasi::TreeState::Entry entry{
                             .type = row.type, .bytes = {}, .target = row.target, .times = {}};
                         entry.times = wasi::Timestamps::all(row.modified_ns);
                         if (row.type == wasi::FileType::kRegularFile) {
                           SW_TRY(entry.bytes, read_content(reader, path, row.digest));
                           store.digests_.emplace(path, row.digest);
                         }
                         entries.emplace_back(path, std::move(entry));
                         return storage::Scan::kContinue;
                       });
  }));
  for (const auto& [path, digest] : store.digests_) ++store.uses_[digest];
  const wasi::TreeState state(wasi::TreeState::Entries(std::move(entries)));
  if (const auto failed = state.restore(*store.tree_, now_ns); failed != wasi::Errno::kSuccess) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("loading the files: {}", wasi::errno_text(failed)), 0};
  }
  store.tree_->set_limits(limits);
  store.stored_ = store.tree_->state();
  return store;
}

std::optional<Entry> FileStore::stored_entry(const std::string& path,
                                             const wasi::TreeState::Entry* stored) const {
  if (stored == nullptr) return std::nullopt;
  Entry entry{
      .type = stored->type, .target = stored->target, .modified_ns = stored->times.modified};
  if (const auto digest = digests_.find(path); digest != digests_.end())
    entry.digest = digest->second;
  return entry;
}

FileStore::Changes FileStore::changes() {
  Changes changes;
  changes.state_ = tree_->state();
  using TreeEntry = wasi::TreeState::Entry;
  const auto add = [&](const std::string& path, const TreeEntry* before, const TreeEntry* after) {
    if (before && after && is_stored(*before, *after)) return;
    Change change{.path = path, .before = stored_entry(path, before), .after = {}};
    if (after) {
      change.after =
          Entry{.type = after->type, .target = after->target, .modified_ns = after->times.modified};
      if (after->type == wasi::FileType::kRegularFile) {
        const bool has_digest =
            before && before->type == after->type && has_bytes_of(*before, *after);
        change.after->digest = has_digest ? change.before->digest : sha256_hex(after->bytes.bytes);
        changes.contents_.emplace(change.after->digest, after->bytes);
        ++changes.uses_[change.after->digest];
      }
    }
    if (change.before && !change.before->digest.empty()) --changes.uses_[change.before->digest];
    changes.entries_.push_back(std::move(change));
  };
  wasi::TreeState::Entries::differences(stored_.entries(), changes.state_.entries(), add);
  for (const auto& [digest, more] : changes.uses_) {
    const auto known = uses_.find(digest);
    const std::int64_t before = known == uses_.end() ? 0 : known->second;
    if (before == 0 && more > 0) changes.new_contents_.push_back(digest);
    if (before > 0 && before + more == 0) changes.old_contents_.push_back(digest);
  }
  return changes;
}

Result<void> FileStore::Changes::write(storage::Transaction& transaction) const {
  for (const Change& change : entries_) {
    if (change.after) {
      SW_CHECK_OK(transaction.put(kEntriesTable, change.path, as_bytes(encode(*change.after))));
    } else {
      SW_CHECK_OK(transaction.erase(kEntriesTable, change.path));
    }
  }
  for (const std::string& digest : new_contents_) {
    SW_CHECK_OK(transaction.put(kContentsTable, digest, contents_.at(digest).bytes));
  }
  for (const std::string& digest : old_contents_)
    SW_CHECK_OK(transaction.erase(kContentsTable, digest));
  return {};
}

void FileStore::written(Changes changes) {
  stored_ = std::move(changes.state_);
  for (const Change& change : changes.entries_) {
    if (change.after && !change.after->digest.empty()) {
      digests_.insert_or_assign(change.path, change.after->digest);
    } else {
      digests_.erase(change.path);
    }
  }
  for (const auto& [digest, more] : changes.uses_) {
    if ((uses_[digest] += more) <= 0) uses_.erase(digest);
  }
}

}  // namespace sw::sandbox
