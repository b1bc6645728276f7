// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/tree_journal.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace sw::wasi {

namespace {

constexpr std::size_t kNotedBytesMax = std::size_t{4} << 20;
constexpr std::size_t kNoteBytes = 100;  // of one, beside its path

/// The path of what a directory has under `name`; empty when the directory itself has none.
std::string path_of(const Node& directory, std::string_view name) {
  std::vector<std::string_view> parts = {name};
  const Node* at = &directory;
  for (; !at->names.empty(); at = at->names.front().directory) {
    parts.push_back(*at->names.front().name);
  }
  if (at->links == 0) return {};  // it was removed, and is no root
  std::string path;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!path.empty()) path += '/';
    path += *part;
  }
  return path;
}

/// What is at a path; null when that is nothing. No links are followed.
const Node* find(const Tree& tree, std::string_view path) {
  const Node* node = &tree.root();
  while (!path.empty()) {
    if (node->type != FileType::kDirectory) return nullptr;
    const std::size_t slash = std::min(path.find('/'), path.size());
    const auto entry = node->directory->find(path.substr(0, slash));
    if (!entry.ok() || *entry == nullptr) return nullptr;
    node = (*entry)->node.get();
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return node;
}

}  // namespace

void TreeJournal::note_all() noexcept {
  all_ = true;
  noted_.clear();
  noted_bytes_ = 0;
}

void TreeJournal::add(const Node& directory, std::string_view name, Extent extent) {
  std::string path = path_of(directory, name);
  if (path.empty()) return;
  const std::size_t bytes = path.size() + kNoteBytes;
  const auto [note, is_new] = noted_.try_emplace(std::move(path), extent);
  if (extent == Extent::kAllBelow) note->second = extent;
  if (is_new) noted_bytes_ += bytes;
  if (noted_bytes_ > kNotedBytesMax) note_all();
}

void TreeJournal::note_name(const Node& directory, std::string_view name) noexcept {
  if (all_) return;
  try {
    add(directory, name, Extent::kAllBelow);
  } catch (...) {
    note_all();
  }
}

void TreeJournal::note_names(Node& node) noexcept {
  if (all_) return;
  try {
    for (const Node::Name& name : node.names) add(*name.directory, *name.name, Extent::kEntry);
    node.noted = period_;
  } catch (...) {
    note_all();
  }
}

const TreeState& TreeJournal::state(const Tree& tree) {
  if (all_ && state_.entries().empty()) {
    state_ = TreeState::of(tree);
  } else if (all_) {
    look_below(&tree.root(), {});
  } else {
    for (const auto& [path, extent] : noted_) {
      if (!is_covered(path)) look_at(tree, path, extent);
    }
  }
  note_all();
  all_ = false;
  ++period_;
  return state_;
}

/// Is it below what is looked at anyway?
bool TreeJournal::is_covered(std::string_view path) const {
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos;
       slash = path.rfind('/')) {
    path = path.substr(0, slash);
    const auto above = noted_.find(path);
    if (above != noted_.end() && above->second == Extent::kAllBelow) return true;
  }
  return false;
}

void TreeJournal::look_at(const Tree& tree, const std::string& path, Extent extent) {
  const Node* const node = find(tree, path);
  if (node == nullptr) state_.entries().erase(path);
  else set(path, *node);
  if (extent == Extent::kAllBelow) look_below(node, path);
}

/// `directory` may be null or something else: then there is nothing below the path.
void TreeJournal::look_below(const Node* directory, const std::string& path) {
  const std::string prefix = path.empty() ? path : path + '/';
  std::set<std::string, std::less<>> gone;
  for (auto old = state_.entries().lower_bound(prefix); old != TreeState::Entries::end(); ++old) {
    if (!old->first.starts_with(prefix)) break;
    gone.insert(old->first);
  }
  if (directory != nullptr && directory->type == FileType::kDirectory) {
    (void)Tree::walk(*directory, path, [&](const std::string& below, const Node& node) {
      gone.erase(below);
      set(below, node);
      return true;
    });
  }
  for (const std::string& old : gone) state_.entries().erase(old);
}

void TreeJournal::set(const std::string& path, const Node& node) {
  TreeState::Entry now = TreeState::Entry::of(node);
  const TreeState::Entry* const known = state_.entries().find(path);
  // What is as it was stays shared with earlier states.
  if (known == nullptr || !known->is_untouched(now)) state_.entries().set(path, std::move(now));
}

}  // namespace sw::wasi
