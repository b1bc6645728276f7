// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows in memory: what a transaction changed, and what of an object is not in its file yet.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "storage/storage.h"

namespace sw::storage {

using RowName = std::pair<TableId, std::string>;
using RowNameView = std::pair<TableId, std::string_view>;

struct ByTableAndKey {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return a.first != b.first ? a.first < b.first
                              : std::string_view(a.second) < std::string_view(b.second);
  }
};

/// Shared by all who hold the row; nobody changes it. Null: the row is erased.
using Value = std::shared_ptr<const Bytes>;
using Rows = std::map<RowName, Value, ByTableAndKey>;

/// The rows of a range, as iterators into `rows`.
template <class AnyRows>
auto rows_in(AnyRows& rows, const Range& range) {
  const auto first = rows.lower_bound(RowNameView{range.table, range.from});
  if (!range.to.empty() && range.to <= range.from) return std::pair(first, first);
  const auto last = range.to.empty() ? rows.lower_bound(std::pair<std::uint32_t, std::string_view>{
                                           std::uint32_t{range.table} + 1, {}})
                                     : rows.lower_bound(RowNameView{range.table, range.to});
  return std::pair(first, last);
}

}  // namespace sw::storage
