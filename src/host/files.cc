// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/files.h"

#include <fmt/format.h>

#include <utility>

#include "host/core.h"
#include "host/host_target.h"
#include "wasi/host_folder.h"
#include "wasi/tree_state.h"

namespace sw {

namespace fs = std::filesystem;

namespace {

using sandbox::FileUse;

/// Does something with a sandbox's files.
template <class Use>
std::invoke_result_t<Use, Workspace&, std::uint64_t> with_files(
    host::Core& core, const std::string& sandbox, FileUse kind, std::string_view operation,
    std::string_view path, const Use& use) {
  SW_TRY(const auto lease, core.sandbox(sandbox));
  return lease->with_files(kind, operation, path, use);
}

Bytes copy_of(BytesView bytes) { return {bytes.begin(), bytes.end()}; }

Result<void> place_each(Workspace& files, const std::string& folder,
                        const wasi::TreeState::Entries& entries, std::uint64_t now_ns) {
  SW_CHECK_OK(files.make_directory(folder, Depth::kAll, now_ns));
  for (const auto& [below, entry] : entries) {
    const std::string path = folder + '/' + below;
    switch (entry.type) {
      case wasi::FileType::kDirectory:
        SW_CHECK_OK(files.make_directory(path, Depth::kAll, now_ns));
        break;
      case wasi::FileType::kRegularFile:
        SW_CHECK_OK(files.write_bytes(path, copy_of(entry.bytes.bytes), now_ns));
        break;
      default: SW_CHECK_OK(files.make_link(path, entry.target, now_ns)); break;
    }
  }
  return {};
}

/// Entries laid over a folder of the workspace: all of them or none.
Result<void> place(Workspace& files, const std::string& folder,
                   const wasi::TreeState::Entries& entries, std::uint64_t now_ns) {
  const wasi::TreeState before = files.remember();
  auto placed = place_each(files, folder, entries, now_ns);
  if (!placed.ok()) (void)before.restore(*files.tree(), now_ns);
  return placed;
}

Result<void> lay_over(host::Core& core, const std::string& sandbox, std::string_view path,
                      const wasi::TreeState::Entries& entries) {
  SW_TRY(const std::string folder, Workspace::normalize(path));
  return with_files(core, sandbox, FileUse::kChange, "directory.create", path,
                    [&](Workspace& files, std::uint64_t now_ns) {
                      return place(files, folder, entries, now_ns);
                    });
}

constexpr std::string_view kRoot = "/workspace";

/// What is below a folder of the workspace.
Result<wasi::TreeState::Entries> entries_below(const Workspace& files, const std::string& folder) {
  const wasi::TreeState state = files.remember();
  if (folder == kRoot) return state.entries();
  const std::string name = folder.substr(kRoot.size() + 1);
  const auto* const itself = state.entries().find(name);
  if (itself == nullptr || itself->type != wasi::FileType::kDirectory) {
    return file_error(wasi::Errno::kNotdir, fmt::format("{} is reached through a link", folder));
  }
  std::vector<std::pair<std::string, wasi::TreeState::Entry>> below;
  const std::string prefix = name + '/';
  for (auto at = state.entries().lower_bound(prefix); at != wasi::TreeState::Entries::end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    below.emplace_back(at->first.substr(prefix.size()), at->second);
  }
  return wasi::TreeState::Entries(std::move(below));
}

}  // namespace

Result<Bytes> Files::read(std::string_view path) const {
  SW_TRY(const WorkspaceFile file,
         with_files(*core_, sandbox_, FileUse::kLook, "file.read", path,
                    [&](Workspace& files, std::uint64_t) { return files.read_bytes(path); }));
  return copy_of(file.data.bytes);
}

Result<std::string> Files::read_text(std::string_view path) const {
  SW_TRY(const Bytes bytes, read(path));
  return std::string(as_text(bytes));
}

Result<void> Files::write(std::string_view path, BytesView content) const {
  return with_files(*core_, sandbox_, FileUse::kChange, "file.write", path,
                    [&](Workspace& files, std::uint64_t now_ns) {
                      return files.write_bytes(path, copy_of(content), now_ns);
                    });
}

Result<void> Files::write(std::string_view path, std::string_view content) const {
  return write(path, as_bytes(content));
}

Result<void> Files::make_folder(std::string_view path, Depth depth) const {
  return with_files(*core_, sandbox_, FileUse::kChange, "directory.create", path,
                    [&](Workspace& files, std::uint64_t now_ns) {
                      return files.make_directory(path, depth, now_ns);
                    });
}

Result<std::vector<WorkspaceEntry>> Files::list(std::string_view path, Depth depth) const {
  return with_files(*core_, sandbox_, FileUse::kLook, "directory.list", path,
                    [&](Workspace& files, std::uint64_t) { return files.list(path, depth); });
}

Result<WorkspaceEntry> Files::stat(std::string_view path) const {
  return with_files(*core_, sandbox_, FileUse::kLook, "file.stat", path,
                    [&](Workspace& files, std::uint64_t) { return files.stat(path); });
}

bool Files::exists(std::string_view path) const { return stat(path).ok(); }

Result<void> Files::remove(std::string_view path, Depth depth) const {
  return with_files(*core_, sandbox_, FileUse::kChange, "file.delete", path,
                    [&](Workspace& files, std::uint64_t now_ns) {
                      return files.remove(path, depth, IfMissing::kFail, now_ns);
                    });
}

Result<void> Files::rename(std::string_view from, std::string_view to) const {
  return with_files(
      *core_, sandbox_, FileUse::kChange, "file.rename", from,
      [&](Workspace& files, std::uint64_t now_ns) { return files.rename(from, to, now_ns); });
}

Result<std::vector<std::string>> Files::copy_in(const fs::path& host, std::string_view path) const {
  const wasi::TreeLimits& limits = core_->options().sandboxes.files;
  std::error_code failed;
  if (!fs::is_directory(host, failed)) {
    SW_TRY(const Bytes content, read_file(host, limits.file_bytes_max));
    SW_CHECK_OK(write(path, content));
    return std::vector<std::string>();
  }
  SW_TRY(const auto loaded, wasi::HostFolder::load(host, limits, 0));
  const auto state = wasi::TreeState::of(*loaded.tree());
  SW_CHECK_OK(lay_over(*core_, sandbox_, path, state.entries()));
  return loaded.skipped();
}

Result<std::vector<std::string>> Files::copy_out(std::string_view path, const fs::path& host,
                                                 IfThere if_there) const {
  SW_TRY(const WorkspaceEntry entry, stat(path));
  SW_TRY(const host::HostTarget target, host::HostTarget::create(host));
  std::vector<std::string> left_out;
  if (entry.type != wasi::FileType::kDirectory) {
    SW_TRY(const Bytes content, read(path));
    SW_CHECK_OK(target.write_file("", content));
    SW_CHECK_OK(target.put(if_there));
    return left_out;
  }
  SW_CHECK_OK(target.make_folder(""));
  SW_TRY(const auto entries, list(path, Depth::kAll));
  for (const WorkspaceEntry& one : entries) {
    // Names of the workspace have no slash and are not "..", and nobody else writes into the target.
    const std::string below = one.path.substr(entry.path.size() + 1);
    if (one.type == wasi::FileType::kDirectory) {
      SW_CHECK_OK(target.make_folder(below));
    } else if (one.type == wasi::FileType::kRegularFile) {
      SW_TRY(const Bytes content, read(one.path));
      SW_CHECK_OK(target.write_file(below, content));
    } else {
      left_out.push_back(one.path);
    }
  }
  SW_CHECK_OK(target.put(IfThere::kFail));
  return left_out;
}

Result<void> Files::copy_to(std::string_view path, const Files& other,
                            std::string_view other_path) const {
  SW_TRY(const WorkspaceEntry entry, stat(path));
  if (entry.type != wasi::FileType::kDirectory) {
    SW_TRY(const Bytes content, read(path));
    return other.write(other_path, content);
  }
  SW_TRY(const auto entries, with_files(*core_, sandbox_, FileUse::kLook, "directory.list", path,
                                        [&](Workspace& files, std::uint64_t) {
                                          return entries_below(files, entry.path);
                                        }));
  return lay_over(*other.core_, other.sandbox_, other_path, entries);
}

}  // namespace sw
