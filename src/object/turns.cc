// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/turns.h"

namespace sw::object {

Turns::Turn::Turn(Turns& turns, std::string_view key, MutexLock& lock) : turns_(turns), key_(key) {
  while (turns_.taken_.contains(key_)) turns_.ended_.wait(lock);
  turns_.taken_.insert(key_);
}

Turns::Turn::~Turn() {
  turns_.taken_.erase(key_);
  turns_.ended_.notify_all();
}

void Turns::wait_for_none(MutexLock& lock) {
  while (!taken_.empty()) ended_.wait(lock);
}

}  // namespace sw::object
