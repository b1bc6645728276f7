// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/idle_alarm.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sw::object {

namespace {

// Longer than any use, and far from the end of what a time can be added to.
constexpr double kLongestTtlMs = 1e14;

}  // namespace

std::chrono::milliseconds parse_idle_ttl(std::optional<std::string_view> setting) {
  if (!setting || setting->empty()) return kDefaultIdleTtl;
  double number = 0;
  const char* end = setting->data() + setting->size();
  const auto parsed = std::from_chars(setting->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(number) || number < 0)
    return kDefaultIdleTtl;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(number, kLongestTtlMs)));
}

Result<IdleAlarm> touch_idle_alarm(storage::Transaction& transaction, Time now,
                                   std::chrono::milliseconds ttl) {
  SW_TRY(const std::optional<Time> armed, transaction.alarm());
  if (ttl.count() == 0) {
    if (armed) SW_CHECK_OK(transaction.set_alarm(std::nullopt));
    return IdleAlarm{};
  }
  const Time wanted = now + ttl;
  // A later one is of a longer TTL, or of a clock that was ahead.
  if (armed && *armed <= wanted && *armed >= wanted - ttl / 10) return IdleAlarm{.expires = armed};
  SW_CHECK_OK(transaction.set_alarm(wanted));
  return IdleAlarm{.expires = wanted, .moved = true};
}

Result<IdleVerdict> check_idle_alarm(storage::Transaction& transaction, Time now,
                                     std::chrono::milliseconds ttl, Time last_used) {
  if (ttl.count() == 0) return IdleVerdict::kDisabled;
  if (last_used <= now - ttl) return IdleVerdict::kDestroy;
  // A time to come is of a clock that was ahead, or of a damaged row.
  SW_CHECK_OK(transaction.set_alarm(std::min(last_used, now) + ttl));
  return IdleVerdict::kRearmed;
}

}  // namespace sw::object
