// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"
#include "wasm/capi.h"

namespace sw::wasm {

struct Runtime::State {
  EnginePtr engine;
};

struct Module::State {
  ModulePtr module;
};

}  // namespace sw::wasm
