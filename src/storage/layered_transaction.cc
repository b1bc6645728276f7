// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layered_transaction.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "storage/merged_rows.h"

namespace sw::storage {

template <class T>
Result<T> LayeredTransaction::noted(Result<T> result) {
  if (!result.ok() && !failure_) failure_ = result.error();
  return result;
}

Result<std::optional<Bytes>> LayeredTransaction::get(TableId table, std::string_view key) {
  const auto bytes_of = [](const Value& value) {
    return value ? std::optional<Bytes>(*value) : std::nullopt;
  };
  const auto changed = rows_.find(RowNameView(table, key));
  if (changed != rows_.end()) return bytes_of(changed->second);
  for (const LayerPtr& layer : layers_) {
    SW_TRY(const auto found, noted(layer->find(table, key)));
    if (found) return bytes_of(*found);
  }
  return std::optional<Bytes>();
}

Result<void> LayeredTransaction::visit(const Range& range, const ScanOptions& options,
                                       const Visit& each) {
  MergedRows rows(layers_, rows_, range, options);
  for (;;) {
    SW_TRY(const StoredRow* const row, noted(rows.next()));
    if (!row) return {};
    if (row->erased) continue;
    SW_TRY(const Scan scan, each(*row));
    if (scan == Scan::kStop) return {};
  }
}

Result<void> LayeredTransaction::scan(const Range& range, Order order, const RowCallback& each) {
  return visit(range, {.order = order, .values = true},
               [&](const StoredRow& row) { return each(row.key, *row.value); });
}

Result<void> LayeredTransaction::scan_keys(const Range& range, Order order,
                                           const KeyCallback& each) {
  return visit(range, {.order = order, .values = false},
               [&](const StoredRow& row) { return each(row.key, row.bytes); });
}

Result<void> LayeredTransaction::check_size(std::string_view key, std::size_t value_bytes) {
  if (key.size() <= kKeyBytesMax && value_bytes <= kValueBytesMax) return {};
  return noted<void>(
      Error{ErrorCode::kLimitExceeded,
            fmt::format("a row of {} + {} bytes: a key has at most {} and a value {}", key.size(),
                        value_bytes, kKeyBytesMax, kValueBytesMax),
            0});
}

Result<void> LayeredTransaction::put(TableId table, std::string_view key, BytesView value) {
  wrote_ = true;
  SW_CHECK_OK(check_size(key, value.size()));
  rows_.insert_or_assign({table, std::string(key)},
                         std::make_shared<const Bytes>(value.begin(), value.end()));
  return {};
}

Result<void> LayeredTransaction::erase(TableId table, std::string_view key) {
  wrote_ = true;
  SW_CHECK_OK(check_size(key, 0));
  rows_.insert_or_assign({table, std::string(key)}, nullptr);
  return {};
}

Result<void> LayeredTransaction::erase_range(const Range& range) {
  wrote_ = true;
  std::vector<std::string> keys;
  SW_CHECK_OK(
      scan_keys(range, Order::kAscending, [&](std::string_view key, std::size_t) -> Result<Scan> {
        keys.emplace_back(key);
        return Scan::kContinue;
      }));
  for (std::string& key : keys) {
    rows_.insert_or_assign({range.table, std::move(key)}, nullptr);
  }
  return {};
}

Result<void> LayeredTransaction::set_alarm(std::optional<Time> time) {
  wrote_ = true;
  alarm_set_ = true;
  alarm_ = time;
  return {};
}

}  // namespace sw::storage
