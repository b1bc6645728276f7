// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is stored of a path below /workspace.

#include <boost/json.hpp>
#include <cstdint>
#include <string>

#include "sandbox_workers/wasi/node.h"

namespace sw::sandbox {

struct FileEntry {
  wasi::FileType type = wasi::FileType::kRegularFile;
  std::string digest = {};  ///< of a file: the SHA-256 of its content
  std::string target = {};  ///< of a link
  std::uint64_t modified_ns = 0;

  /// Times do not count.
  bool has_content_of(const FileEntry& other) const {
    return type == other.type && digest == other.digest && target == other.target;
  }
};

boost::json::object to_json(const FileEntry& entry);
/// Throws what is damaged about it.
FileEntry file_entry_of(const boost::json::value& value);

}  // namespace sw::sandbox
