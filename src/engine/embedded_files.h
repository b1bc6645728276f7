// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of engines/ and guests/ that are part of the program: manifests, guest drivers, and what
// guests are built by. The table is made by the build (cmake/EmbedFiles.cmake).

#include <optional>
#include <string_view>
#include <vector>

namespace sw::engine {

struct EmbeddedFile {
  std::string_view path;  ///< in the repository: "engines/python/manifest.json"
  std::string_view content;
};

/// All of them, by path. The views last as long as the program.
const std::vector<EmbeddedFile>& embedded_files();

std::optional<std::string_view> find_embedded_file(std::string_view path);

}  // namespace sw::engine
