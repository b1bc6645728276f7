// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/residency_pool.h"

#include <algorithm>
#include <utility>

namespace sw::interpreter {

ResidencyPool::Entries::const_iterator ResidencyPool::find(Owner owner,
                                                           std::string_view context) const {
  return std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.owner == owner && entry.context == context;
  });
}

std::unique_ptr<Resident> ResidencyPool::take(Owner owner, std::string_view context) {
  Entries taken;
  const MutexLock lock(mutex_);
  const auto found = find(owner, context);
  if (found == entries_.end()) return nullptr;
  taken.splice(taken.end(), entries_, found);
  bytes_ -= taken.front().resident->bytes;
  return std::move(taken.front().resident);
}

void ResidencyPool::put(Owner owner, std::string context, std::unique_ptr<Resident> resident) {
  Entries dropped;  // before the lock: they end after it
  const MutexLock lock(mutex_);
  bytes_ += resident->bytes;
  entries_.push_back({owner, std::move(context), std::move(resident)});
  while (bytes_ > limits_.bytes_max || entries_.size() > limits_.instances_max) {
    bytes_ -= entries_.front().resident->bytes;
    ++evicted_;
    dropped.splice(dropped.end(), entries_, entries_.begin());
  }
}

bool ResidencyPool::has(Owner owner, std::string_view context) const {
  const MutexLock lock(mutex_);
  return find(owner, context) != entries_.end();
}

void ResidencyPool::clear(Owner owner) {
  Entries dropped;
  const MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->owner == owner) {
      bytes_ -= entry->resident->bytes;
      dropped.splice(dropped.end(), entries_, entry);
    }
    entry = next;
  }
}

ResidencyStats ResidencyPool::stats() const {
  const MutexLock lock(mutex_);
  return {.instances = entries_.size(), .bytes = bytes_, .evicted = evicted_};
}

}  // namespace sw::interpreter
