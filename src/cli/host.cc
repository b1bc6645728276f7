// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/host.h"

#include <fmt/format.h>

namespace sw::cli {

Result<std::unique_ptr<Host>> Host::create() {
  auto cache = engine::ArtifactCache::open(engine::default_cache_folder());
  if (!cache.ok()) {
    // Nothing is wrong with what was asked for, so this is not wrong use.
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} ($SANDBOX_WORKERS_CACHE can name another folder)", cache.error().message), 0};
  }
  SW_TRY(auto wasm, wasm::Engine::create({}));
  return std::unique_ptr<Host>(new Host(std::move(wasm), *std::move(cache)));
}

Result<std::shared_ptr<engine::Engine>> Host::load(std::unique_ptr<engine::Language> language) {
  ProgressDisplay display;
  return engine::Engine::load(
      environment(), std::move(language),
      [&](std::string_view step, std::chrono::seconds expected) { display.begin_step(step, expected); });
}

}  // namespace sw::cli
