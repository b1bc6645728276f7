// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "workspace/placer.h"

#include <fmt/format.h>

#include <algorithm>

namespace sw {

namespace {

using wasi::Errno;
using wasi::FileType;
using wasi::Node;

Error cannot(std::string_view path, Errno error) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, wasi::errno_text(error)),
               0};
}

std::shared_ptr<Node> node_at(const TreeName& name) {
  const auto entry = name.directory->directory->find(name.last);
  return entry.ok() && *entry ? (*entry)->node : nullptr;
}

bool has_bytes(const Node& file, BytesView bytes) {
  const auto has = file.content.view();
  if (!has.ok() || has->size() != bytes.size()) return false;
  return has->data() == bytes.data() || std::ranges::equal(*has, bytes);
}

}  // namespace

Result<void> Placer::directory(std::string_view path) {
  SW_TRY(const TreeName name, locate(path));
  if (const auto existing = node_at(name); existing && existing->type == FileType::kDirectory)
    return {};
  SW_CHECK_OK(remove(path, name));
  const auto made = tree_.create(*name.directory, name.last, FileType::kDirectory, now_ns_);
  return made.ok() ? Result<void>() : cannot(path, made.error());
}

Result<void> Placer::file(const WorkspaceFile& file) {
  SW_TRY(const TreeName name, locate(file.path));
  auto place = node_at(name);
  // A file with several names is one file here only: the other copy has a file for each.
  if (place && (place->type != FileType::kRegularFile || place->links > 1)) {
    SW_CHECK_OK(remove(file.path, name));
    place = nullptr;
  }
  if (!place) {
    auto made = tree_.create(*name.directory, name.last, FileType::kRegularFile, now_ns_);
    if (!made.ok()) return cannot(file.path, made.error());
    place = *std::move(made);
  }
  return fill(*place, file);
}

Result<void> Placer::fill(Node& place, const WorkspaceFile& file) {
  if (!has_bytes(place, file.data.bytes)) {
    const Errno set = tree_.set_content(place, file.data, now_ns_);
    if (set != Errno::kSuccess) return cannot(file.path, set);
  }
  const std::int64_t ms = std::max<std::int64_t>(file.updated_at_ms, 0);
  tree_.set_times(place, wasi::Timestamps::all(static_cast<std::uint64_t>(ms) * kNsPerMs));
  return {};
}

Result<void> Placer::link(std::string_view path, std::string_view target) {
  SW_TRY(const TreeName name, locate(path));
  const auto existing = node_at(name);
  if (existing && existing->type == FileType::kSymbolicLink && existing->target == target)
    return {};
  SW_CHECK_OK(remove(path, name));
  const auto made = tree_.create_symlink(*name.directory, name.last, target, now_ns_);
  return made.ok() ? Result<void>() : cannot(path, made.error());
}

Result<void> Placer::remove(std::string_view path) {
  const auto name = find_name(tree_, path);
  return name.ok() && name->directory ? remove(path, *name) : Result<void>();
}

Result<void> Placer::remove_unless_filled(std::string_view path) {
  const auto name = find_name(tree_, path);
  if (!name.ok() || !name->directory) return {};
  const auto existing = node_at(*name);
  if (!existing || existing->type != FileType::kDirectory) return remove(path, *name);
  const Errno removed = tree_.remove_directory(*name->directory, name->last, now_ns_);
  const bool done = removed == Errno::kSuccess || removed == Errno::kNotempty;
  return done ? Result<void>() : cannot(path, removed);
}

Result<TreeName> Placer::locate(std::string_view path) {
  const auto name = find_name(tree_, path);
  if (!name.ok()) return cannot(path, name.error());
  if (!name->directory) return cannot(path, Errno::kNoent);
  return *name;
}

Result<void> Placer::remove(std::string_view path, const TreeName& name) {
  if (!node_at(name)) return {};
  const Errno removed = tree_.remove_all(*name.directory, name.last, now_ns_);
  return removed == Errno::kSuccess ? Result<void>() : cannot(path, removed);
}

Result<void> place_all(Placer& placer, const Folders& folders, std::span<const WorkspaceFile> files,
                       const std::map<std::string, std::string>& links) {
  for (const std::string& dir : folders.all()) SW_CHECK_OK(placer.directory(dir));
  for (const WorkspaceFile& file : files) SW_CHECK_OK(placer.file(file));
  for (const auto& [path, target] : links) SW_CHECK_OK(placer.link(path, target));
  return {};
}

}  // namespace sw
