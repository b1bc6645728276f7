// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/host.h"

namespace sw::cli {

Result<std::unique_ptr<Host>> Host::create() {
  SW_TRY(auto cache, engine::ArtifactCache::open(engine::default_cache_folder()));
  SW_TRY(auto wasm, wasm::Engine::create({}));
  return std::unique_ptr<Host>(new Host(std::move(wasm), std::move(cache)));
}

Result<std::shared_ptr<engine::Engine>> Host::load(std::unique_ptr<engine::Language> language) {
  ProgressDisplay display;
  return engine::Engine::load(
      environment(), std::move(language),
      [&](std::string_view step, std::chrono::seconds expected) { display.begin_step(step, expected); });
}

}  // namespace sw::cli
