// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The surgery on WebAssembly modules (third_party/wasmtime). The first byte says whether a module follows or its
// text.

#include "fuzz/fuzz.h"
#include "sandbox_workers/wasm/engine.h"
#include "sandbox_workers/wasm/module.h"

namespace sw::fuzz {
namespace {

using namespace wasm;

// Compiling takes a thousand times as long as the surgery.
constexpr std::size_t kCompileBytesMax = 300;

Engine& engine() {
  static const auto engine = Engine::create({}).value();
  return *engine;
}

}  // namespace

SW_FUZZ(module) {
  Choices choices(input);
  const std::uint8_t kind = choices.byte();
  Bytes module = copy_of(choices.rest());
  if ((kind & 1U) != 0) {
    auto made = wat_to_wasm(as_text(module));
    if (!made.ok()) return;
    module = *std::move(made);
  }
  const auto prepared = prepare_module(module);
  if (!prepared.ok()) return;
  require(prepared->segments.empty() || !prepared->facts.passive_data, "data that code needs stays");
  if (prepared->facts.mutable_globals == 0) {
    const auto again = prepare_module(prepared->wasm);
    require(again.ok(), "what comes out is a valid module", again.ok() ? "" : again.error().message);
    require(again->segments.empty() && again->wasm == prepared->wasm, "nothing is left to do");
  }
  // What Wasmtime cannot compile for a reason of its own cannot be compiled afterwards either.
  if (module.size() > kCompileBytesMax || !Module::compile(engine(), module).ok()) return;
  const auto compiled = Module::compile(engine(), prepared->wasm);
  require(compiled.ok(), "what comes out can be compiled", compiled.ok() ? "" : compiled.error().message);
}

}  // namespace sw::fuzz
