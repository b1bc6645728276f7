// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The versions that a context keeps: which there are, and which can go. Each has a row beside its
// pack, so that a step writes it into a page of the database that it changes anyway.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/history_limits.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/pack.h"
#include "storage/storage.h"

namespace sw::snapshot {

struct KeptVersion {
  VersionId id = {};
  /// What its memory began with, and where undo leads; none: a fresh memory.
  VersionId parent = {};
  std::uint64_t step = 0;
  std::int64_t time_ms = 0;
  std::uint64_t bytes = 0;  ///< that the step wrote
  bool copy = false;        ///< made by going back to `step`, not by doing it
};

/// Of the row of a version with that sequence, in the history of `owner`. A fork's history has rows
/// of its own for what it inherits.
std::string version_key(std::uint32_t family, std::uint32_t owner, std::uint32_t sequence);
/// Whose history and which sequence; absent for the key of a pack.
std::optional<PackId> version_of_key(std::string_view key);

Bytes encode_version_row(std::string_view key, const KeptVersion& version, std::string_view about);
/// With what was said about the step. Errors: kCorrupt.
Result<std::pair<KeptVersion, std::string>> decode_version_row(std::string_view key, BytesView row);

/// Steps are taken together in so many; the first of them is a key step, which does not need those
/// between it and the key step before: so that these can go.
std::uint64_t key_interval(const HistoryLimits& limits);

/// Where in `versions` (oldest first) those are that need not be kept. `pinned` stay, and do not
/// count.
std::vector<std::size_t> surplus(std::span<const KeptVersion> versions,
                                 const std::set<VersionId>& pinned, const HistoryLimits& limits);

/// "1, 10, 20 to 37": the steps of `versions`, for messages.
std::string steps_of(std::span<const KeptVersion> versions);

}  // namespace sw::snapshot
