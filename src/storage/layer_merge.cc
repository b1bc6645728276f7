// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layer_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/directory_change.h"
#include "storage/layered_object.h"

namespace sw::storage {

namespace {

/// What one commit of a merge holds, unless a single row is larger: others have to wait while it is
/// written.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;
/// What a row takes beside its key and value, about.
constexpr std::size_t kRowBytes = 16;
/// What any layer costs, however little is in it.
constexpr std::uint64_t kLayerBytesMin = std::uint64_t{8} << 10U;

/// Where `run` begins in the stack, below the topmost layer; the stack's size if it is not there.
std::size_t place_of(const std::vector<LayerNumber>& run, const std::vector<LayerNumber>& stack) {
  const auto found = std::search(stack.begin() + 1, stack.end(), run.begin(), run.end());
  return static_cast<std::size_t>(found - stack.begin());
}

}  // namespace

std::size_t layers_to_merge(std::size_t depth, const std::vector<std::uint64_t>& sizes) {
  if (depth <= kShallowStack || sizes.empty()) return 0;
  std::size_t count = 0;
  std::uint64_t sum = 0;
  for (const std::uint64_t size : sizes) {
    const std::uint64_t counted = std::max(size, kLayerBytesMin);
    if (count > 0 && counted > 2 * sum) break;
    sum += counted;
    ++count;
  }
  if (depth > kDeepStack) count = std::max(count, depth - kDeepStack / 2);
  count = std::min(count, sizes.size());
  return count < 2 ? 0 : count;
}

std::vector<LayerNumber> LayeredStorage::LayerMerge::from() const {
  std::vector<LayerNumber> numbers;
  for (const LayerPtr& layer : plan_.from) numbers.push_back(layer->number());
  return numbers;
}

Result<LayeredStorage::LayerMerge::State> LayeredStorage::LayerMerge::step() {
  Rows piece;
  SW_TRY(const bool more, read_piece(piece));
  if (!more) return put_in_place(std::move(piece));
  std::unique_ptr<PendingCommit> committed;
  {
    std::vector<CommitRecord::Part> parts;
    parts.push_back({plan_.into, std::make_shared<const Rows>(std::move(piece))});
    SW_TRY(committed, storage_.log_.add(
                          std::make_shared<Record>(storage_, std::vector<Record::Owned>(),
                                                   std::move(parts), Durability::kCommit, false)));
  }
  SW_CHECK_OK(committed->wait());
  return State::kGoesOn;
}

Result<bool> LayeredStorage::LayerMerge::read_piece(Rows& piece) {
  for (std::size_t bytes = 0; bytes < kPieceBytes;) {
    SW_TRY(const bool open, open_table());
    if (!open) return false;
    auto row = rows_->next();
    if (!row.ok()) {
      unreadable_ = rows_->layer()->number();
      return std::move(row).error();
    }
    if (!*row) {
      rows_.reset();
      if (*table_ == UINT16_MAX) table_.reset();
      else ++*table_;
      continue;
    }
    SW_CHECK_OK(take(**row, piece));
    bytes += (*row)->key.size() + (*row)->bytes + kRowBytes;
  }
  return true;
}

/// False: there is none left.
Result<bool> LayeredStorage::LayerMerge::open_table() {
  if (rows_) return true;
  if (!table_) return false;
  std::optional<TableId> next;
  for (const LayerPtr& layer : plan_.from) {
    auto found = layer->next_table(*table_);
    if (!found.ok()) {
      unreadable_ = layer->number();
      return std::move(found).error();
    }
    if (*found) next = std::min(next.value_or(UINT16_MAX), **found);
  }
  table_ = next;
  if (!table_) return false;
  // Values are read one by one: the next rows of many layers could be large ones.
  rows_ = std::make_unique<MergedRows>(plan_.from, Rows(), Range{*table_, {}, {}},
                                       ScanOptions{.values = false});
  return true;
}

Result<void> LayeredStorage::LayerMerge::take(const StoredRow& row, Rows& piece) {
  if (row.erased && plan_.lowest) return {};
  Value value = row.value;
  if (!row.erased && !value) {
    const LayerPtr& layer = rows_->layer();
    auto found = layer->find(*table_, row.key);
    if (found.ok() && !(*found && **found)) {
      found =
          Error{ErrorCode::kCorrupt,
                fmt::format("a row of layer {} is listed, but cannot be found", layer->number())};
    }
    if (!found.ok()) {
      unreadable_ = layer->number();
      return std::move(found).error();
    }
    value = std::move(**found);
  }
  piece.insert_or_assign({*table_, row.key}, std::move(value));
  return {};
}

Result<bool> LayeredStorage::LayerMerge::is_possible(
    Reader& directory, const std::optional<ObjectEntry>& entry) const {
  if (!entry || place_of(from(), entry->layers) == entry->layers.size()) return false;
  std::vector<LayerNumber> all = from();
  all.push_back(plan_.into->number());
  for (const LayerNumber number : all) {
    SW_TRY(const auto layer, find_layer(directory, number));
    if (!layer || layer->damaged) return false;
  }
  return true;
}

/// The object is held until this is on disk: so nobody relies on it should it fail.
Result<LayeredStorage::LayerMerge::State> LayeredStorage::LayerMerge::put_in_place(
    Rows last_piece) {
  const ObjectPtr object = storage_.object(name_);
  const Held held({object.get()});
  std::unique_ptr<PendingCommit> committed;
  std::vector<LayerNumber> unused;
  {
    DirectoryChange change(storage_);
    SW_TRY(const auto before, find_object(change.directory(), name_));
    SW_TRY(const bool possible, is_possible(change.directory(), before));
    if (!possible) return State::kObsolete;
    const LayerNumber number = plan_.into->number();
    SW_TRY(auto layer, find_layer(change.directory(), number));
    layer->owners = 1;
    SW_CHECK_OK(put_layer(change.directory(), number, *layer));
    SW_CHECK_OK(write_counter(change.directory(), Counter::kMerging, 0));
    const std::vector<LayerNumber> run = from();
    ObjectEntry after = *before;
    const auto place =
        after.layers.begin() + static_cast<std::ptrdiff_t>(place_of(run, before->layers));
    const auto rest = after.layers.erase(place, place + static_cast<std::ptrdiff_t>(run.size()));
    after.layers.insert(rest, number);
    SW_CHECK_OK(put_object(change.directory(), name_, after, before));
    SW_CHECK_OK(change.release(run));
    std::vector<CommitRecord::Part> parts;
    parts.push_back({plan_.into, std::make_shared<const Rows>(std::move(last_piece))});
    SW_TRY(committed, change.add({}, std::move(parts), Durability::kCommit, false));
    unused = change.unused();
  }
  SW_CHECK_OK(committed->wait());
  object->stale = true;
  // Their files stay until the directory's file is written: without the log it speaks of them.
  for (const LayerNumber layer : unused) storage_.layers_.forget(layer);
  return State::kDone;
}

// --- what there is to merge

void LayeredStorage::merge_wanted(const std::vector<ObjectName>& names) {
  if (names.empty()) return;
  {
    const MutexLock lock(deep_mutex_);
    for (const ObjectName& name : names) {
      if (std::ranges::find(deep_, name) == deep_.end()) deep_.push_back(name);
    }
  }
  merge_soon();
}

void LayeredStorage::merge_soon() {
  for (;;) {
    const auto more = merge_some();
    // What went wrong is tried again after the object's next copy.
    if (!more.ok() || !*more) return;
  }
}

Result<bool> LayeredStorage::merge_some() {
  const MutexLock lock(merge_mutex_);
  if (!merge_) {
    std::optional<ObjectName> name;
    {
      const MutexLock deep_lock(deep_mutex_);
      if (deep_.empty()) return false;
      name = std::move(deep_.front());
      deep_.pop_front();
    }
    SW_CHECK_OK(begin_merge(*name));
    return true;
  }
  auto state = merge_->step();
  if (state.ok() && *state == LayerMerge::State::kGoesOn) return true;
  const std::unique_ptr<LayerMerge> merge = std::move(merge_);
  if (state.ok() && *state == LayerMerge::State::kDone) return true;
  // If this cannot be done now, the next merge does it, or the next start.
  (void)drop_unfinished_merge();
  if (state.ok()) return true;
  if (!merge->unreadable()) return std::move(state).error();
  bool removed = true;  // meanwhile, and the layers with it
  SW_CHECK_OK(read_directory([&](Reader& directory) -> Result<void> {
    SW_TRY(const auto entry, find_object(directory, merge->name()));
    removed = !entry || place_of(merge->from(), entry->layers) == entry->layers.size();
    return {};
  }));
  if (removed) return true;
  unreadable_.insert(*merge->unreadable());
  return std::move(state).error();
}

Result<void> LayeredStorage::begin_merge(const ObjectName& name) {
  SW_CHECK_OK(drop_unfinished_merge());
  LayerMerge::Plan plan;
  std::unique_ptr<PendingCommit> committed;
  {
    DirectoryChange change(*this);
    SW_TRY(const auto entry, find_object(change.directory(), name));
    if (!entry) return {};
    SW_TRY(plan.from, choose_layers(change.directory(), *entry));
    if (plan.from.empty()) return {};
    plan.lowest = plan.from.back()->number() == entry->layers.back();
    SW_TRY(plan.into, change.new_layer(plan.lowest, 0));
    SW_CHECK_OK(write_counter(change.directory(), Counter::kMerging, plan.into->number()));
    SW_TRY(committed, change.add({}, {}, Durability::kCommit, false));
  }
  // From then on it is certain that nothing more comes to the layers below the topmost.
  SW_CHECK_OK(committed->wait());
  merge_ = std::make_unique<LayerMerge>(*this, name, std::move(plan));
  return {};
}

/// Empty: there is nothing to merge, or no room for it.
Result<std::vector<LayerPtr>> LayeredStorage::choose_layers(Reader& directory,
                                                            const ObjectEntry& entry) {
  std::vector<LayerPtr> layers;
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 1; i < entry.layers.size(); ++i) {
    const LayerNumber number = entry.layers[i];
    SW_TRY(const auto layer, find_layer(directory, number));
    if (!layer || layer->damaged || unreadable_.contains(number)) break;
    layers.push_back(layers_.get(number, layer->stored ? Stored::kYes : Stored::kNo));
    sizes.push_back(layers.back()->bytes());
  }
  layers.resize(layers_to_merge(entry.layers.size(), sizes));
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) bytes += sizes[i];
  if (!layers.empty() && !has_room_for(bytes)) layers.clear();
  return layers;
}

Result<void> LayeredStorage::drop_unfinished_merge() {
  std::unique_ptr<PendingCommit> committed;
  LayerNumber number = 0;
  {
    DirectoryChange change(*this);
    SW_TRY(number, read_counter(change.directory(), Counter::kMerging));
    if (number == 0) return {};
    SW_CHECK_OK(write_counter(change.directory(), Counter::kMerging, 0));
    SW_TRY(const auto layer, find_layer(change.directory(), number));
    if (layer && layer->owners == 0) SW_CHECK_OK(erase_layer(change.directory(), number));
    else number = 0;  // that cannot be, or the directory is damaged
    SW_TRY(committed, change.add({}, {}, Durability::kCommit, true));
  }
  SW_CHECK_OK(committed->wait());
  if (number != 0) layers_.discard(number);
  return {};
}

void LayeredStorage::abandon_merge() {
  const MutexLock lock(merge_mutex_);
  if (!merge_) return;
  merge_.reset();
  (void)drop_unfinished_merge();  // else the next start does it
}

}  // namespace sw::storage
