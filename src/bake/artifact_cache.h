// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Things that are slow to make and safe to keep: unpacked packages, compiled code, memory images.
// Each is a folder named by the hash of what it was made from, made once, never changed.
//
// What lies here is executed, so every file is checked against its recorded SHA-256 before it is
// used, and what has no record is not used: a folder with other files than recorded, with anything
// that is not a regular file, or that others can write is damaged.
//
// Hashing CPython's 216 MB of code would take longer than the whole start of a run, so a file whose
// identity (inode, size, modification and change time) is the one last checked is not hashed again:
// its content cannot have been changed without changing that identity, except by who could change
// the record as well.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "sandbox_workers/bake/progress.h"
#include "sandbox_workers/base/result.h"

namespace sw::bake {

/// Where artifacts live unless the caller says otherwise: $SANDBOX_WORKERS_CACHE, or
/// sandbox-workers in
/// $XDG_CACHE_HOME, or in ~/.cache.
std::filesystem::path default_cache_folder();

/// Thread-safe, and safe against other processes using the same folder.
class ArtifactCache {
 public:
  /// Creates the folder, private to its user.
  static Result<ArtifactCache> open(const std::filesystem::path& root);

  /// The artifact's folder if it is there, undamaged, and has these files (and perhaps more).
  /// Errors: kNotFound; kCorrupt when a file differs from its digest or has none.
  Result<std::filesystem::path> find(std::string_view name,
                                     std::span<const std::string> files = {}) const;

  /// The same, but made by `make` (given an empty folder) if it is missing or damaged. One process
  /// makes it, others wait for that.
  Result<std::filesystem::path> get(
      std::string_view name, std::span<const std::string> files,
      const std::function<Result<void>(const std::filesystem::path&)>& make,
      const Progress& progress) const;

  /// Deletes all but the `keep` newest artifacts whose names begin with `prefix`. Files in use stay
  /// mapped.
  void prune(std::string_view prefix, std::size_t keep) const;

 private:
  explicit ArtifactCache(std::filesystem::path root) : root_(std::move(root)) {}
  std::filesystem::path root_;
};

}  // namespace sw::bake
