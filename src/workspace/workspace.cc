// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The operations that hosts have on files. What keeps two copies of a workspace alike is in
// sync.cc.
#include "sandbox_workers/workspace/workspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/base64.h"
#include "sandbox_workers/base/utf8.h"
#include "workspace/names.h"
#include "workspace/walk.h"

namespace sw {

namespace {

using wasi::Errno;
using wasi::FileType;
using wasi::Node;

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

ErrorCode code_of(Errno error) {
  switch (error) {
    case Errno::kNoent: return ErrorCode::kFileNotFound;
    case Errno::kExist: return ErrorCode::kFileExists;
    case Errno::kAcces: return ErrorCode::kPermission;
    case Errno::kIsdir: return ErrorCode::kIsDirectory;
    case Errno::kNotdir: return ErrorCode::kNotDirectory;
    case Errno::kFbig: return ErrorCode::kFileTooLarge;
    case Errno::kNospc: return ErrorCode::kNoSpace;
    default: return ErrorCode::kFileSystem;
  }
}

Error failure(std::string_view path, Errno error) {
  return file_error(error, fmt::format("{}: {}", path, wasi::errno_text(error)));
}

Result<void> done_or(std::string_view path, Errno error) {
  return error == Errno::kSuccess ? Result<void>() : failure(path, error);
}

bool is_directory(const Node& node) { return node.type == FileType::kDirectory; }

std::int64_t updated_at_ms(const Node& node) {
  return is_directory(node) ? 0 : static_cast<std::int64_t>(node.times.modified / kNsPerMs);
}

WorkspaceEntry entry_of(std::string path, const Node& node) {
  return {.path = std::move(path),
          .type = node.type,
          .size = node.size(),
          .updated_at_ms = updated_at_ms(node)};
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  return bytes % kMiB == 0 ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} bytes", bytes);
}

/// The missing room for `grow` bytes more and `entries` names more.
Result<void> room_for(const wasi::Tree& tree, std::uint64_t bytes, std::uint64_t entries) {
  if (bytes > tree.limits().tree_bytes_max) {
    return file_error(Errno::kNospc, fmt::format("Workspace exceeds {} total",
                                                 size_text(tree.limits().tree_bytes_max)));
  }
  if (entries > tree.limits().entries_max) {
    return file_error(Errno::kNospc,
                      fmt::format("Workspace exceeds {} entries", tree.limits().entries_max));
  }
  return {};
}

/// What a path leads to; kNoent when that is nothing.
Result<std::shared_ptr<Node>> find(wasi::Tree& tree, const std::string& path) {
  SW_TRY(ResolvedPath resolved, resolve_path(tree, path, LastLink::kFollow));
  if (!resolved.node) return failure(path, Errno::kNoent);
  return std::move(resolved.node);
}

Result<void> list_into(std::vector<WorkspaceEntry>& entries, const std::string& path,
                       const Node& directory, Depth depth) {
  Result<void> result;
  const Errno listed = directory.directory->for_each(
      0, [&](std::string_view name, const wasi::Directory::Entry& entry) {
        std::string child = fmt::format("{}/{}", path, name);
        entries.push_back(entry_of(child, *entry.node));
        if (depth == Depth::kAll && is_directory(*entry.node)) {
          result = list_into(entries, child, *entry.node, depth);
        }
        return result.ok();
      });
  return listed == Errno::kSuccess ? result : failure(path, listed);
}

}  // namespace

Error file_error(Errno error, std::string message) {
  return {.code = code_of(error),
          .message = std::move(message),
          .context = {{"errno", std::string(wasi::errno_name(error))}}};
}

Workspace::Workspace(const wasi::TreeLimits& limits, std::uint64_t now_ns)
    : tree_(std::make_shared<wasi::Tree>(limits, now_ns)) {}

Result<std::string> Workspace::normalize(std::string_view path, std::string_view cwd) {
  if (path.empty()) return file_error(Errno::kNoent, "Path is required");
  std::vector<std::string_view> parts;
  bool escapes = false;
  const auto add = [&](std::string_view text) {
    while (!text.empty()) {
      const std::size_t slash = text.find('/');
      const std::string_view part = text.substr(0, slash);
      text.remove_prefix(slash == std::string_view::npos ? text.size() : slash + 1);
      if (part.empty() || part == ".") continue;
      if (part != "..") parts.push_back(part);
      else if (parts.empty()) escapes = true;
      else parts.pop_back();
    }
  };
  if (path.front() != '/') add(cwd);
  add(path);
  if (escapes || parts.empty() || parts.front() != kWorkspaceRoot.substr(1)) {
    return file_error(Errno::kAcces, fmt::format("Path escapes /workspace: {}", path));
  }
  return fmt::format("/{}", fmt::join(parts, "/"));
}

