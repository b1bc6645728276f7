// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/page.h"

#include <xxhash.h>

#include <cstring>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // XXH3 with the widest vectors that this processor has
#endif

namespace sw::snapshot {

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
/// Runs this close to each other are written as one: two varints cost as much.
constexpr std::size_t kGapMax = 2;

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// For each byte of the word 1 if it is not zero, else 0.
std::uint64_t nonzero_bytes(std::uint64_t word) {
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7fU;
  return ((((word & kLow) + kLow) | word) & ~kLow) >> 7U;
}

std::uint64_t sum_of_bytes(std::uint64_t word) {
  constexpr std::uint64_t kEven = 0x00ff00ff00ff00ffU;
  return (((word & kEven) + ((word >> 8U) & kEven)) * 0x0001000100010001U) >> 48U;
}

/// The first place from `at` on where the pages differ.
std::size_t skip_equal(PageView a, PageView b, std::size_t at) {
  const auto differs = [&](std::size_t i) { return word_at(a.data() + i) ^ word_at(b.data() + i); };
  constexpr std::size_t kBlock = 8 * kWordBytes;
  for (; at + kBlock <= kPageBytes; at += kBlock) {
    std::uint64_t any = 0;
    for (std::size_t i = at; i < at + kBlock; i += kWordBytes) any |= differs(i);
    if (any != 0) break;
  }
  while (at + kWordBytes <= kPageBytes && differs(at) == 0) at += kWordBytes;
  while (at < kPageBytes && a[at] == b[at]) ++at;
  return at;
}

/// End of the run of differences that begins at `at`.
std::size_t run_end(PageView a, PageView b, std::size_t at) {
  std::size_t end = at + 1;
  for (std::size_t i = end; i < kPageBytes && i - end <= kGapMax; ++i) {
    if (a[i] != b[i]) end = i + 1;
  }
  return end;
}

void append_varint(Bytes& out, std::size_t value) {
  for (; value > 0x7f; value >>= 7U) out.push_back(static_cast<std::byte>(value | 0x80U));
  out.push_back(static_cast<std::byte>(value));
}

/// A varint of at most two bytes, enough for any place in a page. Advances `at`; SIZE_MAX at a
/// wrong one.
std::size_t read_varint(BytesView in, std::size_t& at) {
  if (at >= in.size()) return SIZE_MAX;
  const auto first = static_cast<std::size_t>(in[at++]);
  if (first < 0x80) return first;
  if (at >= in.size()) return SIZE_MAX;
  const auto second = static_cast<std::size_t>(in[at++]);
  return second < 0x80 ? (first & 0x7fU) | (second << 7U) : SIZE_MAX;
}

}  // namespace

PageView zero_page() {
  static constexpr Page kZero = {};
  return kZero;
}

bool equal(PageView a, PageView b) { return std::memcmp(a.data(), b.data(), kPageBytes) == 0; }

void copy_page(PageView from, std::byte* to) { std::memcpy(to, from.data(), kPageBytes); }

std::uint64_t page_hash(PageView page) { return XXH3_64bits(page.data(), page.size()); }

std::size_t difference(PageView a, PageView b) {
  constexpr std::size_t kBatchBytes = 128 * kWordBytes;  // a counter is a byte: it holds up to 255
  std::uint64_t sum = 0;
  for (std::size_t batch = 0; batch < kPageBytes; batch += kBatchBytes) {
    std::uint64_t counters = 0;
    for (std::size_t i = batch; i < batch + kBatchBytes; i += kWordBytes) {
      counters += nonzero_bytes(word_at(a.data() + i) ^ word_at(b.data() + i));
    }
    sum += sum_of_bytes(counters);
  }
  return sum;
}

void xor_into(Page& page, PageView other) {
  for (std::size_t i = 0; i < kPageBytes; i += kWordBytes) {
    const std::uint64_t word = word_at(page.data() + i) ^ word_at(other.data() + i);
    std::memcpy(page.data() + i, &word, sizeof word);
  }
}

bool append_sparse(Bytes& out, PageView a, PageView b, std::size_t bytes_max) {
  const std::size_t size_before = out.size();
  std::size_t written = 0;
  for (std::size_t at = skip_equal(a, b, 0); at < kPageBytes; at = skip_equal(a, b, written)) {
    const std::size_t end = run_end(a, b, at);
    append_varint(out, at - written);
    append_varint(out, end - at);
    for (std::size_t i = at; i < end; ++i) out.push_back(a[i] ^ b[i]);
    written = end;
    if (out.size() - size_before > bytes_max) {
      out.resize(size_before);
      return false;
    }
  }
  return true;
}

bool apply_sparse(Page& page, BytesView sparse) {
  std::size_t place = 0;
  for (std::size_t at = 0; at < sparse.size();) {
    const std::size_t skip = read_varint(sparse, at);
    const std::size_t length = read_varint(sparse, at);
    if (skip > kPageBytes - place || length > kPageBytes - place - skip) return false;
    if (length == 0 || length > sparse.size() - at) return false;
    place += skip;
    for (std::size_t i = 0; i < length; ++i) page[place + i] ^= sparse[at + i];
    place += length;
    at += length;
  }
  return true;
}

Bytes transpose(BytesView bytes, std::size_t stride) {
  Bytes out(bytes.size());
  const std::size_t rows = bytes.size() / stride;
  for (std::size_t column = 0; column < stride; ++column) {
    std::byte* to = out.data() + column * rows;
    for (std::size_t row = 0; row < rows; ++row) to[row] = bytes[row * stride + column];
  }
  return out;
}

Bytes untranspose(BytesView bytes, std::size_t stride) {
  Bytes out(bytes.size());
  const std::size_t rows = bytes.size() / stride;
  for (std::size_t column = 0; column < stride; ++column) {
    const std::byte* from = bytes.data() + column * rows;
    for (std::size_t row = 0; row < rows; ++row) out[row * stride + column] = from[row];
  }
  return out;
}

}  // namespace sw::snapshot
