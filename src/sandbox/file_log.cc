// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_log.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <stdexcept>

#include "wasi/tree_state.h"

namespace sw::sandbox {

namespace {

namespace json = boost::json;

constexpr const char* kBefore = "before";

/// Ids of contexts have no zeros in them.
std::string steps_prefix(std::string_view context) { return std::string(context) + '\0'; }

std::string step_key(std::string_view context, std::uint64_t step) {
  return steps_prefix(context) + storage::ordered_key(step);
}

std::optional<ContextStep> step_of_key(std::string_view key) {
  const std::size_t zero = key.find('\0');
  if (zero == std::string_view::npos) return std::nullopt;
  const auto number = storage::number_of_key(key.substr(zero + 1));
  if (!number) return std::nullopt;
  return ContextStep{.context = std::string(key.substr(0, zero)), .number = *number};
}

std::string encode(const FileLog::Row& row) {
  json::object object;
  if (row.before) {
    json::object& before = object[kBefore].emplace_object();
    for (const auto& [path, entry] : *row.before)
      before[path] = entry ? json::value(to_json(*entry)) : json::value();
  }
  return json::serialize(object);
}

Error damaged(std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("the log of the files is damaged: {}", what)};
}

Result<FileLog::Row> decode(BytesView bytes) {
  try {
    const json::value value = json::parse(as_text(bytes));
    FileLog::Row row{.before = {}, .bytes = bytes.size()};
    const json::value* const before = value.as_object().if_contains(kBefore);
    if (!before) return row;
    row.before.emplace();
    for (const auto& [path, entry] : before->as_object()) {
      if (!wasi::is_path(path)) throw std::invalid_argument("invalid path");
      auto& known = (*row.before)[std::string(path)];
      if (!entry.is_null()) known = file_entry_of(entry);
    }
    return row;
  } catch (const std::exception& problem) {
    return damaged(describe(problem));
  }
}

}  // namespace

// --- what is stored

Result<FileLog> FileLog::load(storage::Reader& reader) {
  FileLog log;
  SW_CHECK_OK(reader.scan({.table = kLogTable, .from = {}, .to = {}}, storage::Order::kAscending,
                          [&](std::string_view key, BytesView value) -> Result<storage::Scan> {
                            const auto state = storage::number_of_key(key);
                            if (!state || *state == 0) return damaged("a row has no number");
                            if (!log.rows_.empty() && *state != log.newest() + 1)
                              return damaged("a row is missing");
                            SW_TRY(log.rows_[*state], decode(value));
                            return storage::Scan::kContinue;
                          }));
  SW_CHECK_OK(reader.scan({.table = kStepsTable, .from = {}, .to = {}}, storage::Order::kAscending,
                          [&](std::string_view key, BytesView value) -> Result<storage::Scan> {
                            const auto step = step_of_key(key);
                            const auto state = storage::number_of_key(as_text(value));
                            if (!step || !state || *state > log.newest())
                              return damaged("a step is invalid");
                            log.steps_[step->context][step->number] = *state;
                            return storage::Scan::kContinue;
                          }));
  return log;
}

Result<void> FileLog::Change::write(storage::Transaction& transaction) const {
  for (std::uint64_t state = first_; state < first_ + dropped_; ++state)
    SW_CHECK_OK(transaction.erase(kLogTable, storage::ordered_key(state)));
  if (added_) {
    SW_CHECK_OK(
        transaction.put(kLogTable, storage::ordered_key(added_->first), as_bytes(added_text_)));
  }
  for (const auto& [context, steps] : dropped_steps_) {
    for (const auto& [step, state] : steps)
      SW_CHECK_OK(transaction.erase(kStepsTable, step_key(context, step)));
  }
  for (const auto& [context, steps] : steps_) {
    for (const auto& [step, state] : steps) {
      SW_CHECK_OK(transaction.put(kStepsTable, step_key(context, step),
                                  as_bytes(storage::ordered_key(state))));
    }
  }
  return {};
}

void FileLog::written(Change change) {
  rows_.erase(rows_.begin(),
              std::next(rows_.begin(), static_cast<std::ptrdiff_t>(change.dropped_)));
  if (change.added_) rows_.insert(*std::move(change.added_));
  for (const auto& [context, steps] : change.dropped_steps_) {
    const auto known = steps_.find(context);
    if (known == steps_.end()) continue;
    for (const auto& [step, state] : steps) known->second.erase(step);
    if (known->second.empty()) steps_.erase(known);
  }
  for (auto& [context, steps] : change.steps_) steps_[context].merge(steps);
}

