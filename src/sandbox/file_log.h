// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the last changes of a sandbox's files replaced, so that the files can be put back, and which
// state of the files each step of a context left. A state is what the files are between two changes.
// States are numbered; 0 is the one before the first change that was logged.
// Format: docs/formats/files.md.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sandbox/file_entry.h"
#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::sandbox {

/// A step of a context: a run, by the Interpreter's count.
struct ContextStep {
  std::string context;
  std::uint64_t number = 0;
};

inline constexpr storage::TableId kLogTable = 0x22;
inline constexpr storage::TableId kStepsTable = 0x23;

/// Threads: one at a time.
class FileLog {
 public:
  /// What was there, by path; absent: nothing.
  using Before = std::map<std::string, std::optional<FileEntry>>;

  /// The change that led to a state.
  struct Row {
    /// Absent if it alone is more than the log may keep.
    std::optional<Before> before;
    std::uint64_t bytes = 0;  ///< that it takes in the storage
  };
  using Rows = std::map<std::uint64_t, Row>;  // by state, without gaps

  /// From which step on a context left which state.
  using Steps = std::map<std::uint64_t, std::uint64_t>;
  using StepsByContext = std::map<std::string, Steps, std::less<>>;

  /// What a transaction does to the log.
  class Change {
   public:
    /// May be called again if the transaction is run again.
    Result<void> write(storage::Transaction& transaction) const;

   private:
    friend class FileLog;
    std::optional<std::pair<std::uint64_t, Row>> added_;
    std::string added_text_;
    Rows::size_type dropped_ = 0;  // so many of the oldest rows
    std::uint64_t first_ = 0;      // of the rows before the change
    StepsByContext steps_;
    StepsByContext dropped_steps_;
  };

  /// Errors: kCorrupt.
  static Result<FileLog> load(storage::Reader& reader);
  /// Erases what is stored of a context's steps; `forget` forgets it.
  static Result<void> erase_steps(storage::Transaction& transaction, std::string_view context);
  void forget_steps(std::string_view context);
  /// Erases all of it.
  static Result<void> erase(storage::Transaction& transaction);

  const Rows& rows() const { return rows_; }
  /// The state that a step left; absent if it cannot be put back (any more).
  std::optional<std::uint64_t> state_after(const ContextStep& step) const;
  /// The first step of a context whose state can be put back.
  std::optional<std::uint64_t> first_step(std::string_view context) const;
  /// What the paths that were changed since had in a state that can be put back. Valid until the log
  /// changes.
  std::map<std::string_view, const std::optional<FileEntry>*> before_changes_since(
      std::uint64_t state) const;

  // In this order:

  /// Adds a row.
  const Row& add(Change& change, Before before) const;
  /// Takes away the oldest row that is left; null if only the one that was added is.
  const Row* drop_oldest(Change& change) const;
  /// Leaves of the row that was added only that there was a change.
  const Row& cut(Change& change) const;
  /// Lets go of the steps whose states cannot be put back any more.
  void drop_steps(Change& change) const;
  /// A step ended, and the change is a part of it.
  void end_step(Change& change, const ContextStep& step) const;
  /// A new context has the steps of another up to one.
  void inherit(Change& change, const ContextStep& from, const std::string& heir) const;

  /// The transaction is committed.
  void written(Change change);

 private:
  std::uint64_t newest() const { return rows_.empty() ? 0 : rows_.rbegin()->first; }
  std::uint64_t oldest() const;

  Rows rows_;
  StepsByContext steps_;
};

}  // namespace sw::sandbox
