// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/node.h"

#include <algorithm>
#include <utility>

namespace sw::wasi {

Errno Directory::ensure_loaded() const {
  if (!lazy_) return Errno::kSuccess;
  std::call_once(lazy_->once, [this] {
    auto made = lazy_->loader(lazy_->owner);
    lazy_->loader = nullptr;
    if (!made.ok()) return;
    // Nobody looks at these members before call_once is over.
    auto& self = const_cast<Directory&>(*this);
    self.by_name_ = std::move(made->by_name_);
    self.by_order_ = std::move(made->by_order_);
    self.next_order_ = made->next_order_;
    lazy_->good = true;
  });
  return lazy_->good ? Errno::kSuccess : Errno::kIo;
}

ErrnoOr<const Directory::Entry*> Directory::find(std::string_view name) const {
  SW_WASI_CHECK(ensure_loaded());
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

const std::string& Directory::insert(std::string_view name, std::shared_ptr<Node> node) {
  const auto [at, inserted] =
      by_name_.try_emplace(std::string(name), Entry{next_order_, std::move(node)});
  if (!inserted) return at->first;
  try {
    by_order_.emplace(next_order_, &*at);
  } catch (...) {
    by_name_.erase(at);
    throw;
  }
  ++next_order_;
  return at->first;
}

void Directory::erase(std::string_view name) noexcept {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  by_order_.erase(found->second.order);
  by_name_.erase(found);
}

void Directory::rename(std::string_view from, std::string to) noexcept {
  const auto found = by_name_.find(from);
  if (found == by_name_.end() || from == to) return;
  erase(to);
  auto handle = by_name_.extract(found);
  handle.key() = std::move(to);
  const auto placed = by_name_.insert(std::move(handle));
  by_order_[placed.position->second.order] = &*placed.position;  // the number is there already
}

Directory::Slot Directory::reserve(std::string_view name) {
  Order one;
  one.emplace(0, nullptr);
  Slot slot;
  slot.name_ = name;
  slot.order_ = one.extract(one.begin());
  return slot;
}

void Directory::move_in(Directory& from, std::string_view name, Slot slot) noexcept {
  const auto found = from.by_name_.find(name);
  if (found == from.by_name_.end()) return;
  from.by_order_.erase(found->second.order);
  auto handle = from.by_name_.extract(found);
  handle.key() = std::move(slot.name_);
  handle.mapped().order = next_order_;
  const auto placed = by_name_.insert(std::move(handle));
  slot.order_.key() = next_order_++;
  slot.order_.mapped() = &*placed.position;
  by_order_.insert(std::move(slot.order_));
}

void Directory::restore_order(const std::vector<std::pair<std::uint64_t, std::string>>& order,
                              std::uint64_t next) {
  Order listed;
  std::map<const void*, bool> done;
  next_order_ = next;
  for (const auto& [number, name] : order) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end() || number >= next || done[&*found]) continue;
    if (!listed.emplace(number, &*found).second) continue;
    found->second.order = number;
    done[&*found] = true;
  }
  for (const auto& [number, entry] : by_order_) {
    if (done[entry]) continue;
    entry->second.order = next_order_;
    listed.emplace(next_order_++, entry);
  }
  by_order_ = std::move(listed);
}

Node::~Node() {
  if (usage) usage->bytes -= std::min(usage->bytes, size());
}

std::uint64_t Node::size() const {
  switch (type) {
    case FileType::kRegularFile: return content.size();
    case FileType::kSymbolicLink: return target.size();
    default: return 0;
  }
}

}  // namespace sw::wasi
