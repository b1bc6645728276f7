// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where contexts rest: for each, versions of its linear memory and of the small tables the host
// keeps for it. A version costs what changed since the one before. Older versions stay to be gone
// back to, within limits, checkpoints keep a version for good, a fork is a second context that
// begins at a version of the first; all three only refer to what is stored.
//
//   auto live = store.begin("c1", build);                        a memory as the image has it
//   auto step = live.encode({.memory = …, .image = …, .changed = …});   after each run
//   store.save(live, *std::move(step));
//   auto newest = store.latest("c1");                            in another process:
//   auto restored = store.restore("c1", newest->id, build, image, memory);
//
// What a run changed is on disk before anyone hears that it ended: each operation is one
// transaction, and takes along what the caller has to write.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/history_limits.h"
#include "sandbox_workers/base/pages.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/pack.h"
#include "storage/storage.h"

namespace sw::snapshot {

/// Of what a caller says about a step.
inline constexpr std::size_t kAboutBytesMax = 4096;

struct Options {
  storage::TableId contexts_table = 0x60;
  storage::TableId packs_table = 0x61;
  HistoryLimits history = {};
  /// Copies of often-changed pages that a live memory keeps, to save differences to them.
  std::size_t recent_bytes_max = std::size_t{8} << 20U;
  std::size_t checkpoints_max = 100;
  /// Whether `save` does a small share of the garbage collection. Else call `collect`.
  bool collect_while_saving = true;
};

/// A memory at rest, to be saved.
struct Step {
  const PageSource& memory;
  BytesView image;  ///< what the memory was made from; zeros follow it
  /// Ascending: whatever may have changed since the last save or restore; of a memory that was not
  /// saved yet, whatever may differ from the image. May say too much. Pages outside of it are taken to
  /// be as they were saved.
  std::span<const ByteRange> changed;
  BytesView host_tables;
  std::int64_t time_ms = 0;
  /// The caller's count of steps, which ascends. Zero: one more than the newest's.
  std::uint64_t number = 0;
  /// What `history` is to say of it; at most kAboutBytesMax, the rest is cut.
  std::string_view about = {};
};

struct SaveStats {
  VersionId version;
  std::int64_t time_ms = 0;         ///< the step's
  std::uint64_t pages_seen = 0;     ///< in `changed`
  std::uint64_t pages_changed = 0;  ///< really different from what is stored
  std::uint64_t pages_moved = 0;    ///< written again so that older packs can go
  std::uint64_t stored_pages = 0;   ///< that differ from the image, all in all
  std::uint64_t bytes_written = 0;  ///< of packs
};

struct VersionInfo {
  VersionId id;
  std::string build;
  std::uint64_t memory_bytes = 0;  ///< what the memory must be grown to before `restore`
  std::uint64_t pages = 0;         ///< of 4 KiB that differ from the image
  std::int64_t time_ms = 0;
  std::uint64_t step = 0;  ///< whose memory it is
};

/// A step that can be gone back to.
struct HistoryEntry {
  VersionId version;
  std::uint64_t step = 0;
  std::int64_t time_ms = 0;
  std::uint64_t bytes = 0;  ///< that it wrote
  std::string about;
  bool newest = false;  ///< the context's memory is its
  std::vector<std::string> checkpoints;
};

struct CheckpointInfo {
  std::string label;
  VersionId version;
  std::int64_t time_ms = 0;  ///< when it was made
};

/// What lies in the storage under a context's own name. Relatives share packs: each is counted
/// where it was written.
struct StorageUsage {
  std::uint64_t packs = 0;
  std::uint64_t bytes = 0;
};

struct StoreStats {
  std::uint64_t packs = 0;
  std::uint64_t pack_bytes = 0;
  std::uint64_t collections = 0;  ///< finished since the store was opened
  /// What the last one, or reading a history, found damaged; what that may need is kept. Empty: all
  /// is well.
  std::string damage;
};

/// What a step will write, until it is saved. Refers to the memory that it is of.
class EncodedStep {
 public:
  struct State;

  explicit EncodedStep(std::unique_ptr<State> state);
  EncodedStep(EncodedStep&&) noexcept;
  EncodedStep& operator=(EncodedStep&&) noexcept;
  ~EncodedStep();

  const SaveStats& stats() const;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// A memory in use: what of it is known to be stored. Belongs to the instance whose memory it is:
/// they live and die together.
class LiveMemory {
 public:
  struct State;

  explicit LiveMemory(std::shared_ptr<State> state);
  LiveMemory(LiveMemory&&) noexcept;
  LiveMemory& operator=(LiveMemory&&) noexcept;
  ~LiveMemory();

  const std::string& context() const;
  const std::string& build() const;
  /// None before the first save of a fresh memory in a new context.
  std::optional<VersionId> version() const;
  std::uint64_t stored_pages() const;
  /// Of these, those that a restore left out and nobody has asked for.
  std::uint64_t unread_pages() const;
  /// How much memory the bookkeeping takes.
  std::size_t bookkeeping_bytes() const;

  /// Finds what has changed, to be saved next. The store may be used by others meanwhile, for other
  /// memories; this takes most of a save's time.
  /// Errors: kInvalidArgument for sizes or ranges that cannot be, kLimitExceeded for host tables.
  Result<EncodedStep> encode(const Step& step);

  State& state() { return *state_; }

