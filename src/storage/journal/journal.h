// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commit journal: changes of all objects go to the end of one file, and one sync makes the
// commits of all who wait durable. Two files take turns: when one is long enough, commits go to the
// other, until everything in the first is in the objects' own files too. docs/formats/journal.md
// describes them, ADR 0022 says why.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_safety.h"
#include "storage/commit_log.h"
#include "storage/journal/frame.h"
#include "storage/sqlite/vfs_file.h"

namespace sw::storage {

struct JournalOptions {
  std::array<std::filesystem::path, 2> paths;
  std::string vfs = {};
  /// How many others will have something to commit soon, but wait for a processor. While there are
  /// several, a sync waits a moment for more commits.
  std::function<std::size_t()> waiting = {};
  /// Called with a layer that has rows on disk which its file lacks. With the journal's mutex held.
  std::function<void(const LayerPtr&)> on_settled = {};
  /// Called after a sync, without the mutex, with the bytes of the file in use.
  std::function<void(std::uint64_t)> on_written = {};
};

/// Threads: any.
class Journal final : public CommitLog {
 public:
  /// Gives `recover` what the files hold, in order.
  /// Errors: kUnavailable; kInvalidArgument for files of a newer program.
  static Result<std::unique_ptr<Journal>> open(
      JournalOptions options, const std::function<void(const JournalContent&)>& recover);
  /// Writes what is left.
  ~Journal() override;

  Result<std::unique_ptr<PendingCommit>> add(std::shared_ptr<CommitRecord> record) override;
  bool can_relax() const override { return true; }
  /// Writes relaxed changes now.
  Result<void> sync();
  /// The same, then calls `look` before anything else is committed.
  Result<void> at_rest(const std::function<void()>& look);

  // For one thread, which moves rows from the journal to the objects' files:

  /// Commits go to the other file from now on; those so far are on disk. False: the other file is
  /// still needed.
  bool switch_files();
  /// The file that is not in use is not needed any more.
  Result<void> cut();
  /// Of the file in use.
  std::uint64_t bytes() const { return bytes_; }
  bool other_file_needed() const { return files_[1 - current_].needed; }

 private:
  /// What becomes of a commit. Those of a batch do not queue for the journal's mutex to learn it.
  struct Fate {
    std::atomic<bool> known = false;  // then `failure` does not change any more
    std::optional<Error> failure = {};
    bool waited_for = false;  // by a thread that nobody has told yet; under the journal's mutex
    /// Tells that thread that it is known, or that the next batch is to be written.
    std::binary_semaphore told{0};
  };
  struct Queued {
    std::shared_ptr<CommitRecord> record;
    std::shared_ptr<Fate> fate;  // shared with who waits
  };
  struct File {
    std::unique_ptr<VfsFile> file;
    std::uint64_t allocated = 0;  // bytes it has
    std::uint64_t end = 0;        // where the next frame goes; 0: its header is to be written
    bool needed = false;          // holds what is nowhere else
  };
  class Pending;

  explicit Journal(JournalOptions options) : options_(std::move(options)) {}
  /// What came of writing a batch.
  struct Attempt {
    std::optional<Error> failure = {};
    bool broken = false;
    std::deque<Queued> refused = {};
  };

  Result<void> open_files(const std::function<void(const JournalContent&)>& recover);
  Result<void> wait(Fate& fate) SW_EXCLUDES(mutex_);
  void write_relaxed() SW_EXCLUDES(mutex_);
  /// Gives the mutex up while it writes.
  void write_batch(MutexLock& lock) SW_REQUIRES(mutex_);
  void gather(MutexLock& lock) SW_REQUIRES(mutex_);
  void settle(const Queued& queued) SW_REQUIRES(mutex_);
  void fail(const Queued& queued, const Error& error) SW_REQUIRES(mutex_);
  static void wake(Fate& fate);
  bool has_enough() const SW_REQUIRES(mutex_);
  Attempt write(std::deque<Queued>& batch);
  static Attempt refuse(std::deque<Queued>& batch, Attempt attempt);
  Result<void> allocate(std::uint64_t frame_bytes, std::uint64_t reserve);
  Result<void> write_frame(const FrameEncoder& frame);

  const JournalOptions options_;
  mutable Mutex mutex_;
  CondVar gathered_;  // there are enough commits to write
  CondVar relaxed_;   // the first of the relaxed changes that nobody has written, or the end
  CondVar resolved_;  // a batch has been written, or not; for who has no commit of its own
  std::deque<Queued> queue_ SW_GUARDED_BY(mutex_);
  bool writing_ SW_GUARDED_BY(mutex_) = false;
  bool gathering_ SW_GUARDED_BY(mutex_) = false;
  bool stopping_ SW_GUARDED_BY(mutex_) = false;
  std::optional<Error> broken_ SW_GUARDED_BY(mutex_);  // a sync failed: nothing is known any more
  std::chrono::steady_clock::time_point relaxed_until_ SW_GUARDED_BY(mutex_);
  std::thread relaxed_thread_;  // started under the mutex, joined at the end

  // Whoever is writing has these, and the thread that switches files while nobody is.
  std::array<File, 2> files_;
  std::size_t current_ = 0;
  std::uint64_t next_sequence_ = 1;
  JournalHeader header_;         // of the file in use
  std::uint64_t frame_end_ = 0;  // of the frame that is being written
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace sw::storage
