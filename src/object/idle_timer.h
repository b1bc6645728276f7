// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An object that nobody uses for a time to live is destroyed by its alarm. Moving the alarm at every use would
// cost a write each time, so it moves only when it lags by more than a tenth of that time.

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::object {

using storage::Time;

inline constexpr std::chrono::milliseconds kDefaultIdleTtl{86'400'000};

/// The time to live that a setting asks for. Unset, empty, not a number and negative mean the default; 0 means
/// that the object is never destroyed for being idle.
std::chrono::milliseconds parse_idle_ttl(std::optional<std::string_view> setting);

/// Where the alarm lies. Within a transaction: `Transaction::alarm` and `set_alarm`.
class AlarmSlot {
 public:
  virtual ~AlarmSlot() = default;
  virtual Result<std::optional<Time>> alarm() = 0;
  virtual Result<void> set_alarm(std::optional<Time> time) = 0;
};

/// The alarm of the object whose transaction is open.
class TransactionAlarm final : public AlarmSlot {
 public:
  explicit TransactionAlarm(storage::Transaction& transaction) : transaction_(transaction) {}
  Result<std::optional<Time>> alarm() override { return transaction_.alarm(); }
  Result<void> set_alarm(std::optional<Time> time) override { return transaction_.set_alarm(time); }

 private:
  storage::Transaction& transaction_;
};

/// Remembers what the alarm is set to. After a transaction that failed: `reset`.
class IdleTimer {
 public:
  /// To be called at every use. `rearmed(now)` is called when the alarm moves, to note when the object was last
  /// used. Returns when the object expires if nothing more happens; nullopt: never.
  Result<std::optional<Time>> touch(AlarmSlot& slot, Time now, std::chrono::milliseconds ttl,
                                    const std::function<Result<void>(Time now)>& rearmed);

  enum class Verdict : std::uint8_t {
    kDisabled,  ///< there is no time to live: the alarm means nothing
    kRearmed,   ///< the object was used meanwhile
    kDestroy,
  };

  /// To be called when the alarm has gone off.
  Result<Verdict> alarm(AlarmSlot& slot, Time now, std::chrono::milliseconds ttl, Time last_used);

  /// Forgets what the alarm is set to: it is read again at the next use.
  void reset() { known_ = false; }

 private:
  bool known_ = false;
  std::optional<Time> armed_;  // if known
};

}  // namespace sw::object