/// Normalized, if the files may be used at all.
Result<std::string> Workspace::usable(std::string_view path) const {
  if (disabled()) {
    return file_error(Errno::kAcces, "File API is disabled for this sandbox");
  }
  return normalize(path);
}

Result<WorkspaceFile> Workspace::read_bytes(std::string_view given) const {
  SW_TRY(std::string path, usable(given));
  SW_TRY(const auto node, find(*tree_, path));
  if (node->type != FileType::kRegularFile) return failure(path, Errno::kIsdir);
  auto bytes = node->content.share();
  if (!bytes.ok()) return failure(path, bytes.error());
  return WorkspaceFile{
      .path = std::move(path), .data = *std::move(bytes), .updated_at_ms = updated_at_ms(*node)};
}

Result<FileText> Workspace::read(std::string_view path, FileEncoding encoding) const {
  SW_TRY(const WorkspaceFile file, read_bytes(path));
  const std::string_view bytes = as_text(file.data.bytes);
  FileText text{.content = {},
                .size = bytes.size(),
                .encoding = encoding,
                .is_binary = first_invalid_utf8(bytes).has_value() ||
                             bytes.find('\0') != std::string_view::npos,
                .updated_at_ms = file.updated_at_ms};
  if (encoding == FileEncoding::kBase64) {
    text.content = base64_encode(file.data.bytes);
  } else {
    text.content =
        to_valid_utf8(bytes.substr(bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0));
  }
  return text;
}

Result<void> Workspace::write(std::string_view given, std::string_view content,
                              FileEncoding encoding, std::uint64_t now_ns) {
  SW_TRY(const std::string path, usable(given));
  if (path == kWorkspaceRoot) return failure(path, Errno::kIsdir);
  if (encoding == FileEncoding::kUtf8) {
    const BytesView bytes = as_bytes(content);
    return put(path, Bytes(bytes.begin(), bytes.end()), now_ns);
  }
  auto bytes = base64_decode(content);
  if (!bytes) return file_error(Errno::kInval, "Invalid base64 content");
  return put(path, *std::move(bytes), now_ns);
}

Result<void> Workspace::write_bytes(std::string_view given, Bytes bytes, std::uint64_t now_ns) {
  SW_TRY(const std::string path, usable(given));
  if (path == kWorkspaceRoot) return failure(path, Errno::kIsdir);
  return put(path, std::move(bytes), now_ns);
}

Result<void> Workspace::put(const std::string& path, Bytes bytes, std::uint64_t now_ns) {
  const std::uint64_t size_max = tree_->limits().file_bytes_max;
  if (bytes.size() > size_max) {
    Error error = file_error(Errno::kFbig,
                             fmt::format("{}: a file has at most {}", path, size_text(size_max)));
    error.context["maxSize"] = std::to_string(size_max);
    error.context["actualSize"] = std::to_string(bytes.size());
    return error;
  }
  SW_TRY(const ResolvedPath resolved, resolve_path(*tree_, path, LastLink::kFollow));
  if (resolved.node && is_directory(*resolved.node)) return failure(path, Errno::kIsdir);
  const std::uint64_t freed = resolved.node ? resolved.node->size() : 0;
  SW_CHECK_OK(room_for(*tree_, tree_->usage().bytes - freed + bytes.size(),
                       tree_->usage().entries + (resolved.node ? 0 : 1)));
  std::shared_ptr<Node> file = resolved.node;
  if (!file) {
    auto made = tree_->create(*resolved.parent, resolved.name, FileType::kRegularFile, now_ns);
    if (!made.ok()) return failure(path, made.error());
    file = *std::move(made);
  }
  return done_or(path, tree_->set_content(*file, std::move(bytes), now_ns));
}

