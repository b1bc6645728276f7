// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The store against a plain model, over random sequences of everything that can be done with it,
// with restarts and with a storage that fails in all the ways its contract allows.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "snapshot/faulty_storage.h"
#include "snapshot/model_context.h"
#include "snapshot/pack_finder.h"
#include "snapshot/snapshot_store.h"
#include "snapshot/test_guest.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::snapshot {
namespace {

struct State {
  Bytes memory;
  std::string tables;
};
using StatePtr = std::shared_ptr<const State>;  // shared between the model's versions

class Model {
 public:
  Model(std::uint32_t seed, storage::Storage& storage, const HistoryLimits& limits)
      : random_(seed), storage_(storage), limits_(limits) {
    restart();
  }

  void step() {
    const std::size_t what = random_() % 100;
    if (what < 60) run_and_save();
    else if (what < 64) undo();
    else if (what < 66) take_back();
    else if (what < 70) rewind();
    else if (what < 74) fork();
    else if (what < 79) add_checkpoint();
    else if (what < 81) remove_checkpoint();
    else if (what < 83) remove();
    else if (what < 84) begin_again();
    else if (what < 85) collect();
    else if (what < 90) live_.clear();  // evicted
    else if (what < 92) restart();
    else with_a_fault();
  }

  void check_all() {
    ASSERT_EQ(store_->contexts().size(), contexts_.size());
    for (const auto& [name, context] : contexts_) {
      check_history(name, context);
      const auto checkpoints = must(store_->checkpoints(name));
      ASSERT_EQ(checkpoints.size(), context.checkpoints.size());
      for (const CheckpointInfo& checkpoint : checkpoints) {
        ASSERT_EQ(checkpoint.version, context.checkpoints.at(checkpoint.label));
        expect_state(name, checkpoint.version);
      }
    }
  }

 private:
  struct Running {
    Guest guest;
    std::optional<LiveMemory> live;
  };

  void restart() {
    live_.clear();
    store_.reset();
    object_.reset();
    object_ = std::make_unique<FaultyStorage>(must(storage_.open({"interpreter", "i"}, {})));
    store_ = must(
        SnapshotStore::open(*object_, {.history = limits_, .recent_bytes_max = 20 * kPageBytes}));
  }

  std::string any_context() {
    if (contexts_.empty()) return "c0";
    auto at = contexts_.begin();
    std::advance(at, random_() % contexts_.size());
    return at->first;
  }

  /// The memory in use of a context, restored if it is not.
  Running& running(const std::string& name) {
    const auto found = live_.find(name);
    if (found != live_.end()) return found->second;
    Running running{Guest(image_), {}};
    if (contexts_.contains(name)) {
      const VersionInfo newest = must(store_->latest(name));
      running.guest.grow_to(newest.memory_bytes);
      Restored restored =
          must(restore_into(*store_, name, newest.id, kBuild, image_, running.guest.memory()));
      EXPECT_EQ(running.guest.memory(), newest_state(name).memory);
      EXPECT_EQ(as_text(restored.host_tables), newest_state(name).tables);
      if (random_() % 2 == 0) running.guest.mark_all();
      running.live = std::move(restored.live);
    } else {
      running.live = must(store_->begin(name, kBuild));
    }
    return live_.emplace(name, std::move(running)).first->second;
  }

  void run_and_save() {
    const std::string name =
        random_() % 20 == 0 ? "c" + std::to_string(random_() % 5) : any_context();
    Running& r = running(name);
    run_at_random(r.guest, image_, random_);
    if (random_() % 3 == 0) tables_ = std::to_string(random_());
    save(name, r, true);
  }

  const State& newest_state(const std::string& name) {
    return *states_.at(contexts_[name].versions.back().id);
  }

  void save(const std::string& name, Running& r, bool must_work) {
    const auto ranges = r.guest.dirty();
    const auto saved =
        store_->save(*r.live, must(r.live->encode({.memory = SpanPageSource(r.guest.memory()),
                                                   .image = image_,
                                                   .changed = ranges,
                                                   .host_tables = as_bytes(tables_),
                                                   .time_ms = ++time_,
                                                   .number = contexts_[name].steps + 1,
                                                   .about = "step"})));
    if (contexts_[name].versions.empty()) contexts_.erase(name);
    EXPECT_TRUE(saved.ok() || !must_work) << saved.error().message;
    if (!saved.ok()) return;
    note_saved(name, r.guest, saved->version);
    if (random_() % 4 != 0) r.guest.note_saved();
  }

  void note_saved(const std::string& name, Guest& guest, VersionId id) {
    states_[id] = std::make_shared<const State>(State{guest.memory(), tables_});
    ModelContext& context = contexts_[name];
    const VersionId parent = context.versions.empty() ? VersionId{} : context.versions.back().id;
    context.versions.push_back({.id = id, .parent = parent, .step = ++context.steps});
  }

