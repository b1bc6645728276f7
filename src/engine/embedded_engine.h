// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A language that is an embedded Wasm interpreter, ready to run: its code compiled, its image
// mapped. Baked on first use and cached.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bake/artifact_cache.h"
#include "base/thread_safety.h"
#include "engine/session.h"
#include "engine/watchdog.h"
#include "sandbox_workers/bake/progress.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasi/streams.h"
#include "sandbox_workers/wasm/image.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::engine {

/// What engines share. All of it outlives them.
struct Environment {
  wasm::Runtime& wasm;
  const bake::ArtifactCache& cache;
  Watchdog& watchdog;
  const wasi::Clocks& clocks;
};

/// Thread-safe.
class EmbeddedEngine final : public Engine {
 public:
  /// Bakes if need be: fetches the package, compiles it, boots it, runs the driver, writes the
  /// image.
  static Result<std::shared_ptr<EmbeddedEngine>> load(const Environment& environment,
                                                      std::unique_ptr<Language> language,
                                                      const bake::Progress& progress);
  /// What the loaded engine says of itself, without loading it.
  static Result<EngineInfo> describe(const Environment& environment, const Language& language);

  const Manifest& manifest() const { return language_->manifest(); }

  const EngineInfo& info() const override { return info_; }
  /// Keeps interpreters between runs and puts their memory back, which is several times faster than
  /// making one.
  Result<Outcome> run(const Run& run, RunEvents& events) override;
  bool has_sessions() const override { return true; }
  Result<std::unique_ptr<SessionInstance>> boot() override;
  Result<std::unique_ptr<SessionInstance>> restore(SnapshotSource& source) override;
  Result<void> on_guest_thread(const std::function<void()>& body) override;

  /// A fresh interpreter, as the image has it.
  Result<std::unique_ptr<Session>> start_session();

 private:
  struct Parts {
    std::unique_ptr<Guest> guest;
    std::unique_ptr<wasm::Instance> instance;
  };
  Result<Parts> instantiate(std::uint64_t memory_bytes_max);
  Result<std::unique_ptr<Session>> take_idle();

  EmbeddedEngine(const Environment& environment, std::unique_ptr<Language> language,
                 std::string build);

  Environment environment_;
  std::unique_ptr<Language> language_;
  EngineInfo info_;
  std::shared_ptr<const wasi::Layout> layout_;  // shared with every guest's file system
  std::shared_ptr<const wasm::Image> image_;    // shared with every slot that maps it
  std::shared_ptr<wasm::InstancePre> pre_;      // shared with instances
  BakeFacts facts_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_ SW_GUARDED_BY(mutex_);  // as new, for `run`
};

}  // namespace sw::engine
