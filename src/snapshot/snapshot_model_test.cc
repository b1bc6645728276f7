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
#include <string>
#include <vector>

#include "snapshot/faulty_storage.h"
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

struct ModelContext {
  StatePtr newest;
  std::vector<StatePtr> history;  // nearest first
  std::map<std::string, StatePtr> checkpoints;
};

class Model {
 public:
  Model(std::uint32_t seed, storage::Storage& storage, std::size_t history_max)
      : random_(seed), storage_(storage), history_max_(history_max) {
    restart();
  }

  void step() {
    const std::size_t what = random_() % 100;
    if (what < 60) run_and_save();
    else if (what < 66) undo();
    else if (what < 70) rewind();
    else if (what < 74) fork();
    else if (what < 79) add_checkpoint();
    else if (what < 81) remove_checkpoint();
    else if (what < 83) remove();
    else if (what < 84) begin_again();
    else if (what < 85) must(store_->collect());
    else if (what < 90) live_.clear();  // evicted
    else if (what < 92) restart();
    else with_a_fault();
  }

  void check_all() {
    ASSERT_EQ(store_->contexts().size(), contexts_.size());
    for (const auto& [name, context] : contexts_) {
      const auto versions = must(store_->versions(name));
      ASSERT_EQ(versions.size(), context.history.size() + 1) << name;
      expect_state(name, versions[0], *context.newest);
      for (std::size_t i = 1; i < versions.size(); ++i)
        expect_state(name, versions[i], *context.history[i - 1]);
      const auto checkpoints = must(store_->checkpoints(name));
      ASSERT_EQ(checkpoints.size(), context.checkpoints.size());
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
    store_ =
        must(SnapshotStore::open(*object_, {.history_max = static_cast<std::uint32_t>(history_max_),
                                            .recent_bytes_max = 20 * kPageBytes}));
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
      EXPECT_EQ(running.guest.memory(), contexts_[name].newest->memory);
      EXPECT_EQ(as_text(restored.host_tables), contexts_[name].newest->tables);
      running.guest.mark_all();
      running.live = std::move(restored.live);
    } else {
      running.live = must(store_->begin(name, kBuild));
    }
    return live_.emplace(name, std::move(running)).first->second;
  }

  /// What a run might do to its memory.
  void run(Guest& guest) {
    const auto noise = [&](std::size_t size) {
      std::string text(size, ' ');
      for (char& c : text) c = static_cast<char>(random_());
      return text;
    };
    const std::size_t bytes = guest.memory().size();
    for (std::size_t n = random_() % 6; n > 0; --n) {
      switch (random_() % 8) {
        case 0: guest.write(random_() % (bytes - 9000), noise(1 + random_() % 9000)); break;
        case 1: {  // as in the image again, or zero beyond it
          const std::size_t page = random_() % (bytes / kPageBytes);
          const bool in_image = page < image_.size() / kPageBytes;
          guest.write(page * kPageBytes,
                      in_image ? as_text(BytesView(image_).subspan(page * kPageBytes, kPageBytes))
                               : std::string(kPageBytes, '\0'));
          break;
        }
        case 2:
          if (bytes < 400 * kPageBytes) guest.grow_to(bytes + (random_() % 40) * kPageBytes);
          break;
        case 3: guest.mark(random_() % (bytes / kPageBytes)); break;  // written with what it held
        default:
          guest.write((random_() % 12) * kPageBytes + random_() % 4000, noise(1 + random_() % 60));
      }
    }
    if (random_() % 60 == 0 && bytes > 300 * kPageBytes)
      guest.write(10 * kPageBytes, noise(280 * kPageBytes));
  }

  void run_and_save() {
    const std::string name =
        random_() % 20 == 0 ? "c" + std::to_string(random_() % 5) : any_context();
    Running& r = running(name);
    run(r.guest);
    if (random_() % 3 == 0) tables_ = std::to_string(random_());
    save(name, r, true);
  }

  void save(const std::string& name, Running& r, bool must_work) {
    const auto ranges = r.guest.dirty();
    const auto saved = store_->save(*r.live, {.memory = SpanPageSource(r.guest.memory()),
                                              .image = image_,
                                              .changed = ranges,
                                              .host_tables = as_bytes(tables_),
                                              .time_ms = ++time_});
    EXPECT_TRUE(saved.ok() || !must_work) << saved.error().message;
    if (saved.ok()) note_saved(name, r.guest);
  }

  void note_saved(const std::string& name, Guest& guest) {
    auto state = std::make_shared<const State>(State{guest.memory(), tables_});
    make_newest(contexts_[name], std::move(state));
  }

  void make_newest(ModelContext& context, StatePtr state) {
    if (context.newest) context.history.insert(context.history.begin(), context.newest);
    if (context.history.size() > history_max_) context.history.resize(history_max_);
    context.newest = std::move(state);
  }