  void note_copy(ModelContext& context, const VersionInfo& made, VersionId of, VersionId parent) {
    states_[made.id] = states_.at(of);
    context.versions.push_back({.id = made.id, .parent = parent, .step = made.step, .copy = true});
  }

  void check_history(const std::string& name, const ModelContext& context) {
    const auto history = must(store_->history(name));
    const auto kept = [&](std::uint64_t step) {
      return std::ranges::find(history, step, &HistoryEntry::step) != history.end();
    };
    for (const HistoryEntry& entry : history) {
      ASSERT_TRUE(find(context, entry.version)) << to_string(entry.version);
      EXPECT_EQ(find(context, entry.version)->step, entry.step);
      EXPECT_EQ(entry.newest, entry.step == context.versions.back().step);
      EXPECT_EQ(entry.about, "step");
      expect_state(name, entry.version);
    }
    for (const std::uint64_t step : steps_to_keep(limits_, context))
      EXPECT_TRUE(kept(step)) << name << " step " << step;
  }

  void collect() {
    must(store_->collect());
    std::set<VersionId> roots;
    for (const auto& [name, context] : contexts_) {
      for (const auto& [label, id] : context.checkpoints) roots.insert(id);
      const auto history = must(store_->history(name));
      const std::uint64_t intervals = limits_.every == 0 ? 0 : context.steps / limits_.every + 1;
      EXPECT_LE(history.size(), limits_.full + intervals + context.checkpoints.size() + 2);
    }
    const Packs packs = PackFinder().find(*object_, roots);
    EXPECT_EQ(packs.stored, packs.needed);
    for (const auto& [name, context] : contexts_) {
      const StorageUsage known = must(store_->usage(name));
      const StorageUsage counted =
          must(must(SnapshotStore::open(*object_, {.history = limits_}))->usage(name));
      EXPECT_EQ(known.bytes, counted.bytes);
      EXPECT_EQ(known.packs, counted.packs);
    }
  }

  void undo() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    ModelContext& context = contexts_[name];
    const std::size_t runs = random_() % (limits_.full + 2);
    const ModelVersion* target = &context.versions.back();
    bool must_work = true;
    for (std::size_t i = 0; i < runs && target != nullptr; ++i) {
      target = find(context, target->parent);
      must_work = must_work && target != nullptr && is_recent(limits_, context, *target);
    }
    const auto done = store_->undo(name, static_cast<std::uint32_t>(runs), ++time_);
    ASSERT_TRUE(done.ok() || !must_work) << done.error().message;
    ASSERT_TRUE(target != nullptr || !done.ok());
    if (!done.ok()) return;
    live_.erase(name);
    note_copy(context, *done, target->id, target->parent);
  }

