// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/directory.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <exception>
#include <set>
#include <utility>

namespace sw::storage {

namespace {

namespace json = boost::json;

constexpr TableId kAlarmsTable = 2;
constexpr TableId kCountersTable = 4;

Error damaged(std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("the directory of objects is damaged: {}", what)};
}

std::string key_of(const ObjectName& name) { return name.class_name + '\0' + name.id; }

/// Times in the order of their keys.
std::string time_key(Time time) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63U;
  return ordered_key(static_cast<std::uint64_t>(time.time_since_epoch().count()) ^ kSign);
}

Time time_of_key(std::string_view key) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63U;
  const std::uint64_t number = number_of_key(key.substr(0, 8)).value_or(kSign);
  return Time(std::chrono::milliseconds(static_cast<std::int64_t>(number ^ kSign)));
}

std::string_view key_of(Counter counter) {
  switch (counter) {
    case Counter::kNextLayer: return "nextLayer";
    case Counter::kEpoch: return "epoch";
    case Counter::kMerging: return "merging";
  }
  return {};
}

template <class T>
Result<T> decode(BytesView bytes, const std::function<T(const json::object&)>& read) {
  try {
    return read(json::parse(as_text(bytes)).as_object());
  } catch (const std::exception& problem) {
    return damaged(describe(problem));
  }
}

Result<void> put_json(Transaction& transaction, TableId table, std::string_view key,
                      const json::object& value) {
  return transaction.put(table, key, as_bytes(json::serialize(value)));
}

json::object encode(const ObjectEntry& entry) {
  json::object value{{"layers", json::array(entry.layers.begin(), entry.layers.end())}};
  if (entry.schema != 0) value["schema"] = entry.schema;
  if (entry.alarm) value["alarm"] = entry.alarm->time_since_epoch().count();
  if (entry.relaxed_epoch != 0) value["relaxed"] = entry.relaxed_epoch;
  return value;
}

}  // namespace

Result<ObjectName> object_of_key(std::string_view key) {
  const std::size_t end = key.find('\0');
  if (end == std::string_view::npos) return damaged("a key is not that of an object");
  ObjectName name{std::string(key.substr(0, end)), std::string(key.substr(end + 1))};
  if (!check_name(name).ok()) return damaged("an object's name is invalid");
  return name;
}

Result<ObjectEntry> decode_object(BytesView bytes) {
  SW_TRY(ObjectEntry entry, decode<ObjectEntry>(bytes, [](const json::object& object) {
           ObjectEntry read;
           for (const json::value& layer : object.at("layers").as_array())
             read.layers.push_back(layer.to_number<LayerNumber>());
           if (const auto* schema = object.if_contains("schema"))
             read.schema = schema->to_number<std::uint64_t>();
           if (const auto* alarm = object.if_contains("alarm"))
             read.alarm = Time(std::chrono::milliseconds(alarm->to_number<std::int64_t>()));
           if (const auto* relaxed = object.if_contains("relaxed"))
             read.relaxed_epoch = relaxed->to_number<std::uint64_t>();
           return read;
         }));
  if (entry.layers.empty() || entry.layers.size() > kLayersMax)
    return damaged(fmt::format("an object with {} layers", entry.layers.size()));
  const std::set<LayerNumber> distinct(entry.layers.begin(), entry.layers.end());
  if (distinct.size() != entry.layers.size() || *distinct.begin() == kDirectoryLayer ||
      *distinct.rbegin() > kLayerNumberMax) {
    return damaged("an object with layers that cannot be");
  }
  return entry;
}

