// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/step_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sw::snapshot {

namespace {

/// A difference that takes so few bytes is taken without looking for a smaller one.
constexpr std::size_t kSmallDifference = 192;

using Encoded = EncodedStep::State;

PageView content_of(const Encoded::Change& change) { return change.content.first<kPageBytes>(); }

class StepEncoder {
 public:
  StepEncoder(LiveMemory::State& live, const Step& step, std::uint64_t number,
              Compression& compression)
      : live_(live),
        step_(step),
        number_(number),
        key_step_(live.key_sequence == 0 ||
                  number / live.key_interval != live.step / live.key_interval),
        bases_(live, key_step_),
        first_{live.owner, live.based_on.sequence + 1},
        compression_(compression),
        memory_pages_(static_cast<std::uint32_t>(step.memory.memory_bytes() / kPageBytes)),
        image_pages_(static_cast<std::uint32_t>(step.image.size() / kPageBytes)) {}

  Result<Encoded> encode() {
    SW_CHECK_OK(check());
    out_.digest = live_.digest;
    out_.stored_pages = live_.stored_pages;
    for (const ByteRange& range : step_.changed) SW_CHECK_OK(scan(range));
    if (step_.memory.memory_bytes() < live_.memory_bytes) SW_CHECK_OK(drop_pages_beyond_the_end());
    if (key_step_) SW_CHECK_OK(move_pages());
    sort_changes();
    number_packs();
    SW_CHECK_OK(encode_pages());
    SW_CHECK_OK(encode_version());
    for (const auto& [id, bytes] : out_.packs) out_.stats.bytes_written += bytes.size();
    describe();
    return std::move(out_);
  }

 private:
  using Change = Encoded::Change;

  /// What is to be known of the step when it is saved.
  void describe() {
    out_.stats.stored_pages = out_.stored_pages;
    out_.stats.time_ms = step_.time_ms;
    out_.version = {.id = out_.stats.version,
                    .parent = live_.based_on,
                    .step = number_,
                    .time_ms = step_.time_ms,
                    .bytes = out_.stats.bytes_written};
    out_.about = step_.about.substr(0, kAboutBytesMax);
    out_.memory_bytes = step_.memory.memory_bytes();
    out_.host_tables.assign(step_.host_tables.begin(), step_.host_tables.end());
  }