Result<void> FileLog::erase_steps(storage::Transaction& transaction, std::string_view context) {
  return transaction.erase_range(storage::Range::of_prefix(kStepsTable, steps_prefix(context)));
}

Result<void> FileLog::erase(storage::Transaction& transaction) {
  SW_CHECK_OK(transaction.erase_range({.table = kLogTable, .from = {}, .to = {}}));
  return transaction.erase_range({.table = kStepsTable, .from = {}, .to = {}});
}

void FileLog::forget_steps(std::string_view context) {
  if (const auto known = steps_.find(context); known != steps_.end()) steps_.erase(known);
}

// --- what it says

std::uint64_t FileLog::oldest() const {
  if (rows_.empty()) return 0;
  const auto& [state, row] = *rows_.begin();
  return row.before ? state - 1 : state;
}

std::optional<std::uint64_t> FileLog::state_after(const ContextStep& step) const {
  const auto known = steps_.find(step.context);
  if (known == steps_.end()) return std::nullopt;
  const auto next = known->second.upper_bound(step.number);
  if (next == known->second.begin()) return std::nullopt;
  const std::uint64_t state = std::prev(next)->second;
  return state < oldest() ? std::nullopt : std::optional(state);
}

std::optional<std::uint64_t> FileLog::first_step(std::string_view context) const {
  const auto known = steps_.find(context);
  if (known == steps_.end()) return std::nullopt;
  return known->second.begin()->first;
}

std::map<std::string_view, const std::optional<FileEntry>*> FileLog::before_changes_since(
    std::uint64_t state) const {
  std::map<std::string_view, const std::optional<FileEntry>*> found;
  for (auto row = rows_.upper_bound(state); row != rows_.end(); ++row) {
    if (!row->second.before) continue;
    for (const auto& [path, entry] : *row->second.before) found.emplace(path, &entry);
  }
  return found;
}

// --- changes

const FileLog::Row& FileLog::add(Change& change, Before before) const {
  change.first_ = rows_.empty() ? 0 : rows_.begin()->first;
  auto& [state, row] = change.added_.emplace(newest() + 1, Row{.before = std::move(before)});
  change.added_text_ = encode(row);
  row.bytes = change.added_text_.size();
  return row;
}

const FileLog::Row* FileLog::drop_oldest(Change& change) const {
  if (change.dropped_ == rows_.size()) return nullptr;
  return &rows_.at(change.first_ + change.dropped_++);
}

const FileLog::Row& FileLog::cut(Change& change) const {
  Row& row = change.added_->second;
  row.before.reset();
  change.added_text_ = encode(row);
  row.bytes = change.added_text_.size();
  return row;
}

void FileLog::drop_steps(Change& change) const {
  if (change.dropped_ == 0 && (!change.added_ || change.added_->second.before)) return;
  // That before the oldest row which is left.
  std::uint64_t oldest =
      change.added_->second.before ? change.added_->first - 1 : change.added_->first;
  if (change.dropped_ < rows_.size()) oldest = change.first_ + change.dropped_ - 1;
  for (const auto& [context, steps] : steps_) {
    for (const auto& [step, state] : steps) {
      if (state >= oldest) break;
      change.dropped_steps_[context].emplace(step, state);
    }
  }
}

void FileLog::end_step(Change& change, const ContextStep& step) const {
  const std::uint64_t state = change.added_ ? change.added_->first : newest();
  const auto known = steps_.find(step.context);
  if (known != steps_.end()) {
    // A run of that number that nobody has heard of.
    const auto later = known->second.lower_bound(step.number);
    change.dropped_steps_[step.context].insert(later, known->second.end());
    if (later != known->second.begin() && std::prev(later)->second == state) return;
  }
  change.steps_[step.context].emplace(step.number, state);
}

void FileLog::inherit(Change& change, const ContextStep& from, const std::string& heir) const {
  const auto known = steps_.find(from.context);
  if (known == steps_.end()) return;
  change.steps_[heir].insert(known->second.begin(), known->second.upper_bound(from.number));
}

}  // namespace sw::sandbox
