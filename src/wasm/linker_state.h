// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/wasm/linker.h"
#include "wasm/capi.h"

namespace sw::wasm {

struct Linker::State {
  LinkerPtr linker;
};

using TypePtr = std::unique_ptr<wasm_functype_t, Deleter<&wasm_functype_delete>>;
TypePtr to_wasm(const Signature& signature);

}  // namespace sw::wasm
