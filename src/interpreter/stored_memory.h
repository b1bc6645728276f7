// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/thread_safety.h"
#include "sandbox_workers/engine/engine.h"
#include "snapshot/snapshot_store.h"

namespace sw::interpreter {

/// A version of a context's memory, for the engine.
class StoredMemory final : public engine::SnapshotSource {
 public:
  /// `mutex` guards the store, and both outlive the instance that is made from this. Nobody holds it
  /// who touches the instance's memory, except where the memory is known to be complete.
  StoredMemory(snapshot::SnapshotStore& store, Mutex& mutex, std::string context,
               const snapshot::VersionInfo& version)
      : mutex_(mutex), store_(store), context_(std::move(context)), version_(version) {}

  std::uint64_t memory_bytes() const override { return version_.memory_bytes; }
  Result<BytesView> fill(PageSink& memory, BytesView base) override {
    engine::PageSupply none;
    return fill(memory, base, {}, none);
  }
  Result<BytesView> fill(PageSink& memory, BytesView base, const engine::LeaveOut& leave_out,
                         engine::PageSupply& late) override {
    const MutexLock lock(mutex_);
    SW_TRY(restored_,
           store_.restore(context_, version_.id, version_.build, base, memory, leave_out));
    if (restored_->load) {
      late = [&mutex = mutex_, load = std::move(restored_->load)](std::uint32_t page,
                                                                  PageSink& to) {
        const MutexLock held(mutex);
        return load(page, to);
      };
    }
    return BytesView(restored_->host_tables);
  }

  /// What is known to be stored of the memory; nothing before it has been filled.
  std::optional<snapshot::LiveMemory> take_live() {
    if (!restored_) return std::nullopt;
    return std::move(restored_->live);
  }

 private:
  Mutex& mutex_;
  snapshot::SnapshotStore& store_ SW_GUARDED_BY(mutex_);
  const std::string context_;
  const snapshot::VersionInfo& version_;
  std::optional<snapshot::Restored> restored_;
};

}  // namespace sw::interpreter
