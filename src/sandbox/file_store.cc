// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_store.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::sandbox {

namespace {

namespace json = boost::json;

using Entry = FileEntry;

Result<Entry> decode(std::string_view path, BytesView bytes) {
  try {
    return file_entry_of(json::parse(as_text(bytes)));
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the entry of /workspace/{} is damaged: {}", path, describe(problem)),
                 0};
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

constexpr wasi::TreeLimits kNoLimits{.file_bytes_max = UINT64_MAX,
                                     .tree_bytes_max = UINT64_MAX,
                                     .entries_max = UINT64_MAX,
                                     .depth_max = UINT32_MAX};

wasi::TreeState::Entry tree_entry(const Entry& entry, wasi::SharedBytes bytes) {
  return {.type = entry.type,
          .bytes = std::move(bytes),
          .target = entry.target,
          .times = wasi::Timestamps::all(entry.modified_ns)};
}

/// Once for each entry that needs the content.
template <class Use>
void for_each_digest(const FileLog::Row& row, const Use& use) {
  if (!row.before) return;
  for (const auto& [path, entry] : *row.before) {
    if (entry && !entry->digest.empty()) use(entry->digest);
  }
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

// --- loading

/// Fills `entries`, which become the tree, and notes the digests.
Result<void> FileStore::load_entries(storage::Reader& reader, TreeEntries& entries) {
  return reader.scan(
      {.table = kEntriesTable, .from = {}, .to = {}}, storage::Order::kAscending,
      [&](std::string_view path, BytesView value) -> Result<storage::Scan> {
        SW_TRY(const Entry row, decode(path, value));
        if (!wasi::is_path(path))
          return Error{ErrorCode::kCorrupt, "the path of a stored file is damaged", 0};
        wasi::SharedBytes bytes;
        if (row.type == wasi::FileType::kRegularFile) {
          SW_TRY(bytes, read_content(reader, path, row.digest));
          digests_.emplace(path, row.digest);
        }
        entries.emplace_back(path, tree_entry(row, std::move(bytes)));
        return storage::Scan::kContinue;
      });
}

/// Counts who needs the contents.
Result<void> FileStore::load_uses(storage::Reader& reader) {
  for (const auto& [path, digest] : digests_) ++uses_[digest].files;
  for (const auto& [state, row] : log_.rows()) {
    log_bytes_ += row.bytes;
    for_each_digest(row, [&](const std::string& digest) { ++uses_[digest].log; });
  }
  return reader.scan_keys({.table = kContentsTable, .from = {}, .to = {}},
                          storage::Order::kAscending,
                          [&](std::string_view key, std::size_t bytes) -> Result<storage::Scan> {
                            const auto content = uses_.find(std::string(key));
                            if (content == uses_.end()) return storage::Scan::kContinue;
                            content->second.bytes = bytes;
                            log_bytes_ += content->second.log_bytes();
                            return storage::Scan::kContinue;
                          });
}

Result<FileStore> FileStore::load(storage::ObjectStorage& storage, const wasi::TreeLimits& limits,
                                  std::uint64_t now_ns, const FileHistoryLimits& log_limits) {
  FileStore store;
  TreeEntries entries;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    entries.clear();
    store = {};
    SW_CHECK_OK(store.load_entries(reader, entries));
    SW_TRY(store.log_, FileLog::load(reader));
    return store.load_uses(reader);
  }));
  store.log_limits_ = log_limits;
  // What was stored while limits were wider can still be read.
  store.tree_ = std::make_shared<wasi::Tree>(kNoLimits, now_ns);
  const wasi::TreeState state(wasi::TreeState::Entries(std::move(entries)));
  if (const auto failed = state.restore(*store.tree_, now_ns); failed != wasi::Errno::kSuccess) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("loading the files: {}", wasi::errno_text(failed)), 0};
  }
  store.tree_->set_limits(limits);
  store.stored_ = store.tree_->state();
  return store;
}

// --- what changes

std::optional<Entry> FileStore::stored_entry(std::string_view path,
                                             const wasi::TreeState::Entry* stored) const {
  if (stored == nullptr) return std::nullopt;
  Entry entry{
      .type = stored->type, .target = stored->target, .modified_ns = stored->times.modified};
  if (const auto digest = digests_.find(path); digest != digests_.end())
    entry.digest = digest->second;
  return entry;
}

void FileStore::use(Changes& changes, const std::string& digest, const ContentUse& more) const {
  const auto [found, is_new] = changes.uses_.try_emplace(digest);
  ContentUse& content = found->second;
  if (const auto known = uses_.find(digest); is_new && known != uses_.end())
    content = known->second;
  changes.log_bytes_ -= content.log_bytes();
  content.files += more.files;
  content.log += more.log;
  if (more.bytes != 0) content.bytes = more.bytes;
  changes.log_bytes_ += content.log_bytes();
}

/// The log has so many rows like this more.
void FileStore::use(Changes& changes, const FileLog::Row& row, int rows) const {
  changes.log_bytes_ += static_cast<std::uint64_t>(rows) * row.bytes;
  for_each_digest(row, [&](const std::string& digest) { use(changes, digest, {.log = rows}); });
}

FileStore::Changes FileStore::changes() {
  Changes changes;
  changes.state_ = tree_->state();
  changes.log_bytes_ = log_bytes_;
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
        use(changes, change.after->digest, {.files = 1, .bytes = after->bytes.bytes.size()});
      }
    }
    if (change.before && !change.before->digest.empty())
      use(changes, change.before->digest, {.files = -1});
    changes.entries_.push_back(std::move(change));
  };
  wasi::TreeState::Entries::differences(stored_.entries(), changes.state_.entries(), add);
  log_changes(changes);
  for (const auto& [digest, content] : changes.uses_) {
    const auto known = uses_.find(digest);
    const bool was_needed = known != uses_.end() && known->second.is_needed();
    if (!was_needed && content.is_needed()) changes.new_contents_.push_back(digest);
    if (was_needed && !content.is_needed()) changes.old_contents_.push_back(digest);
  }
  return changes;
}

