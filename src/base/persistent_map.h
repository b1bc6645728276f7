// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// An ordered map of texts whose copies share what is equal in them (a persistent data structure):
// copying takes no time, changing one entry takes logarithmic time, and what differs between a map
// and a copy that was changed is found without looking at the rest.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw {

/// Sorted by the bytes of the keys. Copies share nodes, which never change.
/// Threads: one map is used by one thread at a time; copies of it by others meanwhile.
template <class Value>
class PersistentMap {
  struct Node;
  using Link = std::shared_ptr<const Node>;  // shared between maps

 public:
  using Item = std::pair<const std::string, Value>;

  PersistentMap() = default;
  /// In linear time if the items are sorted. Of items with the same key the first stays.
  explicit PersistentMap(std::vector<std::pair<std::string, Value>> items) {
    const auto key_of = [](const auto& item) -> const std::string& { return item.first; };
    if (!std::ranges::is_sorted(items, {}, key_of)) std::ranges::stable_sort(items, {}, key_of);
    const auto same = std::ranges::unique(items, {}, key_of);
    items.erase(same.begin(), same.end());
    root_ = build(items.data(), items.size());
  }

  std::size_t size() const { return size_of(root_); }
  bool empty() const { return !root_; }

  /// Null when there is none. Valid until the map changes.
  const Value* find(std::string_view key) const {
    const Node* node = root_.get();
    while (node != nullptr && node->item->first != key) {
      node = (key < node->item->first ? node->left : node->right).get();
    }
    return node == nullptr ? nullptr : &node->item->second;
  }
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  void set(std::string key, Value value) {
    root_ = with(root_, std::make_shared<const Item>(std::move(key), std::move(value)));
  }
  void erase(std::string_view key) {
    if (contains(key)) root_ = without(root_, key);
  }

  class Iterator;
  Iterator begin() const { return Iterator(root_.get(), {}); }
  static Iterator end() { return {}; }
  /// The first item whose key is not less.
  Iterator lower_bound(std::string_view key) const { return Iterator(root_.get(), key); }

  /// Calls visit(key, before, after) in the order of the keys for each entry that was set or erased
  /// between two maps; where there is no entry, the pointer is null. An entry that was set again may
  /// be equal to the one before. The time is that of what differs if one map was made from the other.
  template <class Visit>
  static void differences(const PersistentMap& before, const PersistentMap& after, Visit visit);

 private:
  using ItemLink = std::shared_ptr<const Item>;  // shared between nodes

  struct Node {
    ItemLink item;
    Link left;
    Link right;
    std::size_t size;
  };
  class Cursor;

  // A weight-balanced tree: neither side has more than three times the nodes of the other.
  // (Hirai and Yamamoto, "Balancing weight-balanced trees", 2011.)
  static constexpr std::size_t kDelta = 3;
  static constexpr std::size_t kRatio = 2;

  static std::size_t size_of(const Link& link) { return link ? link->size : 0; }
  static std::size_t weight(const Link& link) { return size_of(link) + 1; }

  static Link make(ItemLink item, Link left, Link right) {
    const std::size_t size = size_of(left) + size_of(right) + 1;
    return std::make_shared<const Node>(
        Node{std::move(item), std::move(left), std::move(right), size});
  }

  static Link build(std::pair<std::string, Value>* items, std::size_t count) {
    if (count == 0) return nullptr;
    const std::size_t middle = count / 2;
    Link left = build(items, middle);
    auto item = std::make_shared<const Item>(std::move(items[middle].first),
                                             std::move(items[middle].second));
    return make(std::move(item), std::move(left), build(items + middle + 1, count - middle - 1));
  }

  static Link balanced(const ItemLink& item, const Link& left, const Link& right) {
    if (weight(right) > kDelta * weight(left)) {
      const Link& inner = right->left;
      if (weight(inner) < kRatio * weight(right->right)) {
        return make(right->item, make(item, left, inner), right->right);
      }
      return make(inner->item, make(item, left, inner->left),
                  make(right->item, inner->right, right->right));
    }
    if (weight(left) > kDelta * weight(right)) {
      const Link& inner = left->right;
      if (weight(inner) < kRatio * weight(left->left)) {
        return make(left->item, left->left, make(item, inner, right));
      }
      return make(inner->item, make(left->item, left->left, inner->left),
                  make(item, inner->right, right));
    }
    return make(item, left, right);
  }

