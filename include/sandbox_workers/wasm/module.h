// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::wasm {

/// Bytes that an active data segment puts into memory at instantiation.
struct DataSegment {
  std::uint32_t offset = 0;
  Bytes bytes;
};

/// What a scan of a module's code found out about the state an instance has beside its memory. An
/// instance may be kept after a run, its memory put back, only if that state cannot have changed.
struct StateFacts {
  /// A start function runs at instantiation, before an image could be in place
  bool has_start = false;
  bool writes_tables = false;   ///< code contains table.set, grow, fill, copy or init
  bool drops_segments = false;  ///< code contains data.drop or elem.drop
  bool passive_data = false;    ///< memory.init needs its data segments, so they stay in the module
  bool imports_state = false;   ///< imports a memory, a table or a mutable global
  std::uint32_t mutable_globals = 0;  ///< made visible as exports named kGlobalExportPrefix + index

  bool keepable() const {
    return !has_start && !writes_tables && !drops_segments && !imports_state;
  }
  /// Empty if an instance may be kept at all; otherwise the first reason why not.
  std::string reason_not_keepable() const;
};

inline constexpr char kGlobalExportPrefix[] = "sw:global:";

/// A module made ready for images: custom sections dropped, active data segments taken out (an
/// image holds their effect), mutable globals exported.
struct PreparedModule {
  Bytes wasm;
  std::vector<DataSegment> segments;
  StateFacts facts;
};

/// Errors: kInvalidArgument when `wasm` is not a valid module or uses what we do not support.
Result<PreparedModule> prepare_module(BytesView wasm);

/// Translates WebAssembly text to binary. For tests.
Result<Bytes> wat_to_wasm(std::string_view text);

struct ImportName {  // what a module wants from its host
  std::string module;
  std::string name;
};

/// Compiled code. Immutable and thread-safe; cheap to copy (shared).
class Module {
 public:
  static Result<Module> compile(Runtime& runtime, BytesView wasm);
  /// Maps code that `serialize` wrote. Trust: the file is native code; the caller has checked its
  /// digest.
  static Result<Module> load(Runtime& runtime, const std::filesystem::path& path);
  Result<Bytes> serialize() const;

  std::vector<ImportName> imports() const;
  std::vector<std::string> exports() const;

  struct State;
  State& state() const { return *state_; }

 private:
  explicit Module(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // shared by copies of this handle and by the instances made from it
  std::shared_ptr<State> state_;
};

}  // namespace sw::wasm
