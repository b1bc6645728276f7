// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "storage/storage.h"

namespace sw::fuzz {

/// A row of an object's storage, for a target to change.
struct Row {
  storage::TableId table = 0;
  std::string key;
  Bytes value;
};

/// All rows of the tables.
inline std::vector<Row> rows_of(storage::ObjectStorage& object,
                                std::span<const storage::TableId> tables) {
  std::vector<Row> rows;
  const auto read = object.read([&](storage::Reader& reader) -> Result<void> {
    rows.clear();
    for (const storage::TableId table : tables) {
      SW_CHECK_OK(reader.scan({.table = table, .from = {}, .to = {}}, storage::Order::kAscending,
                              [&](std::string_view key, BytesView value) -> Result<storage::Scan> {
                                rows.push_back({table, std::string(key), copy_of(value)});
                                return storage::Scan::kContinue;
                              }));
    }
    return {};
  });
  require(read.ok(), "rows are read");
  return rows;
}

}  // namespace sw::fuzz