  void take_back() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    ModelContext& context = contexts_[name];
    const ModelVersion newest = context.versions.back();
    const ModelVersion* const found = find(context, newest.parent);
    const auto done = store_->take_back(name, ++time_);
    ASSERT_TRUE(done.ok() || newest.copy || found == nullptr);
    ASSERT_TRUE(found != nullptr || !done.ok());
    if (!done.ok()) return;
    live_.erase(name);
    const ModelVersion target = *found;
    const bool checkpointed = std::ranges::any_of(context.checkpoints, [&](const auto& checkpoint) {
      return checkpoint.second == newest.id;
    });
    if (!checkpointed) context.versions.pop_back();
    note_copy(context, *done, target.id, target.parent);
  }

  /// A version that the context keeps.
  VersionId choose_version(const std::string& name) {
    const ModelContext& context = contexts_[name];
    if (!context.checkpoints.empty() && random_() % 2 == 0)
      return std::next(context.checkpoints.begin(),
                       static_cast<std::ptrdiff_t>(random_() % context.checkpoints.size()))
          ->second;
    const auto history = must(store_->history(name));
    return history[random_() % history.size()].version;
  }

  void rewind() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    const VersionId chosen = choose_version(name);
    const VersionInfo made = must(store_->rewind(name, chosen, ++time_));
    live_.erase(name);
    ModelContext& context = contexts_[name];
    note_copy(context, made, chosen, context.versions.back().id);
  }

  void fork() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    const std::string fork = "f" + std::to_string(random_() % 6);
    const VersionId chosen = choose_version(name);
    const auto done = store_->fork(name, chosen, fork, ++time_);
    ASSERT_EQ(done.ok(), !contexts_.contains(fork));
    if (!done.ok()) return;
    const ModelContext& source = contexts_[name];
    const ModelVersion from = *find(source, chosen);
    std::set<VersionId> kept;
    for (const HistoryEntry& entry : must(store_->history(name))) kept.insert(entry.version);
    ModelContext forked{.versions = {}, .checkpoints = {}, .steps = source.steps};
    for (const ModelVersion& version : source.versions) {
      if (version.id.sequence > from.id.sequence || version.step > from.step) continue;
      if (!version.copy && !kept.contains(version.id)) continue;
      forked.versions.push_back(version);
      forked.versions.back().inherited = true;
    }
    note_copy(forked, *done, chosen, from.parent);
    contexts_[fork] = std::move(forked);
  }

  void add_checkpoint() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    const std::string label = std::to_string(random_() % 5);
    const auto done = store_->add_checkpoint(name, label, ++time_);
    ASSERT_EQ(done.ok(), !contexts_[name].checkpoints.contains(label));
    if (done.ok()) contexts_[name].checkpoints[label] = contexts_[name].versions.back().id;
  }

  void remove_checkpoint() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    const std::string label = std::to_string(random_() % 5);
    ASSERT_EQ(store_->remove_checkpoint(name, label).ok(),
              contexts_[name].checkpoints.erase(label) == 1);
  }

  void remove() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    must(store_->remove(name));
    live_.erase(name);
    contexts_.erase(name);
    EXPECT_TRUE(!contexts_.empty() || must(store_->stats()).packs == 0);
  }

  /// As after a change of build: a memory as the image has it takes the context over.
  void begin_again() {
    const std::string name = any_context();
    live_.erase(name);
    Running fresh{Guest(image_), must(store_->begin(name, kBuild))};
    run_at_random(fresh.guest, image_, random_);
    save(name, live_.emplace(name, std::move(fresh)).first->second, true);
  }

  void with_a_fault() {
    const std::string name = any_context();
    Running& r = running(name);
    run_at_random(r.guest, image_, random_);
    const auto fault = static_cast<Fault>(1 + random_() % 4);
    object_->set(fault, random_() % 3);
    save(name, r, fault == Fault::kBodyRunsTwice);
    object_->set(Fault::kNone, 0);
    if (fault == Fault::kAfterCommit) {
      // It was reported as failed, but is there; this memory cannot go on, the stored one can.
      note_saved(name, r.guest, must(store_->latest(name)).id);
      EXPECT_FALSE(
          store_
              ->save(*r.live, must(r.live->encode({.memory = SpanPageSource(r.guest.memory()),
                                                   .image = image_,
                                                   .changed = {},
                                                   .host_tables = {},
                                                   .time_ms = 0})))
              .ok());
      live_.erase(name);
    } else if (fault != Fault::kBodyRunsTwice && random_() % 2 == 0) {
      live_.erase(name);  // or else the same memory is saved later
    }
  }

  void expect_state(const std::string& name, VersionId id) {
    const State& state = *states_.at(id);
    const VersionInfo version = must(store_->version(name, id));
    ASSERT_EQ(version.memory_bytes, state.memory.size());
    Guest guest(image_);
    guest.grow_to(version.memory_bytes);
    const Restored restored =
        must(restore_into(*store_, name, version.id, kBuild, image_, guest.memory()));
    ASSERT_EQ(guest.memory(), state.memory) << name << " " << to_string(version.id);
    ASSERT_EQ(as_text(restored.host_tables), state.tables);
  }

  std::mt19937 random_;
  storage::Storage& storage_;
  const HistoryLimits limits_;
  Bytes image_ = make_image(64);
  std::string tables_ = "tables";
  std::int64_t time_ = 0;
  std::unique_ptr<FaultyStorage> object_;
  std::unique_ptr<SnapshotStore> store_;
  std::map<std::string, Running> live_;
  std::map<std::string, ModelContext> contexts_;
  std::map<VersionId, StatePtr> states_;
};

void run_model(storage::Storage& storage, int steps, const HistoryLimits& limits) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", last " << limits.full << ", every "
                                  << limits.every);
  Model model(seed, storage, limits);
  for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
    model.step();
    if (i % 50 == 49) model.check_all();
  }
  model.check_all();
}

TEST(SnapshotModel, MemoryStorage) {
  for (const HistoryLimits& limits :
       {HistoryLimits{.full = 0, .every = 0}, HistoryLimits{.full = 1, .every = 3},
        HistoryLimits{.full = 4, .every = 1}, HistoryLimits{.full = 10, .every = 5},
        HistoryLimits{}}) {
    storage::MemoryDisk disk{storage::Bodies::kTwice};
    const auto storage = storage::open_memory_storage(disk);
    run_model(*storage, 200, limits);
  }
}

TEST(SnapshotModel, SqliteStorage) {
  const auto folder =
      must(TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-snapshot-"));
  const auto storage = must(storage::open_sqlite_storage(folder.path(), {}));
  run_model(*storage, 100, {.full = 5, .every = 4});
}

}  // namespace
}  // namespace sw::snapshot
