// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which objects there are, of which layers they are made, and when their alarms go off: the rows of
// the layer that is number 0. docs/data-folder.md has the format.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/layer.h"

namespace sw::storage {

inline constexpr LayerNumber kDirectoryLayer = 0;
/// Files are named by it.
inline constexpr LayerNumber kLayerNumberMax = INT64_MAX;
/// In one stack.
inline constexpr std::size_t kLayersMax = 1000;

/// What the directory says of an object.
struct ObjectEntry {
  /// Topmost first; never empty.
  std::vector<LayerNumber> layers;
  std::uint64_t schema = 0;
  std::optional<Time> alarm;
  /// The start of the program in which relaxed changes were made that may not be on disk; 0: none.
  std::uint64_t relaxed_epoch = 0;

  bool operator==(const ObjectEntry&) const = default;
};

/// What it says of a layer.
struct LayerEntry {
  std::uint64_t owners = 1;  ///< objects that have it
  bool stored = false;       ///< it has a file
  bool lowest = false;       ///< nothing is below it, for any of its owners
  bool damaged = false;      ///< some of what was committed to it is lost
};

// All within a transaction over the directory's layer. Errors: kCorrupt.

Result<std::optional<ObjectEntry>> find_object(Reader& reader, const ObjectName& name);
/// Writes the entry in the place of `before`, which is what it was.
Result<void> put_object(Transaction& transaction, const ObjectName& name, const ObjectEntry& entry,
                        const std::optional<ObjectEntry>& before);
Result<void> erase_object(Transaction& transaction, const ObjectName& name,
                          const ObjectEntry& before);
Result<std::vector<ObjectInfo>> list_objects(Reader& reader, std::string_view class_name,
                                             std::string_view after_id, std::size_t count_max);
Result<std::vector<DueAlarm>> list_alarms(Reader& reader, Time until, std::size_t count_max);

Result<std::optional<LayerEntry>> find_layer(Reader& reader, LayerNumber number);
Result<void> put_layer(Transaction& transaction, LayerNumber number, const LayerEntry& entry);
Result<void> erase_layer(Transaction& transaction, LayerNumber number);

enum class Counter : std::uint8_t {
  kNextLayer,  ///< only grows
  kEpoch,      ///< only grows
  kMerging,    ///< a layer that others are being merged into, and that no object has yet
};
/// 0 if it was never set.
Result<std::uint64_t> read_counter(Reader& reader, Counter counter);
Result<void> write_counter(Transaction& transaction, Counter counter, std::uint64_t value);

// For those that look at the directory's rows themselves.

inline constexpr TableId kObjectsTable = 1;
inline constexpr TableId kLayersTable = 3;
Result<ObjectName> object_of_key(std::string_view key);
/// Calls `each` with every object.
Result<void> scan_objects(
    Reader& reader, const std::function<Result<Scan>(const ObjectName&, const ObjectEntry&)>& each);
Result<ObjectEntry> decode_object(BytesView bytes);
Bytes encode_object(const ObjectEntry& entry);

}  // namespace sw::storage
