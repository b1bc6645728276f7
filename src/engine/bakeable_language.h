// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bake/bake.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasm/linker.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::engine {

/// A language, as baking sees it. All that it is made of outlives it.
class BakeableLanguage final : public bake::Bakeable {
 public:
  BakeableLanguage(wasm::Runtime& runtime, const wasi::Clocks& clocks, const Language& language)
      : runtime_(runtime), clocks_(clocks), language_(language) {}

  const Manifest& manifest() const override { return language_.manifest(); }
  Result<Bytes> read_module(const std::filesystem::path& package) const override {
    return language_.read_module(package);
  }
  Result<BakeFacts> boot(const bake::BootInput& input, const bake::KeepMemory& keep) const override;

 private:
  Result<BakeFacts> boot_here(const bake::BootInput& input, const bake::KeepMemory& keep) const;

  wasm::Runtime& runtime_;
  const wasi::Clocks& clocks_;
  const Language& language_;
};

/// WASI and the language's own imports.
Result<wasm::Linker> make_linker(wasm::Runtime& runtime, const Language& language);

}  // namespace sw::engine