  Result<void> check() const {
    for (const std::uint64_t bytes :
         {step_.memory.memory_bytes(), std::uint64_t{step_.image.size()}}) {
      if (bytes % kPageBytes != 0 || bytes / kPageBytes > kPagesMax) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("a memory cannot have {} bytes", bytes)};
      }
    }
    if (step_.host_tables.size() > kHostTablesBytesMax) {
      return Error{ErrorCode::kLimitExceeded,
                   fmt::format("host tables of {} bytes; at most {} can be saved",
                               step_.host_tables.size(), kHostTablesBytesMax)};
    }
    return {};
  }

  PageView image(std::uint32_t page) const {
    return page < image_pages_ ? page_at(step_.image, page) : zero_page();
  }

  Result<void> scan(const ByteRange& range) {
    if (range.begin < scanned_bytes_ || range.end < range.begin) {
      return Error{ErrorCode::kInvalidArgument,
                   "the changed ranges of a memory must ascend and not overlap"};
    }
    scanned_bytes_ = range.end;
    const std::size_t begin = std::max(range.begin / kPageBytes, next_page_);
    const std::size_t end =
        std::min<std::size_t>((range.end + kPageBytes - 1) / kPageBytes, memory_pages_);
    for (std::size_t page = begin; page < end; ++page) {
      SW_CHECK_OK(look_at(static_cast<std::uint32_t>(page)));
    }
    next_page_ = std::max(next_page_, end);
    return {};
  }

  Result<void> look_at(std::uint32_t page) {
    ++out_.stats.pages_seen;
    PageState& state = live_.table.at(page);
    // It is not in the memory, so nobody can have changed it; and reading it here would ask for it.
    if (state.unread()) return {};
    SW_TRY(const PageView content, step_.memory.read(page));
    const std::uint64_t hash = page_hash(content);
    if (state.hashed && state.hash == hash) return {};
    if (equal(content, image(page))) {
      if (state.stored()) {
        remove(page, state);
      } else {
        state.hash = hash;
        state.hashed = true;
      }
      return {};
    }
    ++out_.stats.pages_changed;
    Change change{.page = page, .content = content};
    change.state.hash = hash;
    change.state.hashed = true;
    account(state, change);
    out_.changes.push_back(change);
    return {};
  }

  void remove(std::uint32_t page, const PageState& state) {
    ++out_.stats.pages_changed;
    const Change change{.page = page, .removed = true};
    account(state, change);
    out_.changes.push_back(change);
  }

  void account(const PageState& before, const Change& change) {
    if (before.stored()) {
      out_.digest -= digest_share(change.page, before.hash);
      --out_.stored_pages;
    }
    if (!change.removed) {
      out_.digest += digest_share(change.page, change.state.hash);
      ++out_.stored_pages;
    }
  }

  Result<void> drop_pages_beyond_the_end() {
    for (const auto& [region, stored] : live_.table.regions()) {
      for (std::uint32_t i = 0; i < kRegionPages; ++i) {
        const std::uint32_t page = region * kRegionPages + i;
        const PageState& state = (*stored.pages)[i];
        if (page < memory_pages_ || !state.stored()) continue;
        if (state.unread()) {
          return Error{ErrorCode::kInvalidArgument,
                       "a memory with pages that were not read cannot shrink"};
        }
        remove(page, state);
      }
    }
    return {};
  }

  /// Old packs that hold few pages of this memory, if there are too many of them: those with the
  /// fewest first.
  std::set<PackId> packs_to_empty() const {
    std::vector<std::pair<std::uint32_t, PackId>> sparse;
    for (const auto& [id, pages] : live_.pages_in_pack) {
      if (id.sequence + kChainSpanMax < first_.sequence && pages <= kSparsePagesMax &&
          !live_.unread_in_pack.contains(id))
        sparse.push_back({pages, id});
    }
    if (sparse.size() <= kSparseOldPacksMax) return {};
    std::sort(sparse.begin(), sparse.end());
    std::set<PackId> chosen;
    std::size_t pages = 0;
    for (const auto& [count, id] : sparse) {
      if (sparse.size() - chosen.size() <= kSparseOldPacksLeft || pages >= kMovedPagesMax) break;
      pages += count;
      chosen.insert(id);
    }
    return chosen;
  }

  /// Into this key step: those of steps since the last one, and some of old packs.
  Result<void> move_pages() {
    const std::set<PackId> old_packs = packs_to_empty();
    std::set<std::uint32_t> changed;
    for (const Change& change : out_.changes) changed.insert(change.page);
    for (const auto& [region, stored] : live_.table.regions()) {
      for (std::uint32_t i = 0; i < kRegionPages; ++i) {
        const std::uint32_t page = region * kRegionPages + i;
        const PageState& state = (*stored.pages)[i];
        // What is not in the memory stays where it is, though its pack is of no key step.
        if (!state.stored() || state.unread()) continue;
        const bool moves = !bases_.in_key_step(state) || old_packs.contains(state.place.pack);
        if (!moves || changed.contains(page)) continue;
        // Its content is what was stored, unless the caller's ranges left out a change; then it
        // stays where it is.
        SW_TRY(const PageView content, step_.memory.read(page));
        if (page_hash(content) != state.hash) continue;
        Change change{.page = page, .content = content, .moved = true};
        change.state.hash = state.hash;
        change.state.hashed = true;
        out_.changes.push_back(change);
        ++out_.stats.pages_moved;
      }
    }
    return {};
  }

  void sort_changes() {
    std::sort(out_.changes.begin(), out_.changes.end(),
              [](const Change& a, const Change& b) { return a.page < b.page; });
  }

  void number_packs() {
    const auto stored = static_cast<std::size_t>(
        std::ranges::count_if(out_.changes, [](const Change& change) { return !change.removed; }));
    const bool is_large = stored > kPackEntriesMax;
    pack_entries_max_ = is_large ? kLargeStepPackEntries : kPackEntriesMax;
    const std::size_t packs =
        is_large ? (stored + pack_entries_max_ - 1) / pack_entries_max_ + 1 : 1;
    last_ = {first_.owner, first_.sequence + static_cast<std::uint32_t>(packs - 1)};
  }

  Result<void> encode_pages() {
    pack_.id = first_;
    for (Change& change : out_.changes) {
      if (change.removed) continue;
      if (pack_.entries.size() == pack_entries_max_) SW_CHECK_OK(finish_pack());
      add_entry(change);
    }
    return pack_.id == last_ ? Result<void>() : finish_pack();
  }

  Result<void> finish_pack() {
    SW_TRY(Bytes bytes, encode_pack(pack_, compression_));
    out_.packs.emplace_back(pack_.id, std::move(bytes));
    out_.entry_counts.emplace_back(pack_.id, pack_.entries.size());
    pack_ = Pack{.id = {pack_.id.owner, pack_.id.sequence + 1}};
    return {};
  }

  void add_entry(Change& change) {
    Entry entry;
    entry.index = static_cast<std::uint16_t>(pack_.entries.size());
    entry.page = change.page;
    entry.check = static_cast<std::uint32_t>(change.state.hash);
    entry.offset = static_cast<std::uint32_t>(pack_.differences.size());
    change.state.place = {pack_.id, entry.index};
    change.state.chain_begin = pack_.id.sequence;

    write_difference(change, entry);
    entry.size = static_cast<std::uint32_t>(pack_.differences.size()) - entry.offset;
    pack_.entries.push_back(entry);
  }

  /// To the page that `change` differs least from.
  void write_difference(Change& change, Entry& entry) {
    const PageView page = content_of(change);
    const bool leaves_old_pack = change.moved && bases_.in_key_step(*live_.table.find(change.page));
    const StoredBase stored =
        leaves_old_pack ? StoredBase{} : bases_.base_of(change.page, pack_.id.sequence);
    if (stored.content != nullptr &&
        append_sparse(pack_.differences, page, *stored.content, kSmallDifference)) {
      return go_on_from(stored, change, entry);
    }
    const PageView base = choose_base(stored, change, entry);
    if (append_sparse(pack_.differences, page, base, kSparseBytesMax)) return;
    entry.whole = true;
    Page difference;
    copy_page(page, difference.data());
    xor_into(difference, base);
    pack_.differences.insert(pack_.differences.end(), difference.begin(), difference.end());
  }

  static void go_on_from(const StoredBase& stored, Change& change, Entry& entry) {
    entry.against = Against::kStored;
    entry.base = stored.state->place;
    change.state.depth = static_cast<std::uint8_t>(stored.state->depth + 1);
    change.state.chain_begin = stored.state->chain_begin;
  }

  PageView choose_base(const StoredBase& stored, Change& change, Entry& entry) const {
    const PageView page = content_of(change);
    const std::size_t to_stored = stored.content == nullptr
                                      ? kPageBytes + 1
                                      : sw::snapshot::difference(page, *stored.content);
    const std::size_t to_zero = sw::snapshot::difference(page, zero_page());
    const std::size_t to_image = sw::snapshot::difference(page, image(change.page));
    // A stored base costs a look-up more at each restore, so it has to save something.
    if (stored.content != nullptr && to_stored + to_stored / 8 <= std::min(to_zero, to_image)) {
      go_on_from(stored, change, entry);
      return *stored.content;
    }
    entry.against = to_image < to_zero ? Against::kImage : Against::kZero;
    return to_image < to_zero ? image(change.page) : zero_page();
  }

  /// The regions with changes, as they will be; their nodes go into the last pack.
  void update_regions() {
    for (const Change& change : out_.changes) {
      PageTable::StoredRegion& stored = out_.regions[change.page / kRegionPages];
      if (!stored.pages) {
        const PageTable::StoredRegion& before = live_.table.region(change.page / kRegionPages);
        stored.pages = std::make_unique<Region>(*before.pages);
        if (!key_step_) stored.base = before.base;
      }
      if (change.removed) stored.base = {};
      (*stored.pages)[change.page % kRegionPages] = change.removed ? PageState{} : change.state;
    }
    for (auto& [region, stored] : out_.regions) {
      Node node{.index = static_cast<std::uint16_t>(pack_.nodes.size()),
                .region = region,
                .runs = runs_of(*stored.pages),
                .base = {}};
      if (node.runs.empty()) continue;
      stored.node = {last_, node.index};
      if (stored.base.pack) {
        std::vector<PageRun> differences = runs_of(*stored.pages, stored.base.pack.sequence);
        if (differences.size() < node.runs.size()) {
          node.runs = std::move(differences);
          node.base = stored.base;
        }
      }
      if (!node.base.pack) stored.base = stored.node;
      pack_.nodes.push_back(std::move(node));
    }
  }

  Result<void> encode_version() {
    update_regions();
    out_.key_sequence = key_step_ ? last_.sequence : live_.key_sequence;
    Version& version = pack_.version.emplace();
    version.key_sequence = out_.key_sequence;
    version.build = live_.build;
    version.memory_bytes = step_.memory.memory_bytes();
    version.time_ms = step_.time_ms;
    version.pages = out_.stored_pages;
    version.digest = out_.digest;
    for (const auto& [region, stored] : live_.table.regions()) {
      const auto changed = out_.regions.find(region);
      const PackRef node = changed == out_.regions.end() ? stored.node : changed->second.node;
      if (node.pack) version.regions.push_back({region, node});
    }
    add_host_tables(version);
    out_.stats.version = last_;
    return finish_pack();
  }

  void add_host_tables(Version& version) {
    const bool same =
        live_.host_tables_pack && std::ranges::equal(live_.host_tables, step_.host_tables);
    out_.host_tables_pack = same ? live_.host_tables_pack : last_;
    version.host_tables = out_.host_tables_pack;
    if (!same) pack_.host_tables.emplace(step_.host_tables.begin(), step_.host_tables.end());
  }

  LiveMemory::State& live_;
  const Step& step_;
  const std::uint64_t number_;
  const bool key_step_;
  const BaseChooser bases_;
  const PackId first_;
  PackId last_;
  Compression& compression_;
  std::uint32_t memory_pages_;
  std::uint32_t image_pages_;
  std::size_t scanned_bytes_ = 0;
  std::size_t next_page_ = 0;
  std::size_t pack_entries_max_ = kPackEntriesMax;
  Pack pack_;  // being filled
  Encoded out_;
};

}  // namespace

Result<Encoded> encode_step(LiveMemory::State& live, const Step& step, Compression& compression) {
  const std::uint64_t number = step.number != 0 ? step.number : live.step + 1;
  return StepEncoder(live, step, number, compression).encode();
}

}  // namespace sw::snapshot
