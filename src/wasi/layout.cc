// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/layout.h"

#include <fmt/core.h>

#include <utility>

#include "wasi/host_folder.h"

namespace sw::wasi {
namespace {

// Nothing in a layout may depend on when it was made: file times end up in guest memory, and with
// it in images.
constexpr std::uint64_t kLayoutTime = 1'767'225'600'000'000'000;  // 2026-01-01

constexpr TreeLimits kNoLimits{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX};

Error bad_path(std::string_view path, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, why), 0};
}

}  // namespace

LayoutBuilder::LayoutBuilder() : layout_(std::make_shared<Layout>()) {
  layout_->tree_ = std::make_shared<Tree>(kNoLimits, kLayoutTime);
}

std::shared_ptr<Node> LayoutBuilder::make_node(FileType type, std::uint64_t inode) {
  auto node = std::make_shared<Node>(type);
  node->inode = inode;
  node->times = Timestamps::all(kLayoutTime);
  if (type == FileType::kDirectory) node->directory = std::make_unique<Directory>();
  return node;
}

Result<Node*> LayoutBuilder::directory_at(std::string_view path) {
  if (path.empty() || path.front() != '/') return bad_path(path, "not an absolute path");
  Node* node = &layout_->tree_->root();
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name.empty()) continue;
    if (name == "." || name == ".." || name_error(name) != Errno::kSuccess)
      return bad_path(path, "not a plain path");
    if (node->mount >= 0) return bad_path(path, "is below a mount");
    // a file that is a folder too
    if (!node->directory) node->directory = std::make_unique<Directory>();
    const auto found = node->directory->find(name);
    if (!found.ok()) return bad_path(path, errno_text(found.error()));
    if (*found) {
      node = (*found)->node.get();
      continue;
    }
    auto made = layout_->tree_->create(*node, name, FileType::kDirectory, kLayoutTime);
    if (!made.ok()) return bad_path(path, errno_text(made.error()));
    node = made->get();
  }
  return node;
}

Result<Node*> LayoutBuilder::place(std::string_view path, FileType type) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return bad_path(path, "not an absolute path");
  SW_TRY(Node* const parent, directory_at(slash == 0 ? "/" : path.substr(0, slash)));
  if (parent->mount >= 0) return bad_path(path, "is below a mount");
  if (!parent->directory) parent->directory = std::make_unique<Directory>();
  auto made = layout_->tree_->create(*parent, path.substr(slash + 1), type, kLayoutTime);
  if (!made.ok()) return bad_path(path, errno_text(made.error()));
  (*made)->parent = parent;  // a file may become a folder too
  return made->get();
}

Result<void> LayoutBuilder::add_directory(std::string_view path) {
  SW_TRY(const Node* const node, directory_at(path));
  if (node->type != FileType::kDirectory) return bad_path(path, "is a file");
  return {};
}

Result<Node*> LayoutBuilder::bare_directory_at(std::string_view path) {
  SW_TRY(Node* const node, directory_at(path));
  if (node->type != FileType::kDirectory || node->mount >= 0)
    return bad_path(path, "is already something else");
  return node;
}

Result<std::size_t> LayoutBuilder::add_mount(std::string_view path) {
  SW_TRY(Node* const node, bare_directory_at(path));
  const std::size_t number = layout_->mount_points_.size();
  node->mount = static_cast<std::int32_t>(number);
  layout_->mount_points_.push_back(node == &layout_->tree_->root() ? nullptr : node);
  return number;
}

Result<void> LayoutBuilder::add_alias(std::string_view path, std::size_t mount) {
  if (mount >= layout_->mount_count()) return bad_path(path, "there is no such mount");
  SW_TRY(Node* const node, bare_directory_at(path));
  if (node == &layout_->tree_->root()) return bad_path(path, "the root cannot be an alias");
  node->mount = Layout::kFirstAlias + static_cast<std::int32_t>(layout_->aliases_.size());
  layout_->aliases_.push_back({.mount_point = node, .mount = static_cast<std::int32_t>(mount)});
  return {};
}

Result<void> LayoutBuilder::add_devices(std::string_view path) {
  constexpr std::pair<std::string_view, Device> kDevices[] = {
      {"null", Device::kNull},      {"zero", Device::kZero},   {"random", Device::kRandom},
      {"urandom", Device::kRandom}, {"stdin", Device::kStdin}, {"stdout", Device::kStdout},
      {"stderr", Device::kStderr},
  };
  for (const auto& [name, device] : kDevices) {
    SW_TRY(Node* const node, place(fmt::format("{}/{}", path, name), FileType::kCharacterDevice));
    node->device = device;
  }
  return {};
}

Result<void> LayoutBuilder::add_file(std::string_view path, SharedBytes bytes) {
  SW_TRY(Node* const node, place(path, FileType::kRegularFile));
  node->usage = nullptr;  // nobody counts what a layout holds
  if (!bytes.owner) bytes = SharedBytes::own({});
  node->content.borrow(std::move(bytes));
  return {};
}

Result<void> LayoutBuilder::add_lazy_file(std::string_view path, std::shared_ptr<LazyBytes> bytes) {
  SW_TRY(Node* const node, place(path, FileType::kRegularFile));
  node->usage = nullptr;
  node->content.borrow(std::move(bytes));
  return {};
}

Result<void> LayoutBuilder::add_lazy_directory(std::string_view path, Directory::Loader loader) {
  SW_TRY(Node* const node, place(path, FileType::kDirectory));
  node->directory->set_loader(*node, std::move(loader));
  return {};
}

Result<void> LayoutBuilder::add_host_folder(std::string_view path,
                                            const std::filesystem::path& host) {
  SW_TRY(Node* const node, bare_directory_at(path));
  SW_TRY(const auto skipped, copy_host_folder(host, *layout_->tree_, *node, kLayoutTime));
  (void)skipped;
  return {};
}

std::shared_ptr<const Layout> LayoutBuilder::build() {
  layout_->tree_->set_read_only(true);
  return std::exchange(layout_, nullptr);
}

LayoutBuilder standard_layout() {
  LayoutBuilder builder;
  // These cannot fail: the layout is empty.
  (void)builder.add_mount(kWorkspacePath);
  (void)builder.add_mount("/tmp");
  (void)builder.add_devices("/dev");
  (void)builder.add_alias(kHomePath, kWorkspaceMount);
  return builder;
}

}  // namespace sw::wasi
