// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/frame.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <concepts>
#include <utility>

namespace sw::storage {

namespace {

constexpr std::string_view kFileMagic = "SWJOURNL";
constexpr std::uint32_t kFileVersion = 1;
constexpr std::uint32_t kFrameMagic = 0x464a5753;  // "SWJF"
constexpr std::size_t kHeaderFieldsBytes = 8 + 4 + 8 + 8;
constexpr std::size_t kFrameHeaderBytes = 4 + 4 + 8 + 8 + 8;
constexpr std::size_t kPartHeaderBytes = 8 + 8 + 8;
constexpr std::uint64_t kFrameBytesMax = std::uint64_t{1} << 34U;

std::uint64_t checksum(BytesView bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

template <std::integral T>
void append(Bytes& out, T number) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(number) >> (8 * i)));
  }
}

void append_varint(Bytes& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) out.push_back(static_cast<std::byte>(number | 0x80));
  out.push_back(static_cast<std::byte>(number));
}

void append_bytes(Bytes& out, BytesView bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Reads numbers; past the end they are 0 and `ok` is false.
class Source {
 public:
  explicit Source(BytesView bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }
  BytesView take(std::uint64_t count) {
    if (count > left_.size()) ok_ = false;
    if (!ok_) return {};
    const BytesView taken = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  template <class T>
  T fixed() {
    std::uint64_t number = 0;
    const BytesView bytes = take(sizeof(T));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      number |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return static_cast<T>(number);
  }
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const BytesView byte = take(1);
      if (byte.empty()) return 0;
      number |= (static_cast<std::uint64_t>(byte[0]) & 0x7fU) << shift;
      if ((static_cast<std::uint64_t>(byte[0]) & 0x80U) == 0) return number;
    }
    ok_ = false;
    return 0;
  }

 private:
  BytesView left_;
  bool ok_ = true;
};

std::optional<Rows> decode_rows(BytesView bytes) {
  Rows rows;
  Source in(bytes);
  while (!in.at_end()) {
    const std::uint64_t table = in.varint();
    const std::string key(as_text(in.take(in.varint())));
    const std::uint64_t size = in.varint();  // one more than the value has; 0: the row is erased
    const BytesView value = in.take(size == 0 ? 0 : size - 1);
    if (!in.ok() || table > UINT16_MAX) return std::nullopt;
    rows.insert_or_assign(
        {static_cast<TableId>(table), key},
        size == 0 ? Value() : std::make_shared<const Bytes>(value.begin(), value.end()));
  }
  return rows;
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

}  // namespace

Bytes encode(const JournalHeader& header) {
  Bytes out;
  append_bytes(out, as_bytes(kFileMagic));
  append(out, kFileVersion);
  append(out, header.first_sequence);
  append(out, header.salt);
  append(out, checksum(out, 0));
  out.resize(kJournalHeaderBytes);
  return out;
}

Result<std::optional<JournalHeader>> decode_journal_header(BytesView file) {
  Source in(file);
  const bool magic = as_text(in.take(kFileMagic.size())) == kFileMagic;
  const auto version = in.fixed<std::uint32_t>();
  JournalHeader header;
  header.first_sequence = in.fixed<std::uint64_t>();
  header.salt = in.fixed<std::uint64_t>();
  const auto sum = in.fixed<std::uint64_t>();
  if (!in.ok() || !magic || sum != checksum(file.first(kHeaderFieldsBytes), 0)) {
    return std::optional<JournalHeader>();
  }
  if (version != kFileVersion) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the journal has format {}, but this program supports {}: it was "
                             "written by a newer version",
                             version, kFileVersion)};
  }
  return std::optional(header);
}

void FrameEncoder::add(LayerNumber layer, const Rows& rows) {
  Part part{.layer = layer, .rows = {}};
  for (const auto& [name, value] : rows) {
    append_varint(part.rows, name.first);
    append_varint(part.rows, name.second.size());
    append_bytes(part.rows, as_bytes(name.second));
    append_varint(part.rows, value ? value->size() + 1 : 0);
    if (value) append_bytes(part.rows, *value);
  }
  parts_.push_back(std::move(part));
}

std::size_t FrameEncoder::bytes() const {
  std::size_t bytes = kFrameHeaderBytes + parts_.size() * kPartHeaderBytes;
  for (const Part& part : parts_) bytes += part.rows.size();
  return aligned(bytes);
}

Bytes FrameEncoder::finish(std::uint64_t sequence, std::uint64_t salt) const {
  Bytes table;
  std::uint64_t rows_bytes = 0;
  for (const Part& part : parts_) {
    append(table, part.layer);
    append(table, std::uint64_t{part.rows.size()});
    append(table, checksum(part.rows, sequence ^ salt));
    rows_bytes += part.rows.size();
  }
  Bytes out;
  out.reserve(bytes());
  append(out, kFrameMagic);
  append(out, static_cast<std::uint32_t>(parts_.size()));
  append(out, rows_bytes);
  append(out, sequence);
  append(out, checksum(table, checksum(out, sequence ^ salt)));
  append_bytes(out, table);
  for (const Part& part : parts_) append_bytes(out, part.rows);
  out.resize(aligned(out.size()));
  return out;
}

