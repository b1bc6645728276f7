// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/catalog.h"

#include <fmt/format.h>

#include "snapshot/sealed_row.h"

namespace sw::snapshot {

namespace {

constexpr char kContextPrefix[] = "c";
constexpr char kNextOwnerKey[] = "n";
constexpr std::size_t kCheckpointsMax = 1U << 20U;

void append_ordered(std::string& key, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8)
    key.push_back(static_cast<char>((number >> shift) & 0xffU));
}

std::uint32_t ordered_at(std::string_view key, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i)
    number = (number << 8U) | static_cast<std::uint8_t>(key[i]);
  return number;
}

Result<ContextEntry> read_context(std::string_view key, BytesView row) {
  SW_TRY(WireReader in, unsealed(key, row));
  ContextEntry record;
  record.owner = in.number();
  record.family = in.number();
  record.checkpoints.resize(in.count(kCheckpointsMax, 4));
  for (CheckpointInfo& checkpoint : record.checkpoints) {
    checkpoint.label = in.text(kLabelBytesMax);
    checkpoint.version.owner = in.number();
    checkpoint.version.sequence = in.number();
    checkpoint.time_ms = in.zigzag();
  }
  if (!in.at_end() || record.owner == 0)
    return Error{ErrorCode::kCorrupt, "snapshot context row is invalid"};
  return record;
}

}  // namespace

std::string family_prefix(std::uint32_t family) {
  std::string key;
  append_ordered(key, family);
  return key;
}

std::string owner_prefix(std::uint32_t family, std::uint32_t owner) {
  std::string key = family_prefix(family);
  append_ordered(key, owner);
  return key;
}

std::string pack_key(std::uint32_t family, PackId id) {
  std::string key = owner_prefix(family, id.owner);
  append_ordered(key, id.sequence);
  return key;
}

std::optional<PackId> pack_of_key(std::string_view key) {
  if (key.size() != 12) return std::nullopt;
  return PackId{ordered_at(key, 4), ordered_at(key, 8)};
}

Result<void> check_context_name(std::string_view name) {
  if (!name.empty() && name.size() <= kContextNameBytesMax) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a context's name must have 1 to {} bytes", kContextNameBytesMax)};
}

Result<void> put_context(storage::Transaction& transaction, storage::TableId table,
                         std::string_view name, const ContextEntry& record) {
  WireWriter out;
  out.varint(record.owner);
  out.varint(record.family);
  out.varint(record.checkpoints.size());
  for (const CheckpointInfo& checkpoint : record.checkpoints) {
    out.text(checkpoint.label);
    out.varint(checkpoint.version.owner);
    out.varint(checkpoint.version.sequence);
    out.zigzag(checkpoint.time_ms);
  }
  const std::string key = kContextPrefix + std::string(name);
  return transaction.put(table, key, sealed(key, out));
}

Result<void> erase_context(storage::Transaction& transaction, storage::TableId table,
                           std::string_view name) {
  return transaction.erase(table, kContextPrefix + std::string(name));
}

Result<void> put_next_owner(storage::Transaction& transaction, storage::TableId table,
                            std::uint32_t next_owner) {
  WireWriter out;
  out.varint(next_owner);
  return transaction.put(table, kNextOwnerKey, sealed(kNextOwnerKey, out));
}

Result<ContextCatalog> read_catalog(storage::Reader& reader, storage::TableId table) {
  ContextCatalog catalog;
  SW_TRY(const auto next_owner, reader.get(table, kNextOwnerKey));
  if (next_owner) {
    SW_TRY(WireReader in, unsealed(kNextOwnerKey, *next_owner));
    catalog.next_owner = in.number();
    if (!in.at_end() || catalog.next_owner == 0)
      return Error{ErrorCode::kCorrupt, "snapshot owner count is invalid"};
  }
  SW_CHECK_OK(reader.scan(
      storage::Range::of_prefix(table, kContextPrefix), storage::Order::kAscending,
      [&](std::string_view key, BytesView row) -> Result<storage::Scan> {
        SW_TRY(ContextEntry record, read_context(key, row));
        if (record.owner >= catalog.next_owner) {
          return Error{ErrorCode::kCorrupt, "snapshot context row: its owner is unknown"};
        }
        catalog.contexts.emplace(key.substr(sizeof kContextPrefix - 1), std::move(record));
        return storage::Scan::kContinue;
      }));
  return catalog;
}

}  // namespace sw::snapshot
