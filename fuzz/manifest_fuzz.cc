// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The JSON files that make an engine: its manifest and its programs for the conformance
// checks.

#include "fuzz/fuzz.h"
#include "sandbox_workers/bake/manifest.h"
#include "sandbox_workers/testing/conformance.h"

namespace sw::fuzz {
namespace {

void check_package(const bake::Package& package) {
  require(package.registry == "source" || !package.archive.empty() || !package.files.empty() ||
              !package.sha256.empty(),
          "a package says what it is");
  if (package.registry == "source")
    require(package.sha256.size() == 64, "a built package has a digest");
}

}  // namespace

SW_FUZZ(manifest) {
  const std::string_view text = as_text(input);
  const bake::FindFile find_file = [](std::string_view name) {
    return name == "none" ? std::nullopt : std::optional(std::string(name));
  };
  const bake::FindBuildFiles find_build_files =
      [](std::string_view name) -> std::vector<bake::DriverFile> {
    if (name == "none") return {};
    return {{.name = "build", .content = std::string(name)}};
  };
  if (const auto manifest = bake::parse_manifest(text, find_file, find_build_files);
      manifest.ok()) {
    check_package(manifest->package);
    for (const bake::Package& library : manifest->libraries) {
      require(library.registry != "source", "a library is not built");
      check_package(library);
    }
  }
  (void)testing::parse_programs(text);
}

}  // namespace sw::fuzz
