// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layered_transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace sw::storage {

namespace {

/// Rows of one source, in the order of the scan.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// The row it is at; null at the end.
  virtual Result<const StoredRow*> row() = 0;
  virtual void advance() = 0;
};

class MemoryCursor final : public Cursor {
 public:
  MemoryCursor(const Rows& rows, const ScanOptions& options) {
    for (const auto& [name, value] : rows) {
      rows_.push_back({.key = name.second,
                       .value = value,
                       .erased = value == nullptr,
                       .bytes = value ? value->size() : 0});
    }
    if (options.order == Order::kDescending) std::ranges::reverse(rows_);
  }
  Result<const StoredRow*> row() override { return at_ < rows_.size() ? &rows_[at_] : nullptr; }
  void advance() override { ++at_; }

 private:
  std::vector<StoredRow> rows_;
  std::size_t at_ = 0;
};

class FileCursor final : public Cursor {
 public:
  FileCursor(LayerFile& file, Range range, const ScanOptions& options)
      : file_(file), left_(std::move(range)), options_(options) {}

  Result<const StoredRow*> row() override {
    if (at_ == rows_.size() && !ended_) SW_CHECK_OK(refill());
    return at_ < rows_.size() ? &rows_[at_] : nullptr;
  }
  void advance() override { ++at_; }

 private:
  Result<void> refill() {
    SW_TRY(rows_, file_.scan(left_, options_));
    at_ = 0;
    ended_ = rows_.empty();
    if (ended_) return {};
    const std::string& last = rows_.back().key;
    if (options_.order == Order::kAscending) {
      left_.from = last + '\0';
    } else {
      ended_ = last.empty();  // nothing comes before it
      left_.to = last;
    }
    return {};
  }

  LayerFile& file_;
  Range left_;
  const ScanOptions options_;
  std::vector<StoredRow> rows_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

/// Several sources as one: of those that know a row, the first counts.
class Merge {
 public:
  Merge(std::vector<std::unique_ptr<Cursor>> sources, Order order)
      : sources_(std::move(sources)), order_(order) {}

  /// The next row, erased or not; null at the end. Valid until the next call.
  Result<const StoredRow*> next() {
    const StoredRow* found = nullptr;
    for (const auto& source : sources_) {
      SW_TRY(const StoredRow* const row, source->row());
      if (row && (!found || comes_before(row->key, found->key))) found = row;
    }
    if (!found) return nullptr;
    current_ = *found;
    for (const auto& source : sources_) {
      SW_TRY(const StoredRow* const row, source->row());
      if (row && row->key == current_.key) source->advance();
    }
    return &current_;
  }

 private:
  bool comes_before(const std::string& a, const std::string& b) const {
    return order_ == Order::kAscending ? a < b : a > b;
  }

  const std::vector<std::unique_ptr<Cursor>> sources_;
  const Order order_;
  StoredRow current_;
};

}  // namespace

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
  std::vector<std::unique_ptr<Cursor>> sources;
  const auto [first, last] = rows_in(rows_, range);
  sources.push_back(std::make_unique<MemoryCursor>(Rows(first, last), options));
  for (const LayerPtr& layer : layers_) {
    sources.push_back(std::make_unique<MemoryCursor>(layer->in_memory(range), options));
    if (layer->file()) {
      sources.push_back(std::make_unique<FileCursor>(*layer->file(), range, options));
    }
  }
  Merge merge(std::move(sources), options.order);
  for (;;) {
    SW_TRY(const StoredRow* const row, noted(merge.next()));
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
