// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/time_zone.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>

#include "sandbox_workers/base/files.h"

namespace sw::engine::javascript {

namespace {

constexpr std::int64_t kMomentMax = 8'640'000'000'000;
constexpr char kDatabase[] = "/usr/share/zoneinfo";

/// Reads the text of a POSIX time zone from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// Letters, or anything between < and >.
  bool name() {
    std::size_t size = 0;
    if (take('<')) {
      size = text_.find('>');
      if (size == std::string_view::npos) return false;
      text_.remove_prefix(size + 1);
      return size >= 1;
    }
    while (size < text_.size() && ((text_[size] | 0x20) >= 'a' && (text_[size] | 0x20) <= 'z'))
      ++size;
    text_.remove_prefix(size);
    return size >= 3;
  }
  std::optional<std::int32_t> number(std::int32_t max) {
    std::size_t size = 0;
    std::int32_t value = 0;
    while (size < text_.size() && size < 4 && text_[size] >= '0' && text_[size] <= '9') {
      value = value * 10 + (text_[size++] - '0');
    }
    if (size == 0 || value > max) return std::nullopt;
    text_.remove_prefix(size);
    return value;
  }
  /// [+-]h[:m[:s]] in seconds.
  std::optional<std::int32_t> time() {
    const bool negative = take('-');
    if (!negative) take('+');
    auto hours = number(167);
    if (!hours) return std::nullopt;
    std::int32_t seconds = *hours * 3600;
    for (std::int32_t unit = 60; unit >= 1 && take(':'); unit /= 60) {
      const auto part = number(59);
      if (!part) return std::nullopt;
      seconds += *part * unit;
    }
    return negative ? -seconds : seconds;
  }

 private:
  std::string_view text_;
};

/// Big-endian numbers of a TZif file; reading past the end gives zeros and sets `failed`.
class BigEndian {
 public:
  explicit BigEndian(BytesView bytes) : bytes_(bytes) {}
  std::int64_t take(std::size_t size) {
    if (bytes_.size() < size) {
      failed = true;
      return 0;
    }
    std::uint64_t value = std::to_integer<std::uint64_t>(bytes_[0]) >= 0x80 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = 0; i < size; ++i)
      value = (value << 8) | std::to_integer<std::uint64_t>(bytes_[i]);
    bytes_ = bytes_.subspan(size);
    return static_cast<std::int64_t>(value);
  }
  void skip(std::size_t size) {
    failed = failed || bytes_.size() < size;
    bytes_ = bytes_.subspan(std::min(size, bytes_.size()));
  }
  BytesView rest() const { return bytes_; }
  bool failed = false;

 private:
  BytesView bytes_;
};

struct Counts {
  std::size_t utc = 0, standard = 0, leap = 0, times = 0, types = 0, names = 0;
};

Counts take_header(BigEndian& in) {
  in.skip(20);  // magic, version, reserved
  Counts counts;
  for (std::size_t* count :
       {&counts.utc, &counts.standard, &counts.leap, &counts.times, &counts.types, &counts.names}) {
    *count = static_cast<std::size_t>(in.take(4)) & 0xFFFFF;
  }
  return counts;
}

/// The moment, in local seconds, at which a rule's day comes in a year.
std::int64_t local_moment(int year, std::int32_t month, std::int32_t week, std::int32_t weekday,
                          std::int32_t seconds) {
  using namespace std::chrono;
  const auto m = std::chrono::year(year) / std::chrono::month(static_cast<unsigned>(month));
  const std::chrono::weekday day(static_cast<unsigned>(weekday));
  const sys_days date =
      week == 5 ? sys_days(m / day[last]) : sys_days(m / day[static_cast<unsigned>(week)]);
  return date.time_since_epoch() / 1s * 1 + seconds;
}

}  // namespace

std::optional<TimeZone> TimeZone::parse(std::string_view text) {
  if (text.starts_with(':')) text.remove_prefix(1);
  if (text.empty()) return TimeZone();
  if (const auto rule = parse_rule(text)) {
    TimeZone zone;
    zone.first_ = rule->standard;
    zone.rule_ = rule;
    return zone;
  }
  return load(text);
}

