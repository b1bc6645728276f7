// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The surgery on WebAssembly modules (third_party/wasmtime). The first byte says whether a module
// follows or its text.

#include "fuzz/fuzz.h"
#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::fuzz {
namespace {

using namespace wasm;

// Compiling takes a thousand times as long as the surgery.
constexpr std::size_t kCompileBytesMax = 300;

Runtime& runtime() {
  static const auto runtime = Runtime::create({}).value();
  return *runtime;
}

constexpr const char* kParts[] = {
    "(memory 1)",
    "(memory 1 2)",
    "(memory i64 1)",
    "(data (i32.const 0) \"a\")",
    "(data (i32.const 65535) \"ab\")",
    "(data (i32.add (i32.const 1) (i32.const 2)) \"b\")",
    "(data (global.get 0) \"c\")",
    "(data \"passive\")",
    "(data (i32.const 1) \"\")",
    "(global (mut i32) (i32.const 1))",
    "(global i32 (i32.const 2))",
    "(global (mut i64) (i64.const 3))",
    "(global (mut funcref) (ref.null func))",
    "(global (mut externref) (ref.null extern))",
    "(global (mut v128) (v128.const i64x2 1 2))",
    "(global (export \"g\") (mut f64) (f64.const 4))",
    "(func)",
    "(func (export \"f\") (result i32) (i32.const 5))",
    "(func (export \"sw:global:0\"))",
    "(func (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 1)))",
    "(func (data.drop 0))",
    "(func (table.set 0 (i32.const 0) (ref.null func)))",
    "(func (drop (table.grow 0 (ref.null func) (i32.const 1))))",
    "(func (elem.drop 0))",
    "(func (memory.fill (i32.const 0) (i32.const 1) (i32.const 2)))",
    "(func (drop (memory.grow (i32.const 1))))",
    "(func (throw 0 (i32.const 1)))",
    "(func (param i32) (block (br_table 0 0 (local.get 0))))",
    "(table 2 funcref)",
    "(table 1 externref)",
    "(elem (i32.const 0) 0)",
    "(elem func 0)",
    "(elem declare func 0)",
    "(start 0)",
    "(tag (param i32))",
    "(tag (export \"t\"))",
    "(type (func (param i32) (result i64)))",
    "(type (struct (field (mut i32))))",
    "(rec (type (array (mut i8))))",
    "(@custom \"name\" \"x\")",
    "(export \"m\" (memory 0))",
    "(export \"memory\" (memory 0))",
    "(export \"x\" (global 0))",
};
constexpr const char* kImports[] = {
    "(import \"a\" \"f\" (func (param i32)))",  "(import \"a\" \"g\" (global i32))",
    "(import \"a\" \"h\" (global (mut i32)))",  "(import \"a\" \"m\" (memory 1))",
    "(import \"a\" \"t\" (table 1 funcref))",   "(import \"a\" \"e\" (tag (param i32)))",
    "(import \"a\" \"s\" (memory 1 1 shared))",
};

std::string any_text(Choices& choices) {
  std::string text = "(module ";
  for (std::size_t i = choices.below(3); i > 0; --i)
    text += kImports[choices.below(std::size(kImports))];
  for (std::size_t i = choices.below(8); i > 0; --i)
    text += kParts[choices.below(std::size(kParts))];
  return text + ")";
}

void damage(Bytes& module, Choices& choices) {
  for (int i = 0; i < 8 && !choices.empty() && !module.empty(); ++i) {
    const std::size_t at = choices.number(2) % module.size();
    if (choices.below(8) == 7) module.resize(at);
    else module[at] = static_cast<std::byte>(choices.byte());
  }
}

/// Nothing for a text that is no module's.
Result<Bytes> any_module(Choices& choices) {
  switch (choices.below(4)) {
    case 0: return copy_of(choices.rest());
    case 1: return wat_to_wasm(choices.rest_text());
    case 2: return wat_to_wasm(any_text(choices));
    default: break;
  }
  SW_TRY(Bytes module, wat_to_wasm(any_text(choices)));
  damage(module, choices);
  return module;
}

}  // namespace

SW_FUZZ(module) {
  Choices choices(input);
  const auto made = any_module(choices);
  if (!made.ok()) return;
  const Bytes& module = *made;
  const auto prepared = prepare_module(module);
  if (!prepared.ok()) {
    note(prepared.error().message);
    return;
  }
  note(prepared->facts.reason_not_keepable() + std::string(prepared->segments.size(), 's') +
       std::string(prepared->facts.mutable_globals, 'g'));
  require(prepared->segments.empty() || !prepared->facts.passive_data,
          "data that code needs stays");
  if (prepared->facts.mutable_globals == 0) {
    const auto again = prepare_module(prepared->wasm);
    require(again.ok(), "what comes out is a valid module",
            again.ok() ? "" : again.error().message);
    require(again->segments.empty() && again->wasm == prepared->wasm, "nothing is left to do");
  }
  // What Wasmtime cannot compile for a reason of its own cannot be compiled afterwards either.
  if (module.size() > kCompileBytesMax || !Module::compile(runtime(), module).ok()) return;
  const auto compiled = Module::compile(runtime(), prepared->wasm);
  require(compiled.ok(), "what comes out can be compiled",
          compiled.ok() ? "" : compiled.error().message);
}

}  // namespace sw::fuzz
