// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A language ready to run: its code compiled, its image mapped. Baked on first use and cached.

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/artifact_cache.h"
#include "engine/language.h"
#include "engine/outcome.h"
#include "engine/session.h"
#include "engine/watchdog.h"
#include "wasi/clocks.h"
#include "wasi/streams.h"
#include "wasm/engine.h"
#include "wasm/image.h"
#include "wasm/instance.h"

namespace sw::engine {

/// What engines share. All of it outlives them.
struct Environment {
  wasm::Engine& wasm;
  const ArtifactCache& cache;
  Watchdog& watchdog;
  const wasi::Clocks& clocks;
};

/// Where a language's artifacts are. Sizes are zero for what does not exist yet.
struct BakeStatus {
  std::string build;  ///< names code, image and everything they were made from
  bool baked = false;
  std::uint64_t package_bytes = 0;
  std::uint64_t code_bytes = 0;
  std::uint64_t image_bytes = 0;
};

/// Thread-safe.
class Engine {
 public:
  /// Bakes if need be: fetches the package, compiles it, boots it, runs the driver, writes the image.
  static Result<std::shared_ptr<Engine>> load(const Environment& environment, std::unique_ptr<Language> language,
                                              const Progress& progress);
  static BakeStatus status(const Environment& environment, const Language& language);

  const Manifest& manifest() const { return language_->manifest(); }
  /// Identity of code, driver and image; a snapshot belongs to one build.
  const std::string& build() const { return build_; }
  const wasm::Image& image() const { return *image_; }

  /// A fresh interpreter, as the image has it.
  Result<std::unique_ptr<Session>> start_session();

  /// One that goes on from a saved state of this build.
  Result<std::unique_ptr<Session>> restore_session(const SavedSession& saved);

 private:
  struct Parts {
    std::unique_ptr<Guest> guest;
    std::unique_ptr<wasm::Instance> instance;
  };
  Result<Parts> instantiate(std::uint64_t memory_bytes_max);

  Engine(const Environment& environment, std::unique_ptr<Language> language, std::string build);

  Environment environment_;
  std::unique_ptr<Language> language_;
  std::string build_;
  std::shared_ptr<const wasi::Layout> layout_;  // shared with every guest's file system
  std::shared_ptr<const wasm::Image> image_;    // shared with every slot that maps it
  std::shared_ptr<wasm::InstancePre> pre_;      // shared with instances
  BakeFacts facts_;
};

/// Runs each request in an interpreter as new. Keeps one interpreter between runs and puts its memory back,
/// which is several times faster than making one.
/// Threads: one at a time, on a thread with room for a guest's stack.
class StatelessRunner {
 public:
  explicit StatelessRunner(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  Result<Outcome> run(const RunRequest& request, wasi::OutputSink& output);

 private:
  std::shared_ptr<Engine> engine_;  // shared with other runners of the language
  std::unique_ptr<Session> session_;
};

}  // namespace sw::engine
