// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A store over a storage in memory.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "snapshot/page.h"
#include "snapshot/snapshot_store.h"
#include "snapshot/test_guest.h"
#include "storage/memory/memory_storage.h"

namespace sw::snapshot {

class SnapshotStoreTest : public testing::Test {
 protected:
  SnapshotStoreTest() { restart({}); }

  /// Another process opens what is stored.
  void restart(const Options& options) {
    store_.reset();
    object_.reset();
    storage_ = storage::open_memory_storage(disk_);
    object_ = must(storage_->open({"interpreter", "i1"}, {}));
    store_ = must(SnapshotStore::open(*object_, options));
  }

  SaveStats save(LiveMemory& live, Guest& guest, std::string_view tables = "tables") {
    const auto ranges = guest.dirty();
    const SaveStats stats =
        must(store_->save(live, must(live.encode({.memory = SpanPageSource(guest.memory()),
                                                  .image = image_,
                                                  .changed = ranges,
                                                  .host_tables = as_bytes(tables),
                                                  .time_ms = ++time_}))));
    guest.note_saved();
    return stats;
  }
  Result<SaveStats> try_save(LiveMemory& live, Guest& guest, const ExtraWrites& extra_writes = {}) {
    const auto ranges = guest.dirty();
    SW_TRY(EncodedStep step, live.encode({.memory = SpanPageSource(guest.memory()),
                                          .image = image_,
                                          .changed = ranges,
                                          .host_tables = {},
                                          .time_ms = ++time_}));
    SW_TRY(const SaveStats stats, store_->save(live, std::move(step), extra_writes));
    guest.note_saved();
    return stats;
  }

  struct Loaded {
    Guest guest;
    Restored restored;
  };
  Result<Loaded> try_load(std::string_view context, std::optional<VersionId> version = {}) {
    SW_TRY(const VersionInfo info,
           version ? store_->version(context, *version) : store_->latest(context));
    Guest guest(image_);
    guest.grow_to(info.memory_bytes);
    SW_TRY(Restored restored,
           restore_into(*store_, context, info.id, kBuild, image_, guest.memory()));
    return Loaded{std::move(guest), std::move(restored)};
  }
  Loaded load(std::string_view context, std::optional<VersionId> version = {}) {
    return must(try_load(context, version));
  }

  std::size_t pack_count() { return must(store_->stats()).packs; }

  /// Changes one byte of each row of the packs table that `chosen` names.
  void damage_packs(const std::function<bool(std::string_view key)>& chosen) {
    must(object_->transact([&](storage::Transaction& transaction) -> Result<void> {
      std::vector<std::pair<std::string, Bytes>> rows;
      SW_CHECK_OK(transaction.scan({.table = Options().packs_table, .from = {}, .to = {}},
                                   storage::Order::kAscending,
                                   [&](std::string_view key, BytesView value) {
                                     rows.emplace_back(key, Bytes(value.begin(), value.end()));
                                     return Result<storage::Scan>(storage::Scan::kContinue);
                                   }));
      for (auto& [key, value] : rows) {
        if (!chosen(key)) continue;
        value[value.size() / 2] ^= std::byte{1};
        SW_CHECK_OK(transaction.put(Options().packs_table, key, value));
      }
      return {};
    }));
  }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<storage::ObjectStorage> object_;
  std::unique_ptr<SnapshotStore> store_;
  Bytes image_ = make_image(64);
  std::int64_t time_ = 1000;
  int written_ = 0;
};

}  // namespace sw::snapshot