std::optional<Frame> decode_frame(BytesView bytes, std::uint64_t salt) {
  Source in(bytes);
  const auto magic = in.fixed<std::uint32_t>();
  const auto parts = in.fixed<std::uint32_t>();
  const auto rows_bytes = in.fixed<std::uint64_t>();
  Frame frame;
  frame.sequence = in.fixed<std::uint64_t>();
  const auto sum = in.fixed<std::uint64_t>();
  if (!in.ok() || magic != kFrameMagic || rows_bytes > kFrameBytesMax) return std::nullopt;
  const BytesView table = in.take(std::uint64_t{parts} * kPartHeaderBytes);
  const std::uint64_t seed = checksum(bytes.first(kFrameHeaderBytes - 8), frame.sequence ^ salt);
  if (!in.ok() || sum != checksum(table, seed)) return std::nullopt;
  Source headers(table);
  std::uint64_t left = rows_bytes;
  for (std::uint32_t i = 0; i < parts; ++i) {
    FramePart part{.layer = headers.fixed<std::uint64_t>(), .rows = {}};
    const auto part_bytes = headers.fixed<std::uint64_t>();
    if (part_bytes > left) return std::nullopt;
    left -= part_bytes;
    const BytesView rows = in.take(part_bytes);
    if (headers.fixed<std::uint64_t>() == checksum(rows, frame.sequence ^ salt) && in.ok()) {
      part.rows = decode_rows(rows);
    }
    frame.parts.push_back(std::move(part));
  }
  // Else there would be no telling where the next one begins.
  if (left != 0) return std::nullopt;
  frame.bytes = aligned(kFrameHeaderBytes + table.size() + static_cast<std::size_t>(rows_bytes));
  return frame;
}

namespace {

bool is_whole(const Frame& frame) {
  return std::ranges::all_of(frame.parts,
                             [](const FramePart& part) { return part.rows.has_value(); });
}

/// A frame, and where it begins.
struct Found {
  std::size_t at = 0;
  Frame frame;
};

/// The next frame of at least that number, from `at` on.
std::optional<Found> find_frame(BytesView file, std::size_t at, std::uint64_t sequence,
                                std::uint64_t salt) {
  // What is looked at in vain is bounded, whatever the file holds.
  std::size_t budget = 64 * file.size();
  for (; at + kFrameHeaderBytes <= file.size(); at += kFrameAlignment) {
    Source in(file.subspan(at));
    if (in.fixed<std::uint32_t>() != kFrameMagic) continue;
    const std::size_t cost = std::size_t{in.fixed<std::uint32_t>()} * kPartHeaderBytes;
    if (cost > file.size()) continue;
    if (cost > budget) return std::nullopt;
    budget -= cost;
    auto frame = decode_frame(file.subspan(at), salt);
    if (frame && frame->sequence >= sequence) return Found{at, *std::move(frame)};
  }
  return std::nullopt;
}

std::string cannot_read(std::uint64_t first, std::uint64_t end) {
  return end == first + 1 ? fmt::format("frame {} cannot be read", first)
                          : fmt::format("frames {} to {} cannot be read", first, end - 1);
}

}  // namespace

JournalContent read_frames(BytesView file, const JournalHeader& header,
                           std::uint64_t acknowledged_end) {
  JournalContent content{.header = header,
                         .frames = {},
                         .end = kJournalHeaderBytes,
                         .next_sequence = header.first_sequence,
                         .damage = {}};
  while (content.end < file.size()) {
    std::uint64_t& next = content.next_sequence;
    std::optional<Found> found;
    auto here = decode_frame(file.subspan(content.end), header.salt);
    if (here && here->sequence == next) found = Found{content.end, *std::move(here)};
    const std::size_t behind =
        content.end + (found ? found->frame.bytes : std::size_t{kFrameAlignment});
    if (!found || !is_whole(found->frame)) {
      // A frame is written when those before it are safe. So what is damaged was never
      // acknowledged, unless another follows.
      auto later = find_frame(file, behind, next + 1, header.salt);
      if (!later && next >= acknowledged_end) break;
      if (!found && !later) break;
      if (!found) {
        content.damage.push_back(cannot_read(next, later->frame.sequence));
        found = std::move(later);
      }
    }
    content.end = found->at + found->frame.bytes;
    next = found->frame.sequence + 1;
    content.frames.push_back(std::move(found->frame));
  }
  if (content.next_sequence < acknowledged_end) {
    content.damage.push_back(cannot_read(content.next_sequence, acknowledged_end));
  }
  return content;
}

}  // namespace sw::storage