Result<void> Workspace::make_directory(std::string_view given, Depth depth, std::uint64_t now_ns) {
  SW_TRY(const std::string path, usable(given));
  if (path == kWorkspaceRoot) return {};
  const auto make = [&](const ResolvedPath& resolved) -> Result<void> {
    SW_CHECK_OK(room_for(*tree_, 0, tree_->usage().entries + 1));
    return done_or(
        path, tree_->create(*resolved.parent, resolved.name, FileType::kDirectory, now_ns).error());
  };
  if (depth == Depth::kOne) {
    SW_TRY(const ResolvedPath resolved, resolve_path(*tree_, path, LastLink::kKeep));
    return resolved.node ? Result<void>(failure(path, Errno::kExist)) : make(resolved);
  }
  for (std::size_t end = kWorkspaceRoot.size(); end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    SW_TRY(const ResolvedPath resolved,
           resolve_path(*tree_, path.substr(0, end), LastLink::kFollow));
    if (!resolved.node) SW_CHECK_OK(make(resolved));
    else if (!is_directory(*resolved.node)) return failure(path, Errno::kNotdir);
  }
  return {};
}

Result<void> Workspace::make_link(std::string_view given, std::string_view target,
                                  std::uint64_t now_ns) {
  SW_TRY(const std::string path, usable(given));
  SW_TRY(const ResolvedPath resolved, resolve_path(*tree_, path, LastLink::kKeep));
  if (resolved.node && resolved.node->type != FileType::kSymbolicLink) {
    return failure(path, Errno::kExist);
  }
  if (resolved.node) {
    SW_CHECK_OK(done_or(path, tree_->unlink(*resolved.parent, resolved.name, now_ns)));
  }
  return done_or(path,
                 tree_->create_symlink(*resolved.parent, resolved.name, target, now_ns).error());
}

Result<std::vector<WorkspaceEntry>> Workspace::list(std::string_view given, Depth depth) const {
  SW_TRY(const std::string path, usable(given));
  SW_TRY(const auto node, find(*tree_, path));
  if (!is_directory(*node)) return failure(path, Errno::kNotdir);
  std::vector<WorkspaceEntry> entries;
  SW_CHECK_OK(list_into(entries, path, *node, depth));
  return entries;
}

Result<void> Workspace::remove(std::string_view given, Depth depth, IfMissing if_missing,
                               std::uint64_t now_ns) {
  SW_TRY(const std::string path, usable(given));
  if (path == kWorkspaceRoot) {
    return file_error(Errno::kAcces, "/workspace itself cannot be deleted");
  }
  const auto resolved = resolve_path(*tree_, path, LastLink::kKeep);
  const bool missing =
      resolved.ok() ? !resolved->node : resolved.error().code == ErrorCode::kFileNotFound;
  if (missing && if_missing == IfMissing::kSucceed) return {};
  if (!resolved.ok()) return resolved.error();
  if (missing) return failure(path, Errno::kNoent);
  if (is_directory(*resolved->node) && depth == Depth::kOne) {
    return file_error(Errno::kIsdir,
                      fmt::format("{} is a directory. Pass {{ recursive: true }} to delete it with "
                                  "everything in it",
                                  path));
  }
  return done_or(path, tree_->remove_all(*resolved->parent, resolved->name, now_ns));
}

Result<void> Workspace::rename(std::string_view given_from, std::string_view given_to,
                               std::uint64_t now_ns) {
  SW_TRY(const std::string from, usable(given_from));
  SW_TRY(const std::string to, usable(given_to));
  if (from == kWorkspaceRoot || to == kWorkspaceRoot) {
    return file_error(Errno::kAcces, "/workspace itself cannot be renamed or replaced");
  }
  SW_TRY(const ResolvedPath source, resolve_path(*tree_, from, LastLink::kKeep));
  if (!source.node) return failure(from, Errno::kNoent);
  SW_TRY(const ResolvedPath target, resolve_path(*tree_, to, LastLink::kKeep));
  const Errno renamed =
      tree_->rename(*source.parent, source.name, *target.parent, target.name, now_ns);
  if (renamed == Errno::kInval && is_directory(*source.node)) {
    return file_error(renamed, fmt::format("{} cannot be moved into itself: {}", from, to));
  }
  return done_or(fmt::format("{} to {}", from, to), renamed);
}

bool Workspace::exists(std::string_view path) const { return stat(path).ok(); }

Result<WorkspaceEntry> Workspace::stat(std::string_view given) const {
  SW_TRY(std::string path, usable(given));
  SW_TRY(const auto node, find(*tree_, path));
  return entry_of(std::move(path), *node);
}

}  // namespace sw
