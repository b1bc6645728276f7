// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layer.h"

#include <algorithm>
#include <utility>

namespace sw::storage {

namespace {

std::uint64_t size_of(const RowName& name, const Value& value) {
  return name.second.size() + (value ? value->size() : 0);
}

}  // namespace

Result<std::optional<Value>> Layer::find(TableId table, std::string_view key) const {
  const RowNameView name(table, key);
  {
    const MutexLock lock(mutex_);
    for (auto rows = pending_.rbegin(); rows != pending_.rend(); ++rows) {
      const auto found = (*rows)->find(name);
      if (found != (*rows)->end()) return std::optional(found->second);
    }
    const auto found = settled_.find(name);
    if (found != settled_.end()) return std::optional(found->second);
  }
  // A row that moves to the file now was found above, or is there by the time it is gone here.
  if (!file_) return std::optional<Value>();
  SW_TRY(auto stored, file_->find(table, key));
  if (!stored) return std::optional<Value>();
  return std::optional(std::move(stored->value));
}

Rows Layer::in_memory(const Range& range) const {
  Rows found;
  const MutexLock lock(mutex_);
  const auto [first, last] = rows_in(settled_, range);
  found.insert(first, last);
  for (const auto& rows : pending_) {
    const auto [begin, end] = rows_in(*rows, range);
    for (auto row = begin; row != end; ++row) found.insert_or_assign(row->first, row->second);
  }
  return found;
}

Result<std::optional<TableId>> Layer::next_table(TableId from) const {
  std::optional<TableId> next;
  const auto look_at = [&](const Rows& rows) {
    const auto found = rows.lower_bound(RowNameView(from, {}));
    if (found != rows.end()) next = std::min(next.value_or(UINT16_MAX), found->first.first);
  };
  {
    const MutexLock lock(mutex_);
    look_at(settled_);
    for (const auto& rows : pending_) look_at(*rows);
  }
  if (!file_) return next;
  SW_TRY(const auto stored, file_->next_table(from));
  if (stored) next = std::min(next.value_or(UINT16_MAX), *stored);
  return next;
}

std::uint64_t Layer::bytes() const {
  const std::uint64_t stored = file_ ? file_->bytes() : 0;
  const MutexLock lock(mutex_);
  return stored + settled_bytes_;
}

void Layer::add(std::shared_ptr<const Rows> pending) {
  const MutexLock lock(mutex_);
  pending_.push_back(std::move(pending));
}

void Layer::settle(const RowName& name, Value value) {
  const auto [row, is_new] = settled_.try_emplace(name);
  if (!is_new) settled_bytes_ -= size_of(row->first, row->second);
  row->second = std::move(value);
  settled_bytes_ += size_of(row->first, row->second);
}

void Layer::settle() {
  const MutexLock lock(mutex_);
  for (const auto& [name, value] : *pending_.front()) settle(name, value);
  pending_.pop_front();
}

void Layer::drop(const std::shared_ptr<const Rows>& pending) {
  const MutexLock lock(mutex_);
  std::erase(pending_, pending);
}

void Layer::recover(Rows rows) {
  const MutexLock lock(mutex_);
  for (auto& [name, value] : rows) settle(name, std::move(value));
}

bool Layer::has_none_in_memory() const {
  const MutexLock lock(mutex_);
  return settled_.empty() && pending_.empty();
}

Rows Layer::settled() const {
  const MutexLock lock(mutex_);
  return settled_;
}

bool Layer::has_settled() const {
  const MutexLock lock(mutex_);
  return !settled_.empty();
}

void Layer::written(const Rows& rows) {
  const MutexLock lock(mutex_);
  for (const auto& [name, value] : rows) {
    const auto found = settled_.find(name);
    // Changed again meanwhile, it stays.
    if (found == settled_.end() || found->second != value) continue;
    settled_bytes_ -= size_of(found->first, found->second);
    settled_.erase(found);
  }
}

}  // namespace sw::storage
