// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "storage/layer.h"

namespace sw::storage {

/// The rows of a range in several layers as one sequence: of the layers that know a row, the topmost
/// counts.
/// Threads: one at a time; none of the layers changes meanwhile.
class MergedRows {
 public:
  /// Topmost first. `changed` lies above all of them.
  MergedRows(const std::vector<LayerPtr>& layers, const Rows& changed, const Range& range,
             const ScanOptions& options);
  ~MergedRows();

  /// The next row, erased or not; null at the end. Valid until the next call.
  Result<const StoredRow*> next();
  /// The layer that the row is of; after an error, the one that cannot be read. Null: it is changed.
  const LayerPtr& layer() const { return layer_; }

 private:
  class Cursor;
  class MemoryCursor;
  class FileCursor;
  struct Source {
    std::unique_ptr<Cursor> cursor;
    LayerPtr layer;  // shared with the object
  };
  Result<const StoredRow*> row_of(const Source& source);
  bool comes_before(const std::string& a, const std::string& b) const {
    return order_ == Order::kAscending ? a < b : a > b;
  }

  const Order order_;
  std::vector<Source> sources_;  // what counts first is first
  StoredRow current_;
  LayerPtr layer_;  // shared with the object
};

}  // namespace sw::storage
