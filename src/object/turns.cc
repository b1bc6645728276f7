// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/turns.h"

namespace sw::object {

Turns::Turn::Turn(Turns& turns, std::string_view key, Lock& lock)
    : turns_(turns), key_(key), lock_(lock) {
  turns_.ended_.wait(lock, [this] { return !turns_.taken_.contains(key_); });
  turns_.taken_.insert(key_);
}

Turns::Turn::~Turn() {
  if (!lock_.owns_lock()) lock_.lock();
  turns_.taken_.erase(key_);
  turns_.ended_.notify_all();
}

void Turns::wait_for_none(Lock& lock) {
  ended_.wait(lock, [this] { return taken_.empty(); });
}

}  // namespace sw::object
