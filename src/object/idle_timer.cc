// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/idle_timer.h"

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

Result<std::optional<Time>> IdleTimer::touch(AlarmSlot& slot, Time now, std::chrono::milliseconds ttl,
                                             const std::function<Result<void>(Time now)>& rearmed) {
  if (!known_) {
    SW_TRY(armed_, slot.alarm());
    known_ = true;
  }
  if (ttl.count() == 0) {
    if (armed_) SW_CHECK_OK(slot.set_alarm(std::nullopt));
    armed_ = std::nullopt;
    return std::optional<Time>();
  }
  const Time wanted = now + ttl;
  if (armed_ && wanted - *armed_ <= ttl / 10) return armed_;
  SW_CHECK_OK(slot.set_alarm(wanted));
  armed_ = wanted;
  SW_CHECK_OK(rearmed(now));
  return armed_;
}

Result<IdleTimer::Verdict> IdleTimer::alarm(AlarmSlot& slot, Time now, std::chrono::milliseconds ttl,
                                            Time last_used) {
  reset();  // the alarm that went off is spent
  if (ttl.count() == 0) return Verdict::kDisabled;
  const Time expires = last_used + ttl;
  if (expires <= now) return Verdict::kDestroy;
  SW_CHECK_OK(slot.set_alarm(expires));
  armed_ = expires;
  known_ = true;
  return Verdict::kRearmed;
}

}  // namespace sw::object
