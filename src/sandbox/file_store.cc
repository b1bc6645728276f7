// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_store.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <set>

#include "sandbox_workers/base/sha256.h"

namespace sw::sandbox {

namespace {

namespace json = boost::json;

constexpr storage::TableId kEntriesTable = 0x20;
constexpr storage::TableId kContentsTable = 0x21;

struct Row {
  wasi::FileType type = wasi::FileType::kRegularFile;
  std::string digest;  // of a file
  std::string target;  // of a link
  std::uint64_t modified_ns = 0;
};

std::string encode(const Row& row) {
  json::object object = {{"type", static_cast<int>(row.type)}, {"modified", row.modified_ns}};
  if (row.type == wasi::FileType::kRegularFile) object["sha256"] = row.digest;
  if (row.type == wasi::FileType::kSymbolicLink) object["target"] = row.target;
  return json::serialize(object);
}

Result<Row> decode(std::string_view path, BytesView bytes) {
  try {
    const json::value value = json::parse(as_text(bytes));
    const json::object& object = value.as_object();
    Row row;
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

bool same(const wasi::TreeState::Entry& a, const wasi::TreeState::Entry& b) {
  return a.type == b.type && a.target == b.target && a.times.modified == b.times.modified &&
         a.bytes.bytes.data() == b.bytes.bytes.data() &&
         a.bytes.bytes.size() == b.bytes.bytes.size();
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
  wasi::TreeState state;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    state = {};
    store.digests_.clear();
    return reader.scan({.table = kEntriesTable, .from = {}, .to = {}}, storage::Order::kAscending,
                       [&](std::string_view path, BytesView value) -> Result<storage::Scan> {
                         SW_TRY(const Row row, decode(path, value));
                         wasi::TreeState::Entry entry{
                             .type = row.type, .bytes = {}, .target = row.target, .times = {}};
                         entry.times = wasi::Timestamps::all(row.modified_ns);
                         if (row.type == wasi::FileType::kRegularFile) {
                           SW_TRY(entry.bytes, read_content(reader, path, row.digest));
                           store.digests_.emplace(path, row.digest);
                         }
                         state.entries().emplace(path, std::move(entry));
                         return storage::Scan::kContinue;
                       });
  }));
  if (const auto failed = state.restore(*store.tree_, now_ns); failed != wasi::Errno::kSuccess) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("loading the files: {}", wasi::errno_text(failed)), 0};
  }
  store.tree_->set_limits(limits);
  store.stored_ = std::make_shared<const wasi::TreeState>(wasi::TreeState::of(*store.tree_));
  return store;
}

FileStore::Changes FileStore::changes() const {
  Changes changes;
  changes.state_ = std::make_shared<const wasi::TreeState>(wasi::TreeState::of(*tree_));
  changes.digests_ = digests_;
  const auto& now = changes.state_->entries();
  for (const auto& [path, entry] : stored_->entries()) {
    if (now.contains(path)) continue;
    changes.entries_.emplace(path, Changes::Entry{std::nullopt});
    changes.digests_.erase(path);
  }
  for (const auto& [path, entry] : now) {
    const auto before = stored_->entries().find(path);
    if (before != stored_->entries().end() && same(before->second, entry)) continue;
    Row row{.type = entry.type,
            .digest = {},
            .target = entry.target,
            .modified_ns = entry.times.modified};
    changes.digests_.erase(path);
    if (entry.type == wasi::FileType::kRegularFile) {
      row.digest = sha256_hex(entry.bytes.bytes);
      changes.digests_.emplace(path, row.digest);
      changes.new_contents_.emplace(row.digest, entry.bytes);
    }
    changes.entries_.emplace(path, Changes::Entry{encode(row)});
  }
  std::set<std::string> used;
  for (const auto& [path, digest] : changes.digests_) used.insert(digest);
  for (const auto& [path, digest] : digests_) {
    changes.new_contents_.erase(digest);  // stored already
    if (!used.contains(digest)) changes.old_contents_.push_back(digest);
  }
  return changes;
}

Result<void> FileStore::Changes::write(storage::Transaction& transaction) const {
  for (const auto& [path, entry] : entries_) {
    if (entry.row) SW_CHECK_OK(transaction.put(kEntriesTable, path, as_bytes(*entry.row)));
    else SW_CHECK_OK(transaction.erase(kEntriesTable, path));
  }
  for (const auto& [digest, bytes] : new_contents_) {
    SW_CHECK_OK(transaction.put(kContentsTable, digest, bytes.bytes));
  }
  for (const std::string& digest : old_contents_)
    SW_CHECK_OK(transaction.erase(kContentsTable, digest));
  return {};
}

void FileStore::written(Changes changes) {
  stored_ = std::move(changes.state_);
  digests_ = std::move(changes.digests_);
}

}  // namespace sw::sandbox