std::optional<TimeZone::Rule> TimeZone::parse_rule(std::string_view text) {
  Reader in(text);
  Rule rule;
  if (!in.name()) return std::nullopt;
  if (in.at_end()) {
    // A bare abbreviation says nothing, except these.
    return text == "UTC" || text == "GMT" || text == "Z" ? std::optional(rule) : std::nullopt;
  }
  const auto behind = in.time();
  if (!behind) return std::nullopt;
  rule.standard = -*behind;
  if (in.at_end()) return rule;
  if (!in.name()) return std::nullopt;
  rule.has_daylight = true;
  rule.daylight = rule.standard + 3600;
  if (!in.take(',')) {
    const auto daylight_behind = in.time();
    if (!daylight_behind || !in.take(',')) return std::nullopt;
    rule.daylight = -*daylight_behind;
  }
  for (Rule::Day* day : {&rule.begin, &rule.end}) {
    if (day == &rule.end && !in.take(',')) return std::nullopt;
    // the other forms name days of the year; no zone uses them now
    if (!in.take('M')) return std::nullopt;
    const auto month = in.number(12);
    const bool dot = in.take('.');
    const auto week = in.number(5);
    const bool second_dot = in.take('.');
    const auto weekday = in.number(6);
    if (!month || *month < 1 || !dot || !week || *week < 1 || !second_dot || !weekday)
      return std::nullopt;
    const auto seconds = in.take('/') ? in.time() : std::optional<std::int32_t>(7200);
    if (!seconds) return std::nullopt;
    *day = {*month, *week, *weekday, *seconds};
  }
  return in.at_end() ? std::optional(rule) : std::nullopt;
}

std::int32_t TimeZone::offset_by_rule(const Rule& rule, std::int64_t moment) {
  if (!rule.has_daylight) return rule.standard;
  using namespace std::chrono;
  const auto day = floor<days>(sys_seconds(seconds(moment + rule.standard)));
  const int year = static_cast<int>(year_month_day(day).year());
  const auto at = [&](const Rule::Day& change, std::int32_t offset_before) {
    return local_moment(year, change.month, change.week, change.weekday, change.seconds) -
           offset_before;
  };
  const std::int64_t begin = at(rule.begin, rule.standard);
  const std::int64_t end = at(rule.end, rule.daylight);
  const bool is_daylight =
      begin < end ? moment >= begin && moment < end : moment >= begin || moment < end;
  return is_daylight ? rule.daylight : rule.standard;
}

std::optional<TimeZone> TimeZone::load(std::string_view name) {
  // The name comes from the run's environment: it must not lead anywhere else.
  const bool plain =
      !name.empty() && name.size() < 64 && name.front() != '/' &&
      name.find("..") == std::string_view::npos && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '+' || c == '/';
      });
  if (!plain) return std::nullopt;
  const std::filesystem::path path = std::filesystem::path(kDatabase) / name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const auto file = read_file(path);
  return file.ok() ? of_file(*file) : std::nullopt;
}

std::optional<TimeZone> TimeZone::of_file(BytesView file) {
  if (file.size() < 44 || as_text(file.first(4)) != "TZif") return std::nullopt;
  // The first block has 32-bit times; the second, with 64 bits, says all of it and more.
  BigEndian in(file);
  const Counts old = take_header(in);
  in.skip(old.times * 5 + old.types * 6 + old.names + old.leap * 8 + old.standard + old.utc);
  const Counts counts = take_header(in);
  if (counts.times * 9 > in.rest().size()) return std::nullopt;
  TimeZone zone;
  zone.changes_.resize(counts.times);
  for (Change& change : zone.changes_) change.at = in.take(8);
  std::vector<std::size_t> types;
  for (std::size_t i = 0; i < counts.times; ++i)
    types.push_back(static_cast<std::size_t>(in.take(1) & 0xFF));
  std::vector<std::int32_t> offsets;
  for (std::size_t i = 0; i < counts.types; ++i) {
    offsets.push_back(static_cast<std::int32_t>(in.take(4)));
    in.skip(2);
  }
  in.skip(counts.names + counts.leap * 12 + counts.standard + counts.utc);
  if (in.failed || offsets.empty()) return std::nullopt;
  for (std::size_t i = 0; i < counts.times; ++i) {
    if (types[i] >= offsets.size()) return std::nullopt;
    zone.changes_[i].offset = offsets[types[i]];
  }
  zone.first_ = offsets.front();
  std::string_view footer = as_text(in.rest());
  if (footer.starts_with('\n')) footer.remove_prefix(1);
  zone.rule_ = parse_rule(footer.substr(0, footer.find('\n')));
  return zone;
}

std::int32_t TimeZone::offset_at(std::int64_t moment) const {
  // The guest may ask for anything; beyond these a date does not exist.
  moment = std::clamp(moment, -kMomentMax, kMomentMax);
  const auto after = std::ranges::upper_bound(changes_, moment, {}, &Change::at);
  if (after == changes_.end() && rule_) return offset_by_rule(*rule_, moment);
  if (after == changes_.begin()) return first_;
  return std::prev(after)->offset;
}

}  // namespace sw::engine::javascript
