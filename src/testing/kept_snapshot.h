// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/engine/engine.h"

namespace sw::testing {

/// A copy of a snapshot, whole, from which instances can be restored.
class KeptSnapshot final : public engine::SnapshotSource {
 public:
  explicit KeptSnapshot(const engine::SessionSnapshot& snapshot);

  std::uint64_t memory_bytes() const override { return memory_.size(); }
  Result<BytesView> fill(std::span<std::byte> memory, BytesView base) override;

 private:
  Bytes memory_;
  Bytes extra_;
};

/// Does a snapshot tell the truth: is whatever differs from `base` and zeros within `changed`?
Result<void> check_changed(const engine::SessionSnapshot& snapshot);

}  // namespace sw::testing
