// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wasm/capi.h"
#include "wasm/engine.h"
#include "wasm/module.h"

namespace sw::wasm {

struct Engine::State {
  EnginePtr engine;
};

struct Module::State {
  ModulePtr module;
};

}  // namespace sw::wasm
