// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/old_history.h"

#include <algorithm>
#include <map>

#include "snapshot/catalog.h"
#include "snapshot/pack_reader.h"

namespace sw::snapshot {

namespace {

/// No version of this program kept longer histories.
constexpr std::uint32_t kVersionsMax = 1000;

class OldHistory {
 public:
  OldHistory(storage::Transaction& transaction, const Options& options, const ContextEntry& record)
      : transaction_(transaction),
        options_(options),
        record_(record),
        packs_(transaction, options.packs_table, record.family, compression_) {}

  Result<void> convert(std::uint64_t newest_step) {
    SW_TRY(const PackId newest, newest_pack());
    const std::string key = version_key(record_.family, record_.owner, newest.sequence);
    SW_TRY(const auto row, transaction_.get(options_.packs_table, key));
    if (!newest || row) return {};
    SW_CHECK_OK(read_chain(newest, newest_step));
    for (const CheckpointInfo& checkpoint : record_.checkpoints)
      SW_CHECK_OK(read_checkpoint(checkpoint.version));
    for (auto& [sequence, version] : found_) SW_CHECK_OK(write(version));
    return {};
  }

 private:
  Result<PackId> newest_pack() {
    PackId newest;
    SW_CHECK_OK(transaction_.scan_keys(
        storage::Range::of_prefix(options_.packs_table,
                                  owner_prefix(record_.family, record_.owner)),
        storage::Order::kDescending, [&](std::string_view key, std::size_t) {
          newest = pack_of_key(key).value_or(PackId{});
          return Result<storage::Scan>(storage::Scan::kStop);
        }));
    return newest;
  }

  /// A version whose pack cannot be read is left out: whoever needs it hears of the damage.
  Result<std::optional<Version>> read(PackId id) {
    auto pack = packs_.directory(id);
    if (pack.ok()) return std::move(pack->version);
    if (pack.error().code == ErrorCode::kCorrupt) return std::optional<Version>();
    return std::move(pack).error();
  }

  Result<void> read_chain(PackId newest, std::uint64_t newest_step) {
    PackId id = newest;
    std::uint32_t left = kVersionsMax;
    std::uint64_t step = newest_step;
    for (bool first = true; id && left > 0; first = false) {
      SW_TRY(const auto version, read(id));
      if (!version) return {};
      if (first) left = std::min(version->history, kVersionsMax - 1) + 1;
      SW_CHECK_OK(add(id, step, *version));
      --left;
      if (step > 1) --step;
      id = version->previous;
    }
    return {};
  }

  Result<void> read_checkpoint(PackId id) {
    if (found_.contains(id.sequence)) return {};
    SW_TRY(const auto version, read(id));
    if (!version) return {};
    const auto later = found_.upper_bound(id.sequence);
    const std::uint64_t before = later == found_.end() ? 1 : later->second.step;
    return add(id, before > 1 ? before - 1 : before, *version);
  }

  Result<void> add(PackId id, std::uint64_t step, const Version& version) {
    SW_TRY(const auto bytes, packs_.bytes(id));
    found_[id.sequence] = {.id = id,
                           .parent = version.previous,
                           .step = step,
                           .time_ms = version.time_ms,
                           .bytes = bytes ? bytes->size() : 0};
    return {};
  }

  Result<void> write(const KeptVersion& version) {
    const std::string key = version_key(record_.family, record_.owner, version.id.sequence);
    return transaction_.put(options_.packs_table, key, encode_version_row(key, version, ""));
  }

  storage::Transaction& transaction_;
  const Options& options_;
  const ContextEntry& record_;
  Compression compression_;
  PackReader packs_;
  std::map<std::uint32_t, KeptVersion> found_;  // by sequence
};

}  // namespace

Result<void> add_histories(storage::Transaction& transaction, const Options& options,
                           const StepOfContext& step_of) {
  SW_TRY(const ContextCatalog catalog, read_catalog(transaction, options.contexts_table));
  for (const auto& [name, record] : catalog.contexts) {
    SW_TRY(const std::uint64_t step, step_of(transaction, name));
    SW_CHECK_OK(OldHistory(transaction, options, record).convert(step));
  }
  return {};
}

}  // namespace sw::snapshot