Bytes encode_object(const ObjectEntry& entry) {
  const std::string text = json::serialize(encode(entry));
  const BytesView bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

Result<std::optional<ObjectEntry>> find_object(Reader& reader, const ObjectName& name) {
  SW_TRY(const auto bytes, reader.get(kObjectsTable, key_of(name)));
  if (!bytes) return std::optional<ObjectEntry>();
  SW_TRY(ObjectEntry entry, decode_object(*bytes));
  return std::optional(std::move(entry));
}

Result<void> put_object(Transaction& transaction, const ObjectName& name, const ObjectEntry& entry,
                        const std::optional<ObjectEntry>& before) {
  const std::string key = key_of(name);
  const std::optional<Time> old_alarm = before ? before->alarm : std::nullopt;
  if (old_alarm != entry.alarm) {
    if (old_alarm) SW_CHECK_OK(transaction.erase(kAlarmsTable, time_key(*old_alarm) + key));
    if (entry.alarm) SW_CHECK_OK(transaction.put(kAlarmsTable, time_key(*entry.alarm) + key, {}));
  }
  return put_json(transaction, kObjectsTable, key, encode(entry));
}

Result<void> erase_object(Transaction& transaction, const ObjectName& name,
                          const ObjectEntry& before) {
  const std::string key = key_of(name);
  if (before.alarm) {
    SW_CHECK_OK(transaction.erase(kAlarmsTable, time_key(*before.alarm) + key));
  }
  return transaction.erase(kObjectsTable, key);
}

Result<void> scan_objects(
    Reader& reader,
    const std::function<Result<Scan>(const ObjectName&, const ObjectEntry&)>& each) {
  return reader.scan({.table = kObjectsTable, .from = {}, .to = {}}, Order::kAscending,
                     [&](std::string_view key, BytesView value) -> Result<Scan> {
                       SW_TRY(const ObjectName name, object_of_key(key));
                       SW_TRY(const ObjectEntry entry, decode_object(value));
                       return each(name, entry);
                     });
}

Result<std::vector<ObjectInfo>> list_objects(Reader& reader, std::string_view class_name,
                                             std::string_view after_id, std::size_t count_max) {
  std::vector<ObjectInfo> found;
  if (count_max == 0) return found;
  const std::string prefix = std::string(class_name) + '\0';
  Range range = Range::of_prefix(kObjectsTable, prefix);
  if (!after_id.empty()) range.from = prefix + std::string(after_id) + '\0';
  SW_CHECK_OK(reader.scan(range, Order::kAscending,
                          [&](std::string_view key, BytesView value) -> Result<Scan> {
                            SW_TRY(ObjectName name, object_of_key(key));
                            SW_TRY(const ObjectEntry entry, decode_object(value));
                            found.push_back({std::move(name), entry.alarm});
                            return found.size() < count_max ? Scan::kContinue : Scan::kStop;
                          }));
  return found;
}

Result<std::vector<DueAlarm>> list_alarms(Reader& reader, Time until, std::size_t count_max) {
  std::vector<DueAlarm> due;
  if (count_max == 0) return due;
  SW_CHECK_OK(reader.scan_keys({.table = kAlarmsTable, .from = {}, .to = {}}, Order::kAscending,
                               [&](std::string_view key, std::size_t) -> Result<Scan> {
                                 if (key.size() < 8) return damaged("an alarm's key is too short");
                                 const Time time = time_of_key(key);
                                 if (time > until) return Scan::kStop;
                                 SW_TRY(ObjectName name, object_of_key(key.substr(8)));
                                 due.push_back({std::move(name), time});
                                 return due.size() < count_max ? Scan::kContinue : Scan::kStop;
                               }));
  return due;
}

Result<std::optional<LayerEntry>> find_layer(Reader& reader, LayerNumber number) {
  SW_TRY(const auto bytes, reader.get(kLayersTable, ordered_key(number)));
  if (!bytes) return std::optional<LayerEntry>();
  SW_TRY(LayerEntry entry, decode<LayerEntry>(*bytes, [](const json::object& object) {
           return LayerEntry{.owners = object.at("owners").to_number<std::uint64_t>(),
                             .stored = object.contains("stored"),
                             .lowest = object.contains("lowest"),
                             .damaged = object.contains("damaged")};
         }));
  return std::optional(entry);
}

Result<void> put_layer(Transaction& transaction, LayerNumber number, const LayerEntry& entry) {
  json::object value{{"owners", entry.owners}};
  if (entry.stored) value["stored"] = true;
  if (entry.lowest) value["lowest"] = true;
  if (entry.damaged) value["damaged"] = true;
  return put_json(transaction, kLayersTable, ordered_key(number), value);
}

Result<void> erase_layer(Transaction& transaction, LayerNumber number) {
  return transaction.erase(kLayersTable, ordered_key(number));
}

Result<std::uint64_t> read_counter(Reader& reader, Counter counter) {
  SW_TRY(const auto bytes, reader.get(kCountersTable, key_of(counter)));
  if (!bytes) return 0;
  const auto number = number_of_key(as_text(*bytes));
  if (!number) return damaged("a counter");
  return *number;
}

Result<void> write_counter(Transaction& transaction, Counter counter, std::uint64_t value) {
  return transaction.put(kCountersTable, key_of(counter), as_bytes(ordered_key(value)));
}

}  // namespace sw::storage
