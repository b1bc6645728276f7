// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/embedded_files.h"

#include <algorithm>

namespace sw::engine {

std::optional<std::string_view> find_embedded_file(std::string_view path) {
  const auto& files = embedded_files();
  const auto found = std::ranges::find(files, path, &EmbeddedFile::path);
  if (found == files.end()) return std::nullopt;
  return found->content;
}

}  // namespace sw::engine
