// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/zone_info.h"

#include <filesystem>
#include <map>
#include <memory>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/wasi/content.h"
#include "sandbox_workers/wasi/node.h"

namespace sw::engine {

namespace {

namespace fs = std::filesystem;

constexpr char kDatabase[] = "/usr/share/zoneinfo";
constexpr std::uint64_t kFirstInode = std::uint64_t{3} << 40;
constexpr std::uintmax_t kZoneBytesMax = std::uintmax_t{1} << 20;
constexpr int kDepthMax = 4;

std::shared_ptr<wasi::Node> zone_file(const fs::path& path, std::uintmax_t size,
                                      std::uint64_t inode) {
  auto node = wasi::LayoutBuilder::make_node(wasi::FileType::kRegularFile, inode);
  node->content.borrow(std::make_shared<wasi::LazyBytes>(size, [path] { return read_file(path); }));
  return node;
}

void fill(wasi::Directory& directory, wasi::Node* owner, const fs::path& folder, int depth,
          std::uint64_t& inode) {
  // In order of names, so that a file has the same inode number in every run.
  std::map<std::string, fs::path> entries;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    entries.emplace(at->path().filename().native(), at->path());
  }
  for (const auto& [name, path] : entries) {
    const fs::file_status status = fs::status(path, error);
    if (error) continue;
    if (fs::is_directory(status) && depth < kDepthMax) {
      auto node = wasi::LayoutBuilder::make_node(wasi::FileType::kDirectory, inode++);
      node->parent = owner;
      node->links = 2;
      fill(*node->directory, node.get(), path, depth + 1, inode);
      directory.insert(name, std::move(node));
    } else if (fs::is_regular_file(status)) {
      const std::uintmax_t size = fs::file_size(path, error);
      if (!error && size <= kZoneBytesMax) directory.insert(name, zone_file(path, size, inode++));
    }
  }
}

}  // namespace

Result<void> add_zone_info(wasi::LayoutBuilder& builder) {
  return builder.add_lazy_directory(kDatabase, [](wasi::Node& owner) -> Result<wasi::Directory> {
    wasi::Directory directory;
    std::uint64_t inode = kFirstInode;
    fill(directory, &owner, kDatabase, 0, inode);
    return directory;
  });
}

}  // namespace sw::engine
