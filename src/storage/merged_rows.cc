// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/merged_rows.h"

#include <algorithm>
#include <utility>

namespace sw::storage {

/// Rows of one source, in the order of the scan.
class MergedRows::Cursor {
 public:
  virtual ~Cursor() = default;
  /// The row it is at; null at the end.
  virtual Result<const StoredRow*> row() = 0;
  virtual void advance() = 0;
};

class MergedRows::MemoryCursor final : public Cursor {
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

class MergedRows::FileCursor final : public Cursor {
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

MergedRows::MergedRows(const std::vector<LayerPtr>& layers, const Rows& changed, const Range& range,
                       const ScanOptions& options)
    : order_(options.order) {
  const auto [first, last] = rows_in(changed, range);
  sources_.push_back({std::make_unique<MemoryCursor>(Rows(first, last), options), nullptr});
  for (const LayerPtr& layer : layers) {
    // What moves from memory to the file meanwhile is found in both.
    sources_.push_back({std::make_unique<MemoryCursor>(layer->in_memory(range), options), layer});
    if (layer->file())
      sources_.push_back({std::make_unique<FileCursor>(*layer->file(), range, options), layer});
  }
}

MergedRows::~MergedRows() = default;

Result<const StoredRow*> MergedRows::row_of(const Source& source) {
  auto row = source.cursor->row();
  if (!row.ok()) layer_ = source.layer;
  return row;
}

Result<const StoredRow*> MergedRows::next() {
  const StoredRow* found = nullptr;
  for (const Source& source : sources_) {
    SW_TRY(const StoredRow* const row, row_of(source));
    if (!row || (found && !comes_before(row->key, found->key))) continue;
    found = row;
    layer_ = source.layer;
  }
  if (!found) return nullptr;
  current_ = *found;
  for (const Source& source : sources_) {
    // It was read above, so nothing can go wrong here.
    SW_TRY(const StoredRow* const row, row_of(source));
    if (row && row->key == current_.key) source.cursor->advance();
  }
  return &current_;
}

}  // namespace sw::storage
