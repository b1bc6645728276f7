// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Baking: from a package to what an engine maps at its start. Three artifacts, each keyed by what
// it was made from, so that a new driver costs a new image but no new compilation:
//   package  the files out of the package, by their digests
//   code     the module's native code; also facts of the scan
//   image    the booted interpreter's memory

#include <filesystem>
#include <string>

#include "engine/embedded_engine.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"

namespace sw::engine {

/// Names of the three artifacts. The image's says all: it is the build.
struct ArtifactNames {
  std::string package;
  std::string code;
  std::string image;
};
Result<ArtifactNames> artifact_names(const wasm::Runtime& runtime, const Manifest& manifest);

inline constexpr char kCodeFile[] = "code.cwasm";
inline constexpr char kImageFile[] = "memory.image";

struct Baked {
  std::filesystem::path package;
  wasm::Module code;
  wasm::StateFacts state_facts;
  std::shared_ptr<const wasm::Image> image;
  BakeFacts facts;
};

/// Finds the artifacts or makes them.
Result<Baked> bake(const Environment& environment, const Language& language,
                   const ArtifactNames& names, const Progress& progress);

/// WASI and the language's own imports.
Result<wasm::Linker> make_linker(const Environment& environment, const Language& language);

}  // namespace sw::engine
