// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Baking: from a package to what an engine maps at its start. Three artifacts, each keyed by what
// it was made from, so that a new driver costs a new image but no new compilation:
//   package  the files out of the package, by their digests
//   code     the module's native code; also facts of the scan
//   image    the booted interpreter's memory

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "bake/artifact_cache.h"
#include "sandbox_workers/bake/facts.h"
#include "sandbox_workers/bake/manifest.h"
#include "sandbox_workers/bake/progress.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/image.h"
#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::bake {

/// What a guest is booted from.
struct BootInput {
  const std::filesystem::path& package;  ///< the folder with the package's files
  const wasm::PreparedModule& prepared;  ///< its data goes into the memory first
  const wasm::Module& code;
};

/// Gets the memory of a booted guest at rest.
using KeepMemory = std::function<Result<void>(BytesView memory)>;

/// What is baked: an interpreter whose state is its memory.
class Bakeable {
 public:
  virtual ~Bakeable() = default;
  virtual const Manifest& manifest() const = 0;
  /// The Wasm module, from the package's files.
  virtual Result<Bytes> read_module(const std::filesystem::path& package) const = 0;
  /// Boots a guest, checks that its memory is all of its state, and shows it to `keep`. Returns
  /// what a guest that starts from that memory has to know.
  virtual Result<BakeFacts> boot(const BootInput& input, const KeepMemory& keep) const = 0;
};

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
Result<Baked> bake(wasm::Runtime& runtime, const ArtifactCache& cache, const Bakeable& bakeable,
                   const ArtifactNames& names, const Progress& progress);

/// What of a language is baked. Sizes are zero for what does not exist yet.
struct BakeStatus {
  std::string build;  ///< names code, image and everything they were made from
  bool baked = false;
  std::uint64_t package_bytes = 0;
  std::uint64_t code_bytes = 0;
  std::uint64_t image_bytes = 0;
};
BakeStatus bake_status(const wasm::Runtime& runtime, const ArtifactCache& cache,
                       const Manifest& manifest);

}  // namespace sw::bake
