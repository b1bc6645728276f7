// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Time zones: what a guest's TZ says, and the files of the host's database. The first byte says
// which follows.

#include "engine/javascript/time_zone.h"
#include "fuzz/fuzz.h"

namespace sw::fuzz {

SW_FUZZ(time_zone) {
  using engine::javascript::TimeZone;
  Choices choices(input);
  const bool is_file = choices.coin();
  std::int64_t moments[4];
  for (std::int64_t& moment : moments) moment = static_cast<std::int64_t>(choices.number(8));
  // A name of the database would have a file read.
  const std::string text = choices.rest_text();
  const bool is_rule = text.find_first_of(",0123456789<") != std::string::npos;
  const auto zone = is_file   ? TimeZone::of_file(as_bytes(text))
                    : is_rule ? TimeZone::parse(text)
                              : std::nullopt;
  if (!zone) return;
  for (const std::int64_t moment : moments) {
    const std::int32_t offset = zone->offset_at(moment);
    if (!is_file)
      require(offset > -1'000'000 && offset < 1'000'000, "an offset is within a week or so");
  }
}

}  // namespace sw::fuzz
