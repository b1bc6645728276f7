// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/tree_state.h"

#include <algorithm>

namespace sw::wasi {

namespace {

bool same(const TreeState::Entry& a, const TreeState::Entry& b) {
  if (a.type != b.type || a.target != b.target || a.bytes.bytes.size() != b.bytes.bytes.size())
    return false;
  return a.bytes.bytes.data() == b.bytes.bytes.data() ||
         std::ranges::equal(a.bytes.bytes, b.bytes.bytes);
}

struct Name {
  Node* directory = nullptr;  // null when it is not there
  std::string_view last;
};

/// The directory that holds a path's last name. Paths are those of a state: no links on the way, no
/// dots.
Name locate(Tree& tree, std::string_view path) {
  Node* directory = &tree.root();
  for (;;) {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return {directory, path};
    const auto entry = directory->directory->find(path.substr(0, slash));
    if (!entry.ok() || *entry == nullptr || (*entry)->node->type != FileType::kDirectory) return {};
    directory = (*entry)->node.get();
    path.remove_prefix(slash + 1);
  }
}

Errno put_back(Tree& tree, std::string_view path, const TreeState::Entry& entry,
               std::uint64_t now_ns) {
  const Name name = locate(tree, path);
  if (name.directory == nullptr) return Errno::kNoent;
  if (entry.type == FileType::kSymbolicLink) {
    SW_WASI_TRY(const auto link,
                tree.create_symlink(*name.directory, name.last, entry.target, now_ns));
    link->times = entry.times;
    return Errno::kSuccess;
  }
  const auto found = name.directory->directory->find(name.last);
  if (!found.ok()) return found.error();
  std::shared_ptr<Node> node;
  if (*found != nullptr) {
    node = (*found)->node;
  } else {
    SW_WASI_TRY(node, tree.create(*name.directory, name.last, entry.type, now_ns));
  }
  if (entry.type == FileType::kRegularFile)
    SW_WASI_CHECK(tree.set_content(*node, entry.bytes, now_ns));
  node->times = entry.times;
  return Errno::kSuccess;
}

}  // namespace

TreeState TreeState::of(const Tree& tree) {
  TreeState state;
  (void)tree.walk([&](const std::string& path, Node& node) {
    Entry entry{.type = node.type, .bytes = {}, .target = node.target, .times = node.times};
    if (node.type == FileType::kRegularFile) {
      // Sharing does not copy; content in memory can always be shared.
      if (auto bytes = node.content.share(); bytes.ok()) entry.bytes = *std::move(bytes);
    }
    state.entries_.emplace(path, std::move(entry));
    return true;
  });
  return state;
}

std::vector<Change> TreeState::changes_to(const TreeState& after) const {
  std::vector<Change> changes;
  for (const auto& [path, entry] : entries_) {
    const auto now = after.entries_.find(path);
    if (now == after.entries_.end()) changes.push_back({Change::Kind::kRemoved, entry.type, path});
    else if (!same(entry, now->second))
      changes.push_back({Change::Kind::kModified, now->second.type, path});
  }
  for (const auto& [path, entry] : after.entries_) {
    if (!entries_.contains(path)) changes.push_back({Change::Kind::kCreated, entry.type, path});
  }
  std::ranges::sort(changes, {}, &Change::path);
  return changes;
}

Errno TreeState::restore(Tree& tree, std::uint64_t now_ns) const {
  const TreeState now = of(tree);
  const std::vector<Change> changes = changes_to(now);
  // What must go, deepest first: it may stand where something else has to come.
  // (clang 14 cannot compile libstdc++'s views.)
  for (auto at = changes.rbegin(); at != changes.rend(); ++at) {
    const Change& change = *at;
    const auto before = entries_.find(change.path);
    const bool replaced =
        change.kind == Change::Kind::kModified &&
        (before->second.type != change.type || change.type == FileType::kSymbolicLink);
    if (change.kind != Change::Kind::kCreated && !replaced) continue;
    const Name name = locate(tree, change.path);
    if (name.directory != nullptr)
      SW_WASI_CHECK(tree.remove_all(*name.directory, name.last, now_ns));
  }
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::kCreated) continue;
    SW_WASI_CHECK(put_back(tree, change.path, entries_.at(change.path), now_ns));
  }
  return Errno::kSuccess;
}

}  // namespace sw::wasi
