// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A store of snapshots whose rows were changed by somebody who makes the checksums right. Whatever
// is asked of it is answered, and what it says is restored has the digest it was saved with.

#include <xxhash.h>

#include <array>
#include <map>

#include "fuzz/fuzz.h"
#include "fuzz/rows.h"
#include "snapshot/catalog.h"
#include "snapshot/compression.h"
#include "snapshot/page.h"
#include "snapshot/snapshot_store.h"
#include "snapshot/wire.h"
#include "storage/memory/memory_storage.h"

namespace sw::fuzz {
namespace {

using namespace snapshot;

constexpr char kBuild[] = "b";
constexpr std::size_t kImagePages = 2;
constexpr std::size_t kPages = 6;
constexpr std::size_t kHeadBytes = 12;  // of a pack: magic, version, checksum
constexpr std::size_t kRowHeadBytes = 9;
constexpr int kChangesMax = 20;

struct Store {
  explicit Store(const std::vector<Row>& rows) : storage(storage::open_memory_storage(disk)) {
    object = storage->open({"interpreter", "i"}, {}).value();
    const auto written = object->transact([&](storage::Transaction& transaction) -> Result<void> {
      for (const Row& row : rows) SW_CHECK_OK(transaction.put(row.table, row.key, row.value));
      return {};
    });
    require(written.ok(), "rows are written");
  }
  storage::MemoryDisk disk;
  std::unique_ptr<storage::Storage> storage;
  std::unique_ptr<storage::ObjectStorage> object;
};

Bytes image() {
  Bytes image(kImagePages * kPageBytes);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::byte>(i / 64);
  return image;
}

/// A section of a pack as it is without compression.
void unpack_section(WireReader& in, WireWriter& out, Compression& compression) {
  const auto size = in.number<std::size_t>();
  const BytesView stored = in.bytes(in.count(SIZE_MAX));
  const Bytes plain =
      stored.size() == size ? copy_of(stored) : compression.decompress(stored, size).value();
  out.varint(plain.size());
  out.varint(plain.size());
  out.bytes(plain);
}

std::size_t entries_of(PackId id, BytesView pack, Compression& compression) {
  return decode_pack(id, pack, PackPart::kDirectory, compression).value().entries.size();
}

/// Compressed bytes that change are hardly ever good ones.
void uncompress(Row& row, Compression& compression) {
  const PackId id = pack_of_key(row.key).value();
  const std::size_t checks = entries_of(id, row.value, compression) * sizeof(std::uint32_t);
  WireReader in(BytesView(row.value).subspan(kHeadBytes));
  WireWriter out;
  out.bytes(BytesView(row.value).first(kHeadBytes));
  unpack_section(in, out, compression);
  out.bytes(in.bytes(checks));
  unpack_section(in, out, compression);
  if (in.left() != 0) unpack_section(in, out, compression);
  row.value = out.take();
}

void make_sum_right(Row& row, const Options& options) {
  const bool is_pack = row.table == options.packs_table && pack_of_key(row.key);
  const std::size_t head = is_pack ? kHeadBytes : kRowHeadBytes;
  if (row.value.size() < head) return;
  const auto id = pack_of_key(row.key);
  const std::uint64_t seed = !is_pack ? XXH3_64bits(row.key.data(), row.key.size())
                                      : (std::uint64_t{id->owner} << 32U) | id->sequence;
  const BytesView body = BytesView(row.value).subspan(head);
  const std::uint64_t sum = XXH3_64bits_withSeed(body.data(), body.size(), seed);
  for (std::size_t i = 0; i < 8; ++i)
    row.value[head - 8 + i] = static_cast<std::byte>(sum >> (8 * i));
}

/// Two contexts, one forked from the other, with some history and a checkpoint.
std::vector<Row> good_rows() {
  Store store(std::vector<Row>{});
  const Bytes base = image();
  auto snapshots = SnapshotStore::open(*store.object, {}).value();
  Bytes memory = base;
  memory.resize(kPages * kPageBytes);
  LiveMemory live = snapshots->begin("c", kBuild).value();
  const std::vector<ByteRange> all = {{0, memory.size()}};
  for (int step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < 600; ++i)
      memory[(i * 37 + static_cast<std::size_t>(step) * 5000) % memory.size()] ^= std::byte{1};
    memory[3 * kPageBytes + static_cast<std::size_t>(step)] = std::byte{7};
    auto encoded = live.encode({.memory = SpanPageSource(memory),
                                .image = base,
                                .changed = all,
                                .host_tables = as_bytes("t"),
                                .time_ms = step});
    require(encoded.ok() && snapshots->save(live, *std::move(encoded)).ok(), "it saves");
    if (step == 1) require(snapshots->add_checkpoint("c", "k", 9).ok(), "it keeps a checkpoint");
    if (step == 2) require(snapshots->fork("c", {}, "f", 10).ok(), "it forks");
  }
  const Options options;
  Compression compression;
  std::vector<Row> rows =
      rows_of(*store.object, std::array{options.contexts_table, options.packs_table});
  for (Row& row : rows) {
    if (pack_of_key(row.key) && row.table == options.packs_table) uncompress(row, compression);
    make_sum_right(row, options);
  }
  return rows;
}

void restore(SnapshotStore& store, const std::string& name, const VersionInfo& version) {
  if (version.memory_bytes > (std::uint64_t{1} << 20U) || version.memory_bytes % kPageBytes != 0)
    return;
  const Bytes base = image();
  Bytes memory = base;
  memory.resize(std::max<std::size_t>(memory.size(), version.memory_bytes));
  SpanPageSink pages(memory);
  auto restored = store.restore(name, version.id, kBuild, base, pages);
  if (!restored.ok()) return;
  const std::vector<ByteRange> all = {{0, memory.size()}};
  memory[0] ^= std::byte{1};
  auto step = restored->live.encode({.memory = SpanPageSource(memory),
                                     .image = base,
                                     .changed = all,
                                     .host_tables = {},
                                     .time_ms = 3});
  if (step.ok()) (void)store.save(restored->live, *std::move(step));
}

/// Everything that can be asked of a store, without looking at the answers.
void use(Store& rows) {
  auto store = SnapshotStore::open(*rows.object, {.history = {.full = 3, .every = 2}});
  if (!store.ok()) return;
  for (const std::string& name : (*store)->contexts()) {
    (void)(*store)->usage(name);
    const auto history = (*store)->history(name);
    if (history.ok()) {
      require(!history->empty(), "a context has a version");
      for (const HistoryEntry& entry : *history) {
        const auto version = (*store)->version(name, entry.version);
        if (version.ok()) restore(**store, name, *version);
        (void)(*store)->version_of_step(name, entry.step);
      }
    }
    const auto checkpoints = (*store)->checkpoints(name);
    if (checkpoints.ok() && !checkpoints->empty())
      (void)(*store)->rewind(name, checkpoints->front().version, 4);
    (void)(*store)->undo(name, 1, 5);
    (void)(*store)->take_back(name, 5);
    (void)(*store)->add_checkpoint(name, "new", 6);
    (void)(*store)->fork(name, {}, name + "2", 7);
  }
  (void)(*store)->collect();
  const auto left = (*store)->contexts();
  if (!left.empty()) (void)(*store)->remove(left.front());
  (void)(*store)->collect();
}

}  // namespace

SW_FUZZ(snapshots) {
  static const std::vector<Row> good = good_rows();
  std::vector<Row> rows = good;
  Choices choices(input);
  for (int i = 0; i < kChangesMax && !choices.empty(); ++i)
    change(rows[choices.below(rows.size())].value, choices);
  for (Row& row : rows) make_sum_right(row, {});
  Store store(rows);
  use(store);
}

}  // namespace sw::fuzz
