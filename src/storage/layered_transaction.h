// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "storage/layer.h"

namespace sw::storage {

/// A transaction over a stack of layers: keeps its changes to itself.
/// Threads: one at a time; nobody else changes the object meanwhile.
class LayeredTransaction final : public Transaction {
 public:
  /// Topmost first; none for an object that does not exist.
  LayeredTransaction(std::vector<LayerPtr> layers, std::optional<Time> alarm)
      : layers_(std::move(layers)), alarm_(alarm) {}

  Result<std::optional<Bytes>> get(TableId table, std::string_view key) override;
  Result<void> scan(const Range& range, Order order, const RowCallback& each) override;
  Result<void> scan_keys(const Range& range, Order order, const KeyCallback& each) override;
  Result<std::optional<Time>> alarm() override { return alarm_; }
  Result<void> put(TableId table, std::string_view key, BytesView value) override;
  Result<void> erase(TableId table, std::string_view key) override;
  Result<void> erase_range(const Range& range) override;
  Result<void> set_alarm(std::optional<Time> time) override;

  /// The first error that makes a commit wrong: it counts even if the body ignored it.
  const std::optional<Error>& failure() const { return failure_; }
  bool wrote() const { return wrote_; }
  void forget_that_it_wrote() { wrote_ = false; }
  bool alarm_set() const { return alarm_set_; }
  std::optional<Time> new_alarm() const { return alarm_; }
  const Rows& rows() const { return rows_; }
  Rows take_rows() { return std::move(rows_); }

 private:
  using Visit = std::function<Result<Scan>(const StoredRow&)>;
  Result<void> visit(const Range& range, const ScanOptions& options, const Visit& each);
  Result<void> check_size(std::string_view key, std::size_t value_bytes);
  template <class T>
  Result<T> noted(Result<T> result);

  const std::vector<LayerPtr> layers_;
  std::optional<Time> alarm_;
  Rows rows_;  // changed
  std::optional<Error> failure_;
  bool wrote_ = false;
  bool alarm_set_ = false;
};

}  // namespace sw::storage
