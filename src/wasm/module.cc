// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/module.h"

#include <fmt/format.h>
#include <sw_prepare.h>

#include "wasm/runtime_state.h"

namespace sw::wasm {

namespace {

std::string to_string(const wasm_name_t* name) { return {name->data, name->size}; }

}  // namespace

std::string StateFacts::reason_not_keepable() const {
  if (has_start) return "it has a start function";
  if (writes_tables) return "its code writes tables";
  if (drops_segments) return "its code drops segments";
  if (imports_state) return "it imports a memory, a table or a mutable global";
  return {};
}

Result<PreparedModule> prepare_module(BytesView wasm) {
  char* error = nullptr;
  const std::unique_ptr<sw_prepared_t, decltype(&sw_prepared_delete)> prepared(
      sw_prepare(reinterpret_cast<const std::uint8_t*>(wasm.data()), wasm.size(), &error),
      &sw_prepared_delete);
  if (!prepared) {
    Error failure{ErrorCode::kInvalidArgument,
                  fmt::format("not a usable WebAssembly module: {}", error), 0};
    sw_prepare_free_error(error);
    return failure;
  }
  PreparedModule result;
  const sw_prepared_facts_t facts = sw_prepared_facts(prepared.get());
  result.facts = {.has_start = facts.has_start,
                  .writes_tables = facts.writes_tables,
                  .drops_segments = facts.drops_segments,
                  .passive_data = facts.passive_data,
                  .imports_state = facts.imports_state,
                  .mutable_globals = facts.mutable_globals};
  std::size_t length = 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(sw_prepared_wasm(prepared.get(), &length));
  result.wasm.assign(bytes, bytes + length);
  const std::size_t count = sw_prepared_segment_count(prepared.get());
  result.segments.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    DataSegment& segment = result.segments[i];
    bytes = reinterpret_cast<const std::byte*>(
        sw_prepared_segment(prepared.get(), i, &segment.offset, &length));
    segment.bytes.assign(bytes, bytes + length);
  }
  return result;
}

Result<Bytes> wat_to_wasm(std::string_view text) {
  wasm_byte_vec_t wasm;
  SW_CHECK_OK(
      check(wasmtime_wat2wasm(text.data(), text.size(), &wasm), ErrorCode::kInvalidArgument));
  const auto* bytes = reinterpret_cast<const std::byte*>(wasm.data);
  Bytes result(bytes, bytes + wasm.size);
  wasm_byte_vec_delete(&wasm);
  return result;
}

Result<Module> Module::compile(Runtime& runtime, BytesView wasm) {
  wasmtime_module_t* module = nullptr;
  SW_CHECK_OK(check(
      wasmtime_module_new(runtime.state().engine.get(),
                          reinterpret_cast<const std::uint8_t*>(wasm.data()), wasm.size(), &module),
      ErrorCode::kInvalidArgument));
  return Module(std::make_shared<State>(State{ModulePtr(module)}));
}

Result<Module> Module::load(Runtime& runtime, const std::filesystem::path& path) {
  wasmtime_module_t* module = nullptr;
  SW_CHECK_OK(
      check(wasmtime_module_deserialize_file(runtime.state().engine.get(), path.c_str(), &module),
            ErrorCode::kCorrupt));
  return Module(std::make_shared<State>(State{ModulePtr(module)}));
}

Result<Bytes> Module::serialize() const {
  wasm_byte_vec_t code;
  SW_CHECK_OK(check(wasmtime_module_serialize(state_->module.get(), &code), ErrorCode::kInternal));
  const auto* bytes = reinterpret_cast<const std::byte*>(code.data);
  Bytes result(bytes, bytes + code.size);
  wasm_byte_vec_delete(&code);
  return result;
}

std::vector<ImportName> Module::imports() const {
  wasm_importtype_vec_t types;
  wasmtime_module_imports(state_->module.get(), &types);
  std::vector<ImportName> names;
  for (std::size_t i = 0; i < types.size; ++i) {
    names.push_back({to_string(wasm_importtype_module(types.data[i])),
                     to_string(wasm_importtype_name(types.data[i]))});
  }
  wasm_importtype_vec_delete(&types);
  return names;
}

std::vector<std::string> Module::exports() const {
  wasm_exporttype_vec_t types;
  wasmtime_module_exports(state_->module.get(), &types);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < types.size; ++i)
    names.push_back(to_string(wasm_exporttype_name(types.data[i])));
  wasm_exporttype_vec_delete(&types);
  return names;
}

}  // namespace sw::wasm
