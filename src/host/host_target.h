// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"
#include "sandbox_workers/host/files.h"

namespace sw::host {

/// A file or folder of the host that appears in its place whole or not at all. Until then it is in
/// a private folder beside that place, which is gone when the object dies. It follows no link,
/// neither in its place nor below it.
class HostTarget {
 public:
  static Result<HostTarget> create(const std::filesystem::path& place);

  /// "" is the target itself; others are names below it, joined by slashes, with neither "." nor
  /// "..".
  Result<void> make_folder(const std::string& path) const;
  Result<void> write_file(const std::string& path, BytesView content) const;
  /// The target itself as a file to be written in pieces. Only its owner can read it, unless it
  /// replaces one that others can read.
  Result<UniqueFd> create_file() const;
  /// Puts it in its place. Only files and links are ever replaced.
  /// Errors: kFileExists for what may not be replaced.
  Result<void> put(IfThere if_there) const;

 private:
  HostTarget(std::filesystem::path place, TemporaryDirectory folder)
      : place_(std::move(place)), folder_(std::move(folder)) {}
  std::filesystem::path made(const std::string& path) const;

  std::filesystem::path place_;
  TemporaryDirectory folder_;
};

}  // namespace sw::host
