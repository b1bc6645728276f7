// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/files.h"

#include <fmt/format.h>

#include <utility>

#include "host/core.h"
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

/// The entries of a host's folder, laid over a folder of the workspace.
Result<void> place(Workspace& files, const std::string& folder, const wasi::TreeState& entries,
                   std::uint64_t now_ns) {
  SW_CHECK_OK(files.make_directory(folder, Depth::kAll, now_ns));
  for (const auto& [below, entry] : entries.entries()) {
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

Result<void> Files::copy_in(const fs::path& host, std::string_view path) const {
  std::error_code failed;
  if (!fs::is_directory(host, failed)) {
    SW_TRY(const Bytes content, read_file(host));
    return write(path, content);
  }
  SW_TRY(const auto loaded, wasi::HostFolder::load(host, core_->options().sandboxes.files, 0));
  const auto entries = wasi::TreeState::of(*loaded.tree());
  SW_TRY(const std::string folder, Workspace::normalize(path));
  return with_files(*core_, sandbox_, FileUse::kChange, "directory.create", path,
                    [&](Workspace& files, std::uint64_t now_ns) {
                      return place(files, folder, entries, now_ns);
                    });
}

Result<void> Files::copy_out(std::string_view path, const fs::path& host) const {
  SW_TRY(const WorkspaceEntry entry, stat(path));
  std::error_code failed;
  if (fs::exists(fs::symlink_status(host, failed))) {
    return Error{ErrorCode::kFileExists, fmt::format("{} exists", host.native()), 0};
  }
  if (entry.type != wasi::FileType::kDirectory) {
    SW_TRY(const Bytes content, read(path));
    return write_file_atomically(host, content);
  }
  SW_TRY(const auto entries, list(path, Depth::kAll));
  fs::create_directories(host, failed);
  if (failed) return errno_error(failed.value(), "cannot create the folder " + host.native());
  for (const WorkspaceEntry& one : entries) {
    // Names of the workspace have no slash and are not "..", and the folder is new: all of it is
    // within.
    const fs::path to = host / one.path.substr(entry.path.size() + 1);
    if (one.type == wasi::FileType::kDirectory) {
      fs::create_directories(to, failed);
      if (failed) return errno_error(failed.value(), "cannot create the folder " + to.native());
    } else if (one.type == wasi::FileType::kRegularFile) {
      SW_TRY(const Bytes content, read(one.path));
      SW_CHECK_OK(write_file_atomically(to, content));
    }
  }
  return {};
}

}  // namespace sw
