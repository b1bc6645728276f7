// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "snapshot/catalog.h"
#include "snapshot/sealed_row.h"

namespace sw::snapshot {

namespace {

constexpr char kSuffix = 'v';
constexpr std::uint64_t kUsualInterval = 10;
constexpr std::size_t kRangesMax = 20;

}  // namespace

std::string version_key(std::uint32_t family, std::uint32_t owner, std::uint32_t sequence) {
  return pack_key(family, {owner, sequence}) + kSuffix;
}

std::optional<PackId> version_of_key(std::string_view key) {
  if (key.empty() || key.back() != kSuffix) return std::nullopt;
  return pack_of_key(key.substr(0, key.size() - 1));
}

Bytes encode_version_row(std::string_view key, const KeptVersion& version, std::string_view about) {
  WireWriter out;
  out.varint(version.id.owner);
  out.u8(version.copy ? 1 : 0);
  out.varint(version.step);
  out.zigzag(version.time_ms);
  out.varint(version.bytes);
  out.varint(version.parent.owner);
  out.varint(version.parent.sequence);
  out.text(about);
  return sealed(key, out);
}

Result<std::pair<KeptVersion, std::string>> decode_version_row(std::string_view key,
                                                               BytesView row) {
  SW_TRY(WireReader in, unsealed(key, row));
  KeptVersion version;
  version.id.owner = in.number();
  version.id.sequence = version_of_key(key).value_or(PackId{}).sequence;
  const std::uint8_t kind = in.u8();
  version.copy = kind == 1;
  version.step = in.varint();
  version.time_ms = in.zigzag();
  version.bytes = in.varint();
  version.parent.owner = in.number();
  version.parent.sequence = in.number();
  std::string about = in.text(kAboutBytesMax);
  const bool valid =
      in.at_end() && version.id && kind <= 1 && version.parent.sequence < version.id.sequence;
  if (!valid) return Error{ErrorCode::kCorrupt, "snapshot version row is invalid"};
  return std::pair(version, std::move(about));
}

std::uint64_t key_interval(const HistoryLimits& limits) {
  return limits.every == 0 ? kUsualInterval : limits.every;
}

std::vector<std::size_t> surplus(std::span<const KeptVersion> versions,
                                 const std::set<VersionId>& pinned, const HistoryLimits& limits) {
  const std::size_t older =
      versions.size() > limits.full ? versions.size() - limits.full : std::size_t{0};
  std::vector<bool> goes(versions.size());
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  std::optional<std::uint64_t> kept_interval;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const KeptVersion& version = versions[i];
    if (i < older) {
      const std::uint64_t interval = version.step / key_interval(limits);
      goes[i] = limits.every == 0 || version.copy || kept_interval == interval;
      if (!goes[i]) kept_interval = interval;
    }
    if (pinned.contains(version.id)) goes[i] = false;
    else if (!goes[i]) {
      ++count;
      bytes += version.copy ? 0 : version.bytes;
    }
  }
  std::vector<std::size_t> surplus;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const bool counts = !goes[i] && !pinned.contains(versions[i].id);
    if (counts && (bytes > limits.bytes_max || count > limits.steps_max)) {
      goes[i] = true;
      --count;
      bytes -= versions[i].copy ? 0 : versions[i].bytes;
    }
    if (goes[i]) surplus.push_back(i);
  }
  return surplus;
}

std::string steps_of(std::span<const KeptVersion> versions) {
  std::vector<std::uint64_t> steps;
  for (const KeptVersion& version : versions) steps.push_back(version.step);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::vector<std::string> ranges;
  for (std::size_t begin = 0; begin < steps.size();) {
    std::size_t end = begin + 1;
    while (end < steps.size() && steps[end] == steps[end - 1] + 1) ++end;
    ranges.push_back(end - begin == 1 ? fmt::format("{}", steps[begin])
                                      : fmt::format("{} to {}", steps[begin], steps[end - 1]));
    begin = end;
  }
  if (ranges.size() <= kRangesMax) return fmt::format("{}", fmt::join(ranges, ", "));
  const auto half = static_cast<std::ptrdiff_t>(kRangesMax / 2);
  return fmt::format("{}, …, {}", fmt::join(ranges.begin(), ranges.begin() + half, ", "),
                     fmt::join(ranges.end() - half, ranges.end(), ", "));
}

}  // namespace sw::snapshot
