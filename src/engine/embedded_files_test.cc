// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/embedded_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sandbox_workers/engine/language.h"

namespace sw::engine {
namespace {

TEST(EmbeddedFiles, AreFoundByTheirPathInTheRepository) {
  EXPECT_TRUE(find_embedded_file("engines/python/manifest.json").has_value());
  EXPECT_FALSE(find_embedded_file("engines/none/manifest.json").has_value());
}

TEST(EmbeddedFiles, EachManifestIsValidAndItsDriversExist) {
  int count = 0;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.ends_with("/manifest.json")) continue;
    const auto find_file = [&](std::string_view name) -> std::optional<std::string> {
      const std::string_view folder = file.path.substr(0, file.path.rfind('/') + 1);
      const auto content = find_embedded_file(std::string(folder).append(name));
      return content ? std::optional(std::string(*content)) : std::nullopt;
    };
    const auto find_build_files = [](std::string_view name) {
      const auto program = find_embedded_file(fmt::format("guests/{}/build.py", name));
      return program ? std::vector<DriverFile>{{"build.py", std::string(*program)}}
                     : std::vector<DriverFile>{};
    };
    const auto manifest = parse_manifest(file.content, find_file, find_build_files);
    ASSERT_TRUE(manifest.ok()) << file.path << ": " << manifest.error().message;
    EXPECT_FALSE(manifest->drivers.empty()) << file.path;
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace sw::engine