  void undo() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    ModelContext& context = contexts_[name];
    const std::size_t runs = random_() % (history_max_ + 2);
    const auto done = store_->undo(name, static_cast<std::uint32_t>(runs), ++time_);
    ASSERT_EQ(done.ok(), runs <= context.history.size());
    if (!done.ok()) return;
    live_.erase(name);
    if (runs == 0) return;
    context.newest = context.history[runs - 1];
    context.history.erase(context.history.begin(),
                          context.history.begin() + static_cast<std::ptrdiff_t>(runs));
  }

  /// A version of the context, what it holds, and the history a fork of it has.
  struct Choice {
    VersionId id;
    StatePtr state;
    std::vector<StatePtr> history;
  };
  Choice choose_version(const std::string& name) {
    const ModelContext& context = contexts_[name];
    const auto versions = must(store_->versions(name));
    if (!context.checkpoints.empty() && random_() % 2 == 0) {
      const auto checkpoints = must(store_->checkpoints(name));
      const CheckpointInfo& chosen = checkpoints[random_() % checkpoints.size()];
      const bool also_in_history = std::ranges::any_of(
          versions, [&](const VersionInfo& version) { return version.id == chosen.version; });
      if (!also_in_history) return {chosen.version, context.checkpoints.at(chosen.label), {}};
    }
    const std::size_t i = random_() % versions.size();
    Choice choice{versions[i].id, i == 0 ? context.newest : context.history[i - 1], {}};
    choice.history.assign(context.history.begin() + static_cast<std::ptrdiff_t>(i),
                          context.history.end());
    return choice;
  }

  void rewind() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    const Choice choice = choose_version(name);
    must(store_->rewind(name, choice.id, ++time_));
    live_.erase(name);
    make_newest(contexts_[name], choice.state);
  }

  void fork() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    const std::string fork = "f" + std::to_string(random_() % 6);
    const Choice choice = choose_version(name);
    const auto done = store_->fork(name, choice.id, fork, ++time_);
    ASSERT_EQ(done.ok(), !contexts_.contains(fork));
    if (done.ok()) contexts_[fork] = {choice.state, choice.history, {}};
  }

  void add_checkpoint() {
    if (contexts_.empty()) return;
    const std::string name = any_context();
    const std::string label = std::to_string(random_() % 5);
    const auto done = store_->add_checkpoint(name, label, ++time_);
    ASSERT_EQ(done.ok(), !contexts_[name].checkpoints.contains(label));
    if (done.ok()) contexts_[name].checkpoints[label] = contexts_[name].newest;
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
    run(fresh.guest);
    save(name, live_.emplace(name, std::move(fresh)).first->second, true);
  }

  void with_a_fault() {
    const std::string name = any_context();
    Running& r = running(name);
    run(r.guest);
    const auto fault = static_cast<Fault>(1 + random_() % 4);
    object_->set(fault, random_() % 3);
    const ModelContext before = contexts_.contains(name) ? contexts_[name] : ModelContext{};
    save(name, r, fault == Fault::kBodyRunsTwice);
    object_->set(Fault::kNone, 0);
    if (fault == Fault::kAfterCommit) {
      // It was reported as failed, but is there; this memory cannot go on, the stored one can.
      EXPECT_EQ(contexts_.contains(name) ? contexts_[name].newest : nullptr, before.newest);
      note_saved(name, r.guest);
      EXPECT_FALSE(store_
                       ->save(*r.live, {.memory = SpanPageSource(r.guest.memory()),
                                        .image = image_,
                                        .changed = {},
                                        .host_tables = {},
                                        .time_ms = 0})
                       .ok());
      live_.erase(name);
    } else if (fault != Fault::kBodyRunsTwice && random_() % 2 == 0) {
      live_.erase(name);  // or else the same memory is saved later
    }
  }

  void expect_state(const std::string& name, const VersionInfo& version, const State& state) {
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
  std::size_t history_max_;
  Bytes image_ = make_image(64);
  std::string tables_ = "tables";
  std::int64_t time_ = 0;
  std::unique_ptr<FaultyStorage> object_;
  std::unique_ptr<SnapshotStore> store_;
  std::map<std::string, Running> live_;
  std::map<std::string, ModelContext> contexts_;
};

void run_model(storage::Storage& storage, int steps, std::size_t history_max) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Model model(seed, storage, history_max);
  for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
    model.step();
    if (i % 50 == 49) model.check_all();
  }
  model.check_all();
}

TEST(SnapshotModel, MemoryStorage) {
  for (const std::size_t history_max : {0U, 1U, 4U, 20U}) {
    storage::MemoryDisk disk{storage::Bodies::kTwice};
    const auto storage = storage::open_memory_storage(disk);
    run_model(*storage, 200, history_max);
  }
}

TEST(SnapshotModel, SqliteStorage) {
  const auto folder =
      must(TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-snapshot-"));
  const auto storage = must(storage::open_sqlite_storage(folder.path(), {}));
  run_model(*storage, 100, 5);
}

}  // namespace
}  // namespace sw::snapshot
