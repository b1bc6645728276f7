// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a run changed, and how it is undone.

#include <cstring>

#include "sandbox_workers/wasm/instance.h"
#include "wasm/dirty_pages.h"
#include "wasm/instance_state.h"

namespace sw::wasm {

namespace {

bool same_value(const wasmtime_val_t& a, const wasmtime_val_t& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case WASMTIME_I32:
    case WASMTIME_F32: return a.of.i32 == b.of.i32;
    case WASMTIME_I64:
    case WASMTIME_F64: return a.of.i64 == b.of.i64;
    case WASMTIME_V128: return std::memcmp(a.of.v128, b.of.v128, sizeof a.of.v128) == 0;
    default: return false;  // a reference cannot be compared, so it counts as changed
  }
}

}  // namespace

DirtyPageScanner& Instance::State::dirty_scanner() {
  if (!scanner) scanner = DirtyPageScanner::create();
  return *scanner;
}

Result<void> Instance::take_changed_pages(std::vector<ByteRange>& ranges) {
  ranges.clear();
  if (state_->slot == nullptr) return {};
  return state_->slot->take_changed(state_->dirty_scanner(), ranges);
}

bool Instance::globals_are_initial() const {
  for (const State::Global& global : state_->globals) {
    wasmtime_val_t now;
    wasmtime_global_get(state_->context, &global.global, &now);
    if (!same_value(now, global.initial)) return false;
  }
  return true;
}

std::string Instance::reason_not_at_rest() const {
  if (poisoned_) return "its last call ended abnormally";
  if (std::string reason = state_->pre->facts.reason_not_keepable(); !reason.empty()) return reason;
  if (!globals_are_initial()) return "a global differs from its initial value";
  return {};
}

ResetStats Instance::reset() {
  ResetStats stats;
  if (poisoned_) stats.verdict = KeepVerdict::kEndedAbnormally;
  else if (!state_->pre->image || !state_->pre->facts.keepable())
    stats.verdict = KeepVerdict::kNotKeepable;
  else if (state_->slot->size() != state_->slot->size_at_rest())
    stats.verdict = KeepVerdict::kMemoryGrew;
  else if (!globals_are_initial()) stats.verdict = KeepVerdict::kGlobalChanged;
  else {
    const auto pages = state_->slot->reset(state_->dirty_scanner(), state_->scratch);
    stats.verdict = pages.ok() ? KeepVerdict::kKept : KeepVerdict::kHostFailed;
    if (pages.ok()) stats.pages_put_back = *pages;
  }
  return stats;
}

}  // namespace sw::wasm
