// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: a SQLite file layer over the real files that stops working at a chosen moment, and
// then forgets what a power loss would have forgotten.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

namespace sw::storage {

class FaultyDisk {
 public:
  FaultyDisk();
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  /// For SqliteOptions::vfs.
  const std::string& name() const;

  enum class Syncs : std::uint8_t { kReal, kSkipped };
  /// Skipped: fast, for tests that never lose power.
  void set_syncs(Syncs syncs);

  /// The `n`th change from now on (write, truncation, sync, deletion or creation of a file), and
  /// all after it, fail without any effect.
  void fail_from(std::uint64_t n);
  /// Whether that moment has come.
  bool failing() const;
  std::uint64_t changes() const;

  /// What becomes of writes that were not synced when the power went: each is lost, or each of its
  /// sectors may be.
  enum class Unsynced : std::uint8_t { kLost, kTorn };
  /// To be called when no file of the layer is open. Afterwards everything works again.
  void lose_power(Unsynced unsynced, std::mt19937& random);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sw::storage
