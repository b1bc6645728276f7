// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "host/lazy_engine.h"

#include <utility>

#include "bake/bake.h"
#include "engine/embedded_engine.h"
#include "sandbox_workers/engine/all_languages.h"

namespace sw::host {

Result<std::shared_ptr<LazyEngine>> LazyEngine::create(engine::Machine& machine,
                                                       std::unique_ptr<engine::Language> language,
                                                       engine::Progress progress) {
  SW_TRY(engine::EngineInfo info,
         engine::EmbeddedEngine::describe(machine.environment(), *language));
  return std::shared_ptr<LazyEngine>(
      new LazyEngine(machine, std::move(language), std::move(progress), std::move(info)));
}

LazyEngine::LazyEngine(engine::Machine& machine, std::unique_ptr<engine::Language> language,
                       engine::Progress progress, engine::EngineInfo info)
    : machine_(machine),
      progress_(std::move(progress)),
      info_(std::move(info)),
      language_(std::move(language)) {}

bool LazyEngine::is_ready() const {
  {
    const MutexLock lock(mutex_);
    if (engine_) return true;
  }
  const auto language = engine::find_language(info_.language);
  if (!language.ok()) return false;
  return bake::bake_status(machine_.wasm(), machine_.environment().cache, (*language)->manifest())
      .baked;
}

Result<std::shared_ptr<engine::Engine>> LazyEngine::load(const engine::Progress& progress) {
  const MutexLock lock(mutex_);
  if (!engine_) {
    // It is used up by loading, also when that fails.
    if (!language_) {
      SW_TRY(language_, engine::find_language(info_.language));
    }
    auto loaded = machine_.load(std::move(language_), progress);
    progress({}, {});
    SW_TRY(engine_, std::move(loaded));
  }
  return engine_;
}

Result<Outcome> LazyEngine::run(const Run& run, RunEvents& events) {
  SW_TRY(const auto engine, load());
  return engine->run(run, events);
}

Result<std::unique_ptr<engine::SessionInstance>> LazyEngine::boot() {
  SW_TRY(const auto engine, load());
  return engine->boot();
}

Result<std::unique_ptr<engine::SessionInstance>> LazyEngine::restore(
    engine::SnapshotSource& source) {
  SW_TRY(const auto engine, load());
  return engine->restore(source);
}

Result<void> LazyEngine::on_guest_thread(const std::function<void()>& body) {
  return machine_.on_guest_thread(body);
}

}  // namespace sw::host
