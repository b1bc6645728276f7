// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: whether a tree is in order.

#include <fmt/core.h>

#include <map>
#include <string>
#include <vector>

#include "sandbox_workers/wasi/tree.h"
#include "wasi/descriptors.h"

namespace sw::wasi {

/// The files of `tree` that are open: they count even when their names are gone.
inline std::vector<const Node*> open_nodes(const DescriptorTable& descriptors, const Tree& tree) {
  std::vector<const Node*> nodes;
  for (std::uint32_t fd = 0; fd < 64; ++fd) {
    const OpenFile* const file = descriptors.find(fd);
    if (file && file->at.tree.get() == &tree) nodes.push_back(file->at.node.get());
  }
  return nodes;
}

/// The first thing that is wrong with a tree: its counts, limits, numbers of links or parents.
/// Empty: nothing.
inline std::string tree_fault(const Tree& tree, const std::vector<const Node*>& open = {}) {
  std::string fault;
  const auto expect = [&fault](bool holds, const std::string& what) {
    if (!holds && fault.empty()) fault = what;
  };
  std::uint64_t entries = 0;
  std::map<const Node*, std::uint32_t> names;
  std::map<const Node*, std::uint32_t> folders_in{{&tree.root(), 0}};
  const Errno walked = tree.walk([&](const std::string& path, Node& node) {
    ++entries;
    ++names[&node];
    expect(std::string_view(path).size() < 100'000, "a path is too long");
    if (node.type == FileType::kDirectory) {
      expect(names[&node] == 1, path + " is a directory with two names");
      expect(node.parent != nullptr && folders_in.contains(node.parent),
             path + " has another parent");
      ++folders_in[node.parent];
      folders_in.emplace(&node, 0);
      std::uint32_t depth = 0;
      for (const Node* at = node.parent; at != nullptr; at = at->parent) ++depth;
      expect(depth <= tree.limits().depth_max, path + " is nested too deep");
    }
    expect(node.size() <= tree.limits().file_bytes_max, path + " is too large");
    return fault.empty();
  });
  expect(walked == Errno::kSuccess, "it cannot be walked");
  if (!fault.empty()) return fault;
  for (const auto& [node, count] : names) {
    const std::uint32_t links = node->type == FileType::kDirectory ? 2 + folders_in[node] : count;
    expect(node->links == links,
           fmt::format("an inode counts {} links instead of {}", node->links, links));
  }
  for (const Node* node : open) names.emplace(node, 0);
  std::uint64_t bytes = 0;
  for (const auto& [node, count] : names) bytes += node->size();
  expect(tree.usage().entries == entries,
         fmt::format("{} entries counted of {}", tree.usage().entries, entries));
  expect(tree.usage().bytes == bytes,
         fmt::format("{} bytes counted of {}", tree.usage().bytes, bytes));
  expect(bytes <= tree.limits().tree_bytes_max, "it holds too many bytes");
  expect(entries <= tree.limits().entries_max, "it holds too many entries");
  return fault;
}

}  // namespace sw::wasi
