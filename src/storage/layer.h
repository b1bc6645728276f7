// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A layer of rows. An object is a stack of layers: what the topmost one that knows a row says of it
// counts, and only the topmost one changes. Copies of an object share the layers below their own
// (ADR 0022).
//
// A layer's rows are in its file, except those that the file lacks yet: they are in memory, and in
// the commit log. The newest of these are pending: not on disk in any form.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_safety.h"
#include "storage/rows.h"

namespace sw::storage {

using LayerNumber = std::uint64_t;

/// What a file says of a row.
struct StoredRow {
  std::string key;
  Value value = {};  ///< null if it is erased, and in scans that leave the values out
  bool erased = false;
  std::size_t bytes = 0;  ///< of the value
};

struct ScanOptions {
  Order order = Order::kAscending;
  bool values = true;
};

/// Where a layer rests, once it is stored. Before that there may be a file whose making was not
/// finished: nothing in it counts, as everything is in memory and in the commit log.
/// Threads: any.
class LayerFile {
 public:
  virtual ~LayerFile() = default;
  /// Whether it can be used. kCorrupt if it is missing or damaged, as far as can be told at once.
  virtual Result<void> check() = 0;
  /// The directory says so on disk.
  virtual void set_stored() = 0;
  /// Nothing if it does not know the row.
  virtual Result<std::optional<StoredRow>> find(TableId table, std::string_view key) = 0;
  /// The first rows of the range. Fewer than there are; none: there are no more.
  virtual Result<std::vector<StoredRow>> scan(const Range& range, const ScanOptions& options) = 0;
  /// The first table from `from` on that has rows.
  virtual Result<std::optional<TableId>> next_table(TableId from) = 0;
  /// About as many as it takes.
  virtual std::uint64_t bytes() const = 0;
};

/// Threads: any.
class Layer {
 public:
  /// `file` may be null: then everything stays in memory.
  Layer(LayerNumber number, std::shared_ptr<LayerFile> file)
      : number_(number), file_(std::move(file)) {}

  LayerNumber number() const { return number_; }
  const std::shared_ptr<LayerFile>& file() const { return file_; }

  /// Nothing if it does not know the row.
  Result<std::optional<Value>> find(TableId table, std::string_view key) const;
  /// The rows that are in memory.
  Rows in_memory(const Range& range) const;
  /// The first table from `from` on of which it knows rows.
  Result<std::optional<TableId>> next_table(TableId from) const;
  /// About as many as its rows take. The time does not depend on how many there are.
  std::uint64_t bytes() const;

  // --- commits

  void add(std::shared_ptr<const Rows> pending);
  /// The oldest pending rows are on disk.
  void settle();
  /// These pending rows never will be.
  void drop(const std::shared_ptr<const Rows>& pending);
  /// Rows that were on disk before.
  void recover(Rows rows);

  // --- writing the file

  /// Whether there are no rows in memory.
  bool has_none_in_memory() const;
  /// What is on disk, but not in the file.
  Rows settled() const;
  bool has_settled() const;
  /// The file has these now.
  void written(const Rows& rows);

 private:
  void settle(const RowName& name, Value value) SW_REQUIRES(mutex_);

  const LayerNumber number_;
  const std::shared_ptr<LayerFile> file_;  // shared with those that write it
  mutable Mutex mutex_;
  Rows settled_ SW_GUARDED_BY(mutex_);
  std::uint64_t settled_bytes_ SW_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<const Rows>> pending_ SW_GUARDED_BY(mutex_);
};

/// Shared by the objects that have it, and by the commits that change it.
using LayerPtr = std::shared_ptr<Layer>;

}  // namespace sw::storage
