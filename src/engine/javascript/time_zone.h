// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/files.h"

namespace sw::engine::javascript {

/// The offset of local time, as the environment variable TZ asks for.
class TimeZone {
 public:
  /// UTC.
  TimeZone() = default;

  /// A fixed POSIX zone ("UTC", "UTC+3", "<+03>-3": the sign says how far *behind* UTC the zone
  /// is), or a name of the host's time zone database ("Europe/Berlin"). nullopt for anything else.
  static std::optional<TimeZone> parse(std::string_view text);
  /// What a file of the database says (TZif); nullopt when it is damaged.
  static std::optional<TimeZone> of_file(BytesView file);

  /// Seconds east of UTC at a moment in seconds since 1970.
  std::int32_t offset_at(std::int64_t moment) const;

 private:
  struct Change {
    std::int64_t at = 0;
    std::int32_t offset = 0;
  };
  /// A zone's rule for the years after its last recorded change, of the form that all current zones
  /// have.
  struct Rule {
    struct Day {
      std::int32_t month = 0;    ///< 1 to 12
      std::int32_t week = 0;     ///< 1 to 5, where 5 is the last
      std::int32_t weekday = 0;  ///< 0 is Sunday
      std::int32_t seconds = 0;  ///< of local time
    };
    std::int32_t standard = 0;
    std::int32_t daylight = 0;
    Day begin;
    Day end;
    bool has_daylight = false;
  };

  static std::optional<Rule> parse_rule(std::string_view text);
  static std::optional<TimeZone> load(std::string_view name);
  static std::int32_t offset_by_rule(const Rule& rule, std::int64_t moment);

  std::vector<Change> changes_;  // by time
  std::int32_t first_ = 0;       // before the first change
  std::optional<Rule> rule_;     // after the last
};

}  // namespace sw::engine::javascript
