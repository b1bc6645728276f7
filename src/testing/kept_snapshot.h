// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/engine/engine.h"

namespace sw::testing {

/// A copy of a snapshot, whole, from which instances can be restored.
class KeptSnapshot final : public engine::SnapshotSource {
 public:
  static Result<KeptSnapshot> copy(const engine::SessionSnapshot& snapshot);

  std::uint64_t memory_bytes() const override { return memory_.size(); }
  Result<BytesView> fill(PageSink& memory, BytesView base) override;
  /// Does the snapshot, of which this is a copy, tell the truth: is whatever differs from `before`, a
  /// copy of the last one of the same instance, within `changed`? Null: from `base` and zeros.
  Result<void> check_changed(const engine::SessionSnapshot& snapshot,
                             const KeptSnapshot* before) const;

 private:
  KeptSnapshot(Bytes memory, Bytes extra) : memory_(std::move(memory)), extra_(std::move(extra)) {}
  Bytes memory_;
  Bytes extra_;
};

}  // namespace sw::testing
