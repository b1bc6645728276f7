// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The object graph every command needs, made once per process.

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/progress.h"
#include "engine/artifact_cache.h"
#include "engine/engine.h"
#include "engine/language.h"
#include "engine/watchdog.h"
#include "wasi/clocks.h"
#include "wasm/engine.h"

namespace sw::cli {

class Host {
 public:
  static Result<std::unique_ptr<Host>> create();

  engine::Environment environment() { return {*wasm_, cache_, watchdog_, clocks_}; }
  wasm::Engine& wasm() { return *wasm_; }

  /// Loads a language, baking it first if need be, with progress on stderr.
  Result<std::shared_ptr<engine::Engine>> load(std::unique_ptr<engine::Language> language);

 private:
  Host(std::unique_ptr<wasm::Engine> wasm, engine::ArtifactCache cache)
      : wasm_(std::move(wasm)), cache_(std::move(cache)) {}

  std::unique_ptr<wasm::Engine> wasm_;
  engine::ArtifactCache cache_;
  wasi::SystemClocks clocks_;
  engine::Watchdog watchdog_;
};

}  // namespace sw::cli
