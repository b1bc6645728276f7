// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"
#include "wasm/capi.h"
#include "wasm/late_pages.h"

namespace sw::wasm {

struct Runtime::State {
  EnginePtr engine;
  std::shared_ptr<FaultService> faults;  // shared with memories; null where there is none
};

struct Module::State {
  ModulePtr module;
};

}  // namespace sw::wasm