/// Adds what the changes replace to the log, and takes away what is then too much.
void FileStore::log_changes(Changes& changes) const {
  if (changes.entries_.empty()) return;
  FileLog::Before before;
  for (const Change& change : changes.entries_) before.emplace(change.path, change.before);
  const FileLog::Row& added = log_.add(changes.log_, std::move(before));
  use(changes, added, 1);
  std::size_t rows = log_.rows().size() + 1;
  while (rows > log_limits_.changes_max || changes.log_bytes_ > log_limits_.bytes_max) {
    const FileLog::Row* const oldest = log_.drop_oldest(changes.log_);
    if (oldest == nullptr) break;
    use(changes, *oldest, -1);
    --rows;
  }
  if (changes.log_bytes_ > log_limits_.bytes_max) {
    use(changes, added, -1);
    use(changes, log_.cut(changes.log_), 1);
  }
  log_.drop_steps(changes.log_);
}

Result<void> FileStore::Changes::write(storage::Transaction& transaction) const {
  for (const Change& change : entries_) {
    if (change.after) {
      SW_CHECK_OK(transaction.put(kEntriesTable, change.path,
                                  as_bytes(json::serialize(to_json(*change.after)))));
    } else {
      SW_CHECK_OK(transaction.erase(kEntriesTable, change.path));
    }
  }
  for (const std::string& digest : new_contents_) {
    SW_CHECK_OK(transaction.put(kContentsTable, digest, contents_.at(digest).bytes));
  }
  for (const std::string& digest : old_contents_)
    SW_CHECK_OK(transaction.erase(kContentsTable, digest));
  return log_.write(transaction);
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
  for (const auto& [digest, content] : changes.uses_) {
    if (content.is_needed()) uses_.insert_or_assign(digest, content);
    else uses_.erase(digest);
  }
  log_bytes_ = changes.log_bytes_;
  log_.written(std::move(changes.log_));
}

Result<void> FileStore::forget_log(storage::Transaction& transaction) {
  SW_CHECK_OK(FileLog::erase(transaction));
  std::set<std::string, std::less<>> needed;
  SW_CHECK_OK(
      transaction.scan({.table = kEntriesTable, .from = {}, .to = {}}, storage::Order::kAscending,
                       [&](std::string_view path, BytesView value) -> Result<storage::Scan> {
                         SW_TRY(Entry row, decode(path, value));
                         needed.insert(std::move(row.digest));
                         return storage::Scan::kContinue;
                       }));
  std::vector<std::string> others;
  SW_CHECK_OK(transaction.scan_keys(
      {.table = kContentsTable, .from = {}, .to = {}}, storage::Order::kAscending,
      [&](std::string_view digest, std::size_t) -> Result<storage::Scan> {
        if (!needed.contains(digest)) others.emplace_back(digest);
        return storage::Scan::kContinue;
      }));
  for (const std::string& digest : others) SW_CHECK_OK(transaction.erase(kContentsTable, digest));
  return {};
}

// --- going back

VersionFiles FileStore::differences_to(std::uint64_t state) const {
  VersionFiles files{.known = true};
  for (const auto& [path, before] : log_.before_changes_since(state)) {
    const auto now = stored_entry(path, stored_.entries().find(path));
    if (now ? *before && now->has_content_of(**before) : !*before) continue;
    if (files.differ.size() < kDifferingFilesMax) files.differ.emplace_back(path);
    ++files.differ_count;
  }
  return files;
}

/// What the tree was, with contents.
Result<wasi::TreeState> FileStore::state_of(storage::Reader& reader, std::uint64_t state) const {
  wasi::TreeState then = stored_;
  for (const auto& [path, before] : log_.before_changes_since(state)) {
    if (!*before) {
      then.entries().erase(path);
      continue;
    }
    const auto* const now = stored_.entries().find(path);
    const Entry& wanted = **before;
    wasi::SharedBytes bytes;
    if (now && stored_entry(path, now)->has_content_of(wanted)) {
      bytes = now->bytes;
    } else if (wanted.type == wasi::FileType::kRegularFile) {
      SW_TRY(bytes, read_content(reader, path, wanted.digest));
    }
    then.entries().set(std::string(path), tree_entry(wanted, std::move(bytes)));
  }
  return then;
}

Result<VersionFiles> FileStore::put_back(storage::ObjectStorage& storage, std::uint64_t state,
                                         std::uint64_t now_ns) {
  wasi::TreeState then;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(then, state_of(reader, state));
    return {};
  }));
  const VersionFiles differ = differences_to(state);
  const wasi::TreeLimits limits = tree_->limits();
  const wasi::TreeUsage before = tree_->usage();
  // In between it may be more than before and after.
  tree_->set_limits(kNoLimits);
  const wasi::Errno failed = then.restore(*tree_, now_ns);
  tree_->set_limits(limits);
  if (failed != wasi::Errno::kSuccess) return file_error(failed, "putting the files back");
  const wasi::TreeUsage& after = tree_->usage();
  if (after.bytes > std::max(limits.tree_bytes_max, before.bytes) ||
      after.entries > std::max(limits.entries_max, before.entries)) {
    return file_error(wasi::Errno::kNospc, "the files as they were are more than there may be");
  }
  return VersionFiles{.known = true, .restored = differ.differ_count};
}

}  // namespace sw::sandbox
