// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"
#include "sandbox_workers/wasi/node.h"

namespace sw::wasi {

/// Changes what is below one folder of the host, and nothing else: every step on the way to a path must be a real
/// directory, so a link that somebody put there is an error and is not followed.
class HostWriter {
 public:
  static Result<HostWriter> open(const std::filesystem::path& folder);

  Result<void> make_directory(const std::string& path);
  /// Written beside the file, synced, renamed; the mode of a file that was there is kept.
  Result<void> write_file(const std::string& path, BytesView content);
  Result<void> make_link(const std::string& path, const std::string& target);
  /// What is gone already is no error; a directory that still holds something is left.
  Result<void> remove(const std::string& path, FileType type);

 private:
  explicit HostWriter(UniqueFd folder) : folder_(std::move(folder)) {}
  Result<UniqueFd> parent_of(const std::string& path) const;

  UniqueFd folder_;
};

/// Would a link at `path` lead out of the folder that both are relative to?
bool leads_out(std::string_view path, std::string_view target);

}  // namespace sw::wasi
