// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The contexts of a store and where their packs are: what the contexts table holds, and the keys of
// both tables.
//
// A context that is forked and its forks are a family: they share packs, and garbage is looked for
// in a family as a whole. Packs lie in the order family, owner, sequence, each that holds a version
// before that version's row. A context's newest version is in its last pack, so a save writes
// nothing else.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/history.h"
#include "snapshot/pack.h"
#include "snapshot/snapshot_store.h"
#include "storage/storage.h"

namespace sw::snapshot {

inline constexpr std::size_t kContextNameBytesMax = 256;
inline constexpr std::size_t kLabelBytesMax = 256;

struct ContextEntry {
  std::uint32_t owner = 0;
  std::uint32_t family = 0;
  std::vector<CheckpointInfo> checkpoints;

  // Not stored here; read when first needed, and kept up to date by commits.
  KeptVersion newest;
  std::uint32_t next_sequence = 0;
  std::optional<std::vector<KeptVersion>> kept;  // oldest first; the newest is the last
  std::vector<VersionId> leaving;                // no longer kept; a collection erases their rows
  std::optional<StorageUsage> usage;
};

using ContextEntries = std::map<std::string, ContextEntry, std::less<>>;

std::string pack_key(std::uint32_t family, PackId id);
std::string owner_prefix(std::uint32_t family, std::uint32_t owner);
std::string family_prefix(std::uint32_t family);
std::optional<PackId> pack_of_key(std::string_view key);

Result<void> check_context_name(std::string_view name);
Result<void> put_context(storage::Transaction& transaction, storage::TableId table,
                         std::string_view name, const ContextEntry& record);
Result<void> erase_context(storage::Transaction& transaction, storage::TableId table,
                           std::string_view name);
Result<void> put_next_owner(storage::Transaction& transaction, storage::TableId table,
                            std::uint32_t next_owner);

struct ContextCatalog {
  ContextEntries contexts;
  std::uint32_t next_owner = 1;
};
Result<ContextCatalog> read_catalog(storage::Reader& reader, storage::TableId table);

}  // namespace sw::snapshot
