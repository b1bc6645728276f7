// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/machine.h"

#include <fmt/format.h>

#include "bake/artifact_cache.h"
#include "engine/embedded_engine.h"
#include "engine/watchdog.h"
#include "sandbox_workers/wasm/guest_thread.h"

namespace sw::engine {

struct Machine::Parts {
  std::unique_ptr<wasm::Runtime> wasm;
  bake::ArtifactCache cache;
  wasi::SystemClocks clocks;
  Watchdog watchdog;
};

Machine::Machine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Machine::~Machine() = default;

Result<std::unique_ptr<Machine>> Machine::create(const MachineOptions& options) {
  auto cache = bake::ArtifactCache::open(options.cache_folder.empty() ? bake::default_cache_folder()
                                                                      : options.cache_folder);
  if (!cache.ok()) {
    // Nothing is wrong with what was asked for, so this is not wrong use.
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("{} ($SANDBOX_WORKERS_CACHE can name another folder)", cache.error().message),
        0};
  }
  SW_TRY(auto wasm, wasm::Runtime::create({.stop_means = options.stop_means}));
  return std::unique_ptr<Machine>(new Machine(std::unique_ptr<Parts>(new Parts{
      .wasm = std::move(wasm), .cache = *std::move(cache), .clocks = {}, .watchdog = {}})));
}

Result<std::shared_ptr<Engine>> Machine::load(std::unique_ptr<Language> language,
                                              const Progress& progress) {
  SW_TRY(auto engine, EmbeddedEngine::load(environment(), std::move(language), progress));
  return std::shared_ptr<Engine>(std::move(engine));
}

const wasi::Clocks& Machine::clocks() const { return parts_->clocks; }
Watchdog& Machine::watchdog() { return parts_->watchdog; }
wasm::Runtime& Machine::wasm() { return *parts_->wasm; }

Environment Machine::environment() {
  return {*parts_->wasm, parts_->cache, parts_->watchdog, parts_->clocks};
}

Result<void> Machine::on_guest_thread(const std::function<void()>& body) {
  return wasm::run_on_guest_thread(parts_->wasm->options(), body);
}

}  // namespace sw::engine
