// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/tree_state.h"

#include <algorithm>

namespace sw::wasi {

namespace {

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
    tree.set_times(*link, entry.times);
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
  tree.set_times(*node, entry.times);
  return Errno::kSuccess;
}

}  // namespace

TreeState::Entry TreeState::Entry::of(const Node& node) {
  Entry entry{.type = node.type, .bytes = {}, .target = node.target, .times = node.times};
  if (node.type == FileType::kRegularFile) {
    // Sharing does not copy; content in memory can always be shared.
    if (auto bytes = node.content.share(); bytes.ok()) entry.bytes = *std::move(bytes);
  }
  return entry;
}

bool TreeState::Entry::is_untouched(const Entry& later) const {
  return type == later.type && target == later.target && times == later.times &&
         bytes.bytes.data() == later.bytes.bytes.data() &&
         bytes.bytes.size() == later.bytes.bytes.size();
}

bool TreeState::Entry::has_content_of(const Entry& other) const {
  const BytesView a = bytes.bytes;
  const BytesView b = other.bytes.bytes;
  if (type != other.type || target != other.target || a.size() != b.size()) return false;
  return a.data() == b.data() || std::ranges::equal(a, b);
}

TreeState TreeState::of(const Tree& tree) {
  std::vector<std::pair<std::string, Entry>> entries;
  entries.reserve(static_cast<std::size_t>(tree.usage().entries));
  (void)tree.walk([&](const std::string& path, Node& node) {
    entries.emplace_back(path, Entry::of(node));
    return true;
  });
  return TreeState(Entries(std::move(entries)));
}

std::vector<Change> TreeState::changes_to(const TreeState& after) const {
  std::vector<Change> changes;
  Entries::differences(entries_, after.entries_,
                       [&](const std::string& path, const Entry* old, const Entry* now) {
                         if (!now) changes.push_back({Change::Kind::kRemoved, old->type, path});
                         else if (!old)
                           changes.push_back({Change::Kind::kCreated, now->type, path});
                         else if (!old->has_content_of(*now))
                           changes.push_back({Change::Kind::kModified, now->type, path});
                       });
  return changes;
}

Errno TreeState::restore(Tree& tree, std::uint64_t now_ns) const {
  const std::vector<Change> changes = changes_to(tree.state());
  // What must go, deepest first: it may stand where something else has to come.
  // (clang 14 cannot compile libstdc++'s views.)
  for (auto at = changes.rbegin(); at != changes.rend(); ++at) {
    const Change& change = *at;
    const bool replaced =
        change.kind == Change::Kind::kModified &&
        (entries_.find(change.path)->type != change.type || change.type == FileType::kSymbolicLink);
    if (change.kind != Change::Kind::kCreated && !replaced) continue;
    const Name name = locate(tree, change.path);
    if (name.directory != nullptr)
      SW_WASI_CHECK(tree.remove_all(*name.directory, name.last, now_ns));
  }
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::kCreated) continue;
    SW_WASI_CHECK(put_back(tree, change.path, *entries_.find(change.path), now_ns));
  }
  return Errno::kSuccess;
}

}  // namespace sw::wasi