  static Link with(const Link& node, const ItemLink& item) {
    if (!node) return make(item, nullptr, nullptr);
    const int order = item->first.compare(node->item->first);
    if (order < 0) return balanced(node->item, with(node->left, item), node->right);
    if (order > 0) return balanced(node->item, node->left, with(node->right, item));
    return make(item, node->left, node->right);
  }

  static Link without(const Link& node, std::string_view key) {
    const int order = key.compare(node->item->first);
    if (order < 0) return balanced(node->item, without(node->left, key), node->right);
    if (order > 0) return balanced(node->item, node->left, without(node->right, key));
    if (!node->left) return node->right;
    if (!node->right) return node->left;
    const Node* next = node->right.get();
    while (next->left) next = next->left.get();
    return balanced(next->item, node->left, without(node->right, next->item->first));
  }

  Link root_;
};

template <class Value>
class PersistentMap<Value>::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Item;
  using difference_type = std::ptrdiff_t;
  using pointer = const Item*;
  using reference = const Item&;

  Iterator() = default;
  reference operator*() const { return *path_.back()->item; }
  pointer operator->() const { return path_.back()->item.get(); }
  Iterator& operator++() {
    const Node* const right = path_.back()->right.get();
    path_.pop_back();
    descend(right, {});
    return *this;
  }
  Iterator operator++(int) {
    Iterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Iterator& other) const {
    if (path_.empty() || other.path_.empty()) return path_.empty() == other.path_.empty();
    return path_.back() == other.path_.back();
  }

 private:
  friend class PersistentMap;
  Iterator(const Node* root, std::string_view from) { descend(root, from); }
  void descend(const Node* node, std::string_view from) {
    while (node != nullptr) {
      const bool reached = node->item->first >= from;
      if (reached) path_.push_back(node);
      node = (reached ? node->left : node->right).get();
    }
  }

  std::vector<const Node*> path_;  // what is still to come: the next item is the last's
};

/// Goes through a map in the order of its keys, and may pass over a whole subtree at once.
template <class Value>
class PersistentMap<Value>::Cursor {
 public:
  explicit Cursor(const Link& root) { push(root.get(), true); }

  bool at_end() const { return parts_.empty(); }
  const Node* node() const { return parts_.back().node; }
  /// What comes next is all below the node, or its item alone.
  bool whole() const { return parts_.back().whole; }
  void pass() { parts_.pop_back(); }
  /// What is below a node becomes what is to its left, its item, and what is to its right.
  void open() {
    const Node* const opened = node();
    pass();
    push(opened->right.get(), true);
    push(opened, false);
    push(opened->left.get(), true);
  }
  /// Opens nodes until an item comes next.
  void open_to_item() {
    while (whole()) open();
  }

 private:
  struct Part {
    const Node* node;
    bool whole;
  };
  void push(const Node* node, bool whole) {
    if (node != nullptr) parts_.push_back({node, whole});
  }
  std::vector<Part> parts_;  // the next is the last
};

template <class Value>
template <class Visit>
void PersistentMap<Value>::differences(const PersistentMap& before, const PersistentMap& after,
                                       Visit visit) {
  Cursor a(before.root_);
  Cursor b(after.root_);
  const auto pass_a = [&] {
    const Item& item = *a.node()->item;
    a.pass();
    visit(item.first, &item.second, static_cast<const Value*>(nullptr));
  };
  const auto pass_b = [&] {
    const Item& item = *b.node()->item;
    b.pass();
    visit(item.first, static_cast<const Value*>(nullptr), &item.second);
  };
  while (!a.at_end() && !b.at_end()) {
    if (a.node() == b.node() && a.whole() == b.whole()) {
      a.pass();
      b.pass();
    } else if (a.whole() && (!b.whole() || a.node()->size >= b.node()->size)) {
      a.open();
    } else if (b.whole()) {
      b.open();
    } else {
      const int order = a.node()->item->first.compare(b.node()->item->first);
      if (order < 0) {
        pass_a();
      } else if (order > 0) {
        pass_b();
      } else {
        const ItemLink& old = a.node()->item;
        const ItemLink& fresh = b.node()->item;
        a.pass();
        b.pass();
        if (old != fresh) visit(old->first, &old->second, &fresh->second);
      }
    }
  }
  for (; !a.at_end(); pass_a()) a.open_to_item();
  for (; !b.at_end(); pass_b()) b.open_to_item();
}

}  // namespace sw
