// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An object that nobody uses for its time to live (TTL) is destroyed by its alarm. To move the
// alarm at every use would cost a write each time, so it moves only when it lags by more than a
// tenth of the TTL. Nothing is remembered between calls: a transaction may be undone or run again,
// and the alarm is what the storage says.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::object {

using storage::Time;

inline constexpr std::chrono::milliseconds kDefaultIdleTtl{86'400'000};

/// The TTL that a setting asks for. Unset, empty, not a number and negative mean the default; 0
/// means that the object is never destroyed for being idle.
std::chrono::milliseconds parse_idle_ttl(std::optional<std::string_view> setting);

struct IdleAlarm {
  std::optional<Time> expires;  ///< when the object expires if nothing more happens; nullopt: never
  /// The alarm was set just now: the caller stores when the object was last used
  bool moved = false;
};

/// Call it in the transaction of every use.
Result<IdleAlarm> touch_idle_alarm(storage::Transaction& transaction, Time now,
                                   std::chrono::milliseconds ttl);

enum class IdleVerdict : std::uint8_t {
  kDisabled,  ///< there is no TTL: the alarm means nothing
  kRearmed,   ///< the object was used meanwhile
  kDestroy,
};

/// Call it when the alarm has gone off. Sets the alarm again if the object was used meanwhile.
Result<IdleVerdict> check_idle_alarm(storage::Transaction& transaction, Time now,
                                     std::chrono::milliseconds ttl, Time last_used);

}  // namespace sw::object
