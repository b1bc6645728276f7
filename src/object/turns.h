// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace sw::object {

/// Whoever has the turn of a key works with it alone, also while it lets go of the mutex that guards
/// everything. Who waits for a turn holds a thread, so turns are for what is seldom contended.
class Turns {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// From its making to its end the key's turn is its maker's.
  class Turn {
   public:
    /// Waits for it. `lock` is of the mutex that guards the turns; it is held when this returns, and
    /// outlives the turn.
    Turn(Turns& turns, std::string_view key, Lock& lock);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
    const std::string key_;
    Lock& lock_;
  };

  bool none() const { return taken_.empty(); }
  void wait_for_none(Lock& lock);

 private:
  std::condition_variable ended_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace sw::object