 private:
  std::shared_ptr<State> state_;  // shared with who loads pages of it
};

/// Asked in a restore, before a page is written: whether these parts of the memory (ascending, not
/// touching) can be left out. True: they can, and hold nothing until somebody loads it. A restore
/// that starts again asks again.
using LeaveOut = std::function<bool(std::span<const ByteRange> parts)>;
/// Writes a page that a restore left out into `memory`, and others that cost little more: at most
/// kLoadedPagesMax. To be called as the store is, and while it is there.
/// Errors: kCorrupt when what is stored is damaged, and those of the storage.
using PageLoader = std::function<Result<void>(std::uint32_t page, PageSink& memory)>;
inline constexpr std::size_t kLoadedPagesMax = 256;

struct Restored {
  LiveMemory live;
  Bytes host_tables;
  PageLoader load;  ///< empty: no page was left out
  std::uint64_t pages_written = 0;
  std::uint64_t packs_read = 0;
};

/// Runs a body in a transaction; so does a save, if it is given one: `saved` is what it will have done.
using Commit = std::function<Result<void>(const SaveStats& saved, const storage::TransactionBody&)>;

/// The same for a version that going back, or a fork, makes.
using CommitVersion =
    std::function<Result<void>(const VersionInfo& version, const storage::TransactionBody&)>;

/// Writes the caller's own rows into the same transaction. May be called more than once.
using ExtraWrites = std::function<Result<void>(storage::Transaction&)>;

/// Threads: one at a time, like the storage. Context names: any bytes, 1 to 256 of them.
/// Errors of all: kInvalidArgument, kNotFound (no such context, version or checkpoint), kCorrupt
/// (says what is damaged), and those of the storage. After an error nothing has changed.
class SnapshotStore {
 public:
  /// `storage` outlives the store, and nobody else touches the two tables.
  static Result<std::unique_ptr<SnapshotStore>> open(storage::ObjectStorage& storage,
                                                     const Options& options);
  ~SnapshotStore();
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;

  std::vector<std::string> contexts() const;
  bool has(std::string_view context) const;

  /// A memory as the image has it. Nothing is written before `save`; what the context holds until
  /// then stays, and can be undone to afterwards.
  Result<LiveMemory> begin(std::string_view context, std::string_view build);
  Result<SaveStats> save(LiveMemory& live, EncodedStep step, const ExtraWrites& extra_writes = {},
                         const Commit& commit = {});

  Result<VersionInfo> latest(std::string_view context);
  /// Of one that `history` or `checkpoints` list.
  Result<VersionInfo> version(std::string_view context, VersionId version);
  /// Oldest first. After going back, the steps that came later are still there.
  Result<std::vector<HistoryEntry>> history(std::string_view context);
  /// Deletes all but the newest version and checkpoints, and what only they need.
  Result<void> forget_history(std::string_view context);
  /// Errors: kNotFound, naming the steps that are kept.
  Result<VersionId> version_of_step(std::string_view context, std::uint64_t step);
  /// Writes the version's pages over `memory`, which is as the image has it and grown to the
  /// version's size. After an error `memory` may be partly written and must be dropped; no damaged
  /// page is ever written. `live` can be saved only if the version is the newest.
  /// If `leave_out` allows, parts of a large memory are left out, and Restored::load writes their
  /// pages (those that are as in the image, too) when somebody needs them: until the context is
  /// removed, whatever becomes of the version. `save` does not read what is still left out.
  /// Errors: kInvalidArgument for another build or size.
  Result<Restored> restore(std::string_view context, VersionId version, std::string_view build,
                           BytesView image, PageSink& memory, const LeaveOut& leave_out = {});

  /// Makes a copy of what the newest version was `runs` before the newest. A LiveMemory of the
  /// context is of no use afterwards.
  /// Errors: kInvalidArgument if one of the versions between is not kept any more, naming the steps
  /// that are.
  Result<VersionInfo> undo(std::string_view context, std::uint32_t runs, std::int64_t time_ms,
                           const ExtraWrites& extra_writes = {}, const CommitVersion& commit = {});
  /// The same for one run, which is forgotten as if it had never been. kNotFound if there is nothing
  /// to go back to.
  Result<VersionInfo> take_back(std::string_view context, std::int64_t time_ms,
                                const ExtraWrites& extra_writes = {});
  /// Makes a copy of `version` (one that `history` or `checkpoints` list) the newest; undo leads
  /// back.
  Result<VersionInfo> rewind(std::string_view context, VersionId version, std::int64_t time_ms,
                             const ExtraWrites& extra_writes = {},
                             const CommitVersion& commit = {});
  /// A new context that begins where `version` is; absent: the newest.
  Result<VersionInfo> fork(std::string_view context, std::optional<VersionId> version,
                           std::string_view new_context, std::int64_t time_ms,
                           const ExtraWrites& extra_writes = {}, const CommitVersion& commit = {});
  /// Deletes a context and everything that only it needs. If that fails half way (a relative is
  /// damaged) the context is gone all the same.
  Result<void> remove(std::string_view context, const ExtraWrites& extra_writes = {});

  /// Keeps the newest version under a label. kInvalidArgument if the context has one of that label.
  Result<VersionInfo> add_checkpoint(std::string_view context, std::string_view label,
                                     std::int64_t time_ms, const ExtraWrites& extra_writes = {});
  Result<std::vector<CheckpointInfo>> checkpoints(std::string_view context) const;
  Result<void> remove_checkpoint(std::string_view context, std::string_view label,
                                 const ExtraWrites& extra_writes = {});

  /// Deletes everything that no version needs any more. Takes as long as there are packs; for tests
  /// and idle times.
  Result<void> collect();
  /// Looks at all packs of the context once; later, and after saves, it knows.
  Result<StorageUsage> usage(std::string_view context);
  Result<StoreStats> stats();

 private:
  struct State;
  explicit SnapshotStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sw::snapshot
