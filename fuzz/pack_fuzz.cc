// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Snapshot packs. The checksum is made right, so that the fuzzer is not kept out by it: an input is
// what follows.

#include <xxhash.h>

#include "fuzz/fuzz.h"
#include "snapshot/pack.h"
#include "snapshot/page.h"
#include "snapshot/wire.h"

namespace sw::fuzz {
namespace {

using namespace snapshot;

constexpr PackId kId{.owner = 3, .sequence = 40};

Bytes sealed(BytesView body) {
  WireWriter out;
  out.bytes(as_bytes("SWP"));
  out.u8(kPackVersion);
  out.u64(XXH3_64bits_withSeed(body.data(), body.size(),
                               (std::uint64_t{kId.owner} << 32U) | kId.sequence));
  out.bytes(body);
  return out.take();
}

/// Everything but the differences, whose order a pack may choose.
void require_same(const Pack& a, const Pack& b) {
  require(a.entries.size() == b.entries.size() && a.nodes.size() == b.nodes.size(),
          "as many entries and nodes");
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const Entry& one = a.entries[i];
    const Entry& other = b.entries[i];
    require(one.index == other.index && one.page == other.page && one.against == other.against &&
                one.whole == other.whole && one.base == other.base && one.check == other.check &&
                one.size == other.size,
            "the same entries");
  }
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    require(a.nodes[i].index == b.nodes[i].index && a.nodes[i].region == b.nodes[i].region &&
                a.nodes[i].runs.size() == b.nodes[i].runs.size(),
            "the same nodes");
  }
  require(a.version.has_value() == b.version.has_value(), "a version, or none");
  if (a.version) {
    require(a.version->build == b.version->build && a.version->digest == b.version->digest &&
                a.version->previous == b.version->previous &&
                a.version->regions.size() == b.version->regions.size(),
            "the same version");
  }
}

void check_pages(const Pack& pack) {
  for (const Entry& entry : pack.entries) {
    require(entry.offset + std::size_t{entry.size} <= pack.differences.size(),
            "an entry lies in the pack");
    if (entry.whole) continue;
    Page page{};
    (void)apply_sparse(page, BytesView(pack.differences).subspan(entry.offset, entry.size));
  }
}

}  // namespace

SW_FUZZ(pack) {
  const Bytes row = sealed(input);
  Compression compression;
  const auto directory = decode_pack(kId, row, PackPart::kDirectory, compression);
  const auto pack = decode_pack(kId, row, PackPart::kAll, compression);
  if (!pack.ok()) return;
  require(directory.ok(), "the directory of a good pack is good");
  require_same(*pack, *directory);
  check_pages(*pack);
  const auto written = encode_pack(*pack, compression);
  require(written.ok(), "what was read can be written");
  const auto again = decode_pack(kId, *written, PackPart::kAll, compression);
  require(again.ok(), "and read again");
  require_same(*pack, *again);
  require(pack->differences == again->differences && pack->host_tables == again->host_tables,
          "with its bytes");
}

}  // namespace sw::fuzz
