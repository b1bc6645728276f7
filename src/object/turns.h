// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/thread_safety.h"

namespace sw::object {

/// Whoever has the turn of a key works with it alone, also while it lets go of the mutex that guards
/// everything. Who waits for a turn holds a thread, so turns are for what is seldom contended.
class Turns {
 public:
  /// From its making to its end the key's turn is its maker's.
  class Turn {
   public:
    /// Waits for it. `lock` is of the mutex that guards the turns; it is held when this returns, and
    /// when the turn ends. In between an Unlocked gives it back.
    Turn(Turns& turns, std::string_view key, MutexLock& lock);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
    const std::string key_;
  };

  bool none() const { return taken_.empty(); }
  void wait_for_none(MutexLock& lock);

 private:
  CondVar ended_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace sw::object
