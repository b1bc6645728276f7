// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/interpreter/residency_pool.h"

#include <algorithm>
#include <list>
#include <optional>
#include <vector>

#include "interpreter/tenant.h"

namespace sw::interpreter {

class ResidencyPool::State {
 public:
  explicit State(const ResidencyLimits& limits) : limits_(limits) {}

  ResidencyStats stats() const {
    const std::lock_guard lock(mutex_);
    return {.instances = entries_.size(), .bytes = bytes_, .evicted = evicted_};
  }

  std::unique_ptr<Resident> take(const Tenant& tenant, std::string_view context) {
    const std::lock_guard lock(mutex_);
    const auto found = find(tenant, context);
    return found == entries_.end() ? nullptr : remove(found);
  }

  bool has(const Tenant& tenant, std::string_view context) {
    const std::lock_guard lock(mutex_);
    return find(tenant, context) != entries_.end();
  }

  void put(Tenant& tenant, std::unique_ptr<Resident> resident) {
    {
      const std::lock_guard lock(mutex_);
      bytes_ += resident->bytes;
      entries_.push_back({&tenant, std::move(resident)});
    }
    while (const std::optional<Victim> victim = choose(tenant)) {
      // Dies here, while its tenant cannot begin to work.
    }
  }

  std::vector<std::unique_ptr<Resident>> take_all(const Tenant& tenant) {
    const std::lock_guard lock(mutex_);
    std::vector<std::unique_ptr<Resident>> taken;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (entry->tenant == &tenant) taken.push_back(remove(entry));
      entry = next;
    }
    return taken;
  }

 private:
  struct Entry {
    Tenant* tenant;
    std::unique_ptr<Resident> resident;
  };
  using Entries = std::list<Entry>;

  struct Victim {
    // unlocked after the resident is gone; none for the caller's own
    std::unique_lock<std::mutex> tenant;
    std::unique_ptr<Resident> resident;
  };

  Entries::iterator find(const Tenant& tenant, std::string_view context) {
    return std::ranges::find_if(entries_, [&](const Entry& entry) {
      return entry.tenant == &tenant && entry.resident->context == context;
    });
  }

  std::unique_ptr<Resident> remove(Entries::iterator entry) {
    auto resident = std::move(entry->resident);
    bytes_ -= resident->bytes;
    entries_.erase(entry);
    return resident;
  }

  /// The next to go, if any has to. `self` is at work: by the calling thread.
  std::optional<Victim> choose(const Tenant& self) {
    const std::lock_guard lock(mutex_);
    if (bytes_ <= limits_.bytes_max && entries_.size() <= limits_.instances_max)
      return std::nullopt;
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      std::unique_lock<std::mutex> tenant;
      if (entry->tenant != &self) {
        tenant = std::unique_lock(entry->tenant->working_, std::try_to_lock);
        if (!tenant) continue;
      }
      ++evicted_;
      return Victim{std::move(tenant), remove(entry)};
    }
    return std::nullopt;
  }

  const ResidencyLimits limits_;
  // guards all below; taken after a tenant's, or with try_lock of a tenant's within
  mutable std::mutex mutex_;
  Entries entries_;  // used longest ago first
  std::uint64_t bytes_ = 0;
  std::uint64_t evicted_ = 0;
};

ResidencyPool::ResidencyPool(const ResidencyLimits& limits)
    : state_(std::make_unique<State>(limits)) {}
ResidencyPool::~ResidencyPool() = default;
ResidencyStats ResidencyPool::stats() const { return state_->stats(); }

Tenant::Tenant(std::shared_ptr<ResidencyPool> pool) : pool_(std::move(pool)) {}

Tenant::~Tenant() {
  const auto working = work();
  clear();
}

std::unique_ptr<Resident> Tenant::take(std::string_view context) {
  return pool_->state().take(*this, context);
}
void Tenant::put(std::unique_ptr<Resident> resident) {
  pool_->state().put(*this, std::move(resident));
}
void Tenant::drop(std::string_view context) { (void)pool_->state().take(*this, context); }
void Tenant::clear() { (void)pool_->state().take_all(*this); }
bool Tenant::has(std::string_view context) const { return pool_->state().has(*this, context); }

}  // namespace sw::interpreter
