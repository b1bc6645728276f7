// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/thread_safety.h"
#include "storage/storage.h"

namespace sw::object {

/// An object's storage that passes everything on, and notes what the object's host has to know.
/// Threads: any; they wait for each other, since the host reads the alarm while the object works.
class WatchedStorage final : public storage::ObjectStorage {
 public:
  /// `on_alarm_set` is called after a commit that set the alarm.
  WatchedStorage(std::unique_ptr<storage::ObjectStorage> inner,
                 std::function<void(storage::Time)> on_alarm_set)
      : name_(inner->name()),
        generation_(inner->generation()),
        on_alarm_set_(std::move(on_alarm_set)),
        inner_(std::move(inner)) {}

  const storage::ObjectName& name() const override { return name_; }
  std::uint64_t generation() const override { return generation_; }
  Result<void> read(const std::function<Result<void>(storage::Reader&)>& body) override;
  Result<void> transact(const std::function<Result<void>(storage::Transaction&)>& body) override;
  Result<void> destroy() override;

  /// Another owner took the object over, or a commit failed: what is in memory may not be what is
  /// stored. Stays true.
  bool lost() const { return lost_; }

 private:
  const storage::ObjectName name_;
  const std::uint64_t generation_;
  const std::function<void(storage::Time)> on_alarm_set_;
  Mutex mutex_;
  const std::unique_ptr<storage::ObjectStorage> inner_ SW_PT_GUARDED_BY(mutex_);
  std::atomic<bool> lost_ = false;
};

}  // namespace sw::object
