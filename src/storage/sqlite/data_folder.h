// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where things lie in a data folder, and the lock that gives it to one process. docs/data-folder.md
// describes it.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::storage {

class DataFolder {
 public:
  /// Creates the folder if need be and locks it. kUnavailable if another process has it, naming
  /// that process, also in Error::context["usedBy"].
  static Result<DataFolder> own(const std::filesystem::path& path);
  /// Where things lie in a folder that is not ours to change.
  static DataFolder look_at(const std::filesystem::path& path) {
    return DataFolder(path, UniqueFd());
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path catalog() const { return path_ / "catalog.sqlite"; }
  std::filesystem::path object(std::int64_t file) const;
  /// The commit journal's two files.
  std::filesystem::path journal(std::size_t which) const {
    return path_ / (which == 0 ? "journal.0" : "journal.1");
  }

  /// Makes the folder that `object(file)` lies in.
  Result<void> make_room_for(std::int64_t file) const;

  /// Numbers of all object files there are.
  Result<std::vector<std::int64_t>> object_files() const;

 private:
  DataFolder(std::filesystem::path path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  UniqueFd lock_;  // closing it gives the folder up
};

}  // namespace sw::storage
