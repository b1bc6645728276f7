// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/thread_safety.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::host {

/// A built-in language that is loaded, and prepared if need be, when it first has to run something.
/// What is only asked about it, and about what is stored of its contexts, needs no interpreter.
/// Threads: any.
class LazyEngine final : public engine::Engine {
 public:
  /// `machine` outlives it.
  static Result<std::shared_ptr<LazyEngine>> create(engine::Machine& machine,
                                                    std::unique_ptr<engine::Language> language,
                                                    engine::Progress progress);

  const engine::EngineInfo& info() const override { return info_; }
  Result<Outcome> run(const Run& run, RunEvents& events) override;
  bool is_ready() const override;
  bool has_sessions() const override { return true; }
  Result<std::unique_ptr<engine::SessionInstance>> boot() override;
  Result<std::unique_ptr<engine::SessionInstance>> restore(engine::SnapshotSource& source) override;
  Result<void> on_guest_thread(const std::function<void()>& body) override;

  /// Loads it now. After an Error the next call tries again.
  Result<std::shared_ptr<engine::Engine>> load() { return load(progress_); }
  Result<std::shared_ptr<engine::Engine>> load(const engine::Progress& progress);

 private:
  LazyEngine(engine::Machine& machine, std::unique_ptr<engine::Language> language,
             engine::Progress progress, engine::EngineInfo info);

  engine::Machine& machine_;
  const engine::Progress progress_;
  const engine::EngineInfo info_;
  mutable Mutex mutex_;
  std::unique_ptr<engine::Language> language_ SW_GUARDED_BY(mutex_);  // until it is loaded
  std::shared_ptr<engine::Engine> engine_ SW_GUARDED_BY(mutex_);      // shared with runs
};

}  // namespace sw::host
