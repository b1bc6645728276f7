// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/workspace_folder.h"

#include <utility>

#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/workspace/workspace.h"
#include "wasi/host_access.h"
#include "wasi/host_folder.h"

namespace sw {

struct WorkspaceFolder::Loaded {
  explicit Loaded(wasi::HostFolder loaded) : folder(std::move(loaded)), workspace(folder.tree()) {}

  wasi::HostFolder folder;
  Workspace workspace;
};

WorkspaceFolder::WorkspaceFolder(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Result<std::string> WorkspaceFolder::read_text(const std::filesystem::path& folder,
                                               const std::string& name, std::size_t bytes_max) {
  return wasi::read_file_beneath(folder, name, bytes_max);
}

WorkspaceFolder::~WorkspaceFolder() = default;
WorkspaceFolder::WorkspaceFolder(WorkspaceFolder&&) noexcept = default;
WorkspaceFolder& WorkspaceFolder::operator=(WorkspaceFolder&&) noexcept = default;

Result<WorkspaceFolder> WorkspaceFolder::load(const std::filesystem::path& folder,
                                              const wasi::TreeLimits& limits) {
  auto loaded = wasi::HostFolder::load(folder, limits, wasi::SystemClocks().realtime_ns());
  if (!loaded.ok()) {
    return std::move(loaded).error().while_doing("cannot load " + folder.native());
  }
  return WorkspaceFolder(std::make_unique<Loaded>(*std::move(loaded)));
}

std::shared_ptr<const RunFiles> WorkspaceFolder::files() { return loaded_->workspace.for_run(); }

const std::vector<std::string>& WorkspaceFolder::left_out() const {
  return loaded_->folder.skipped();
}

WriteBackReport WorkspaceFolder::write_back(const Outcome& outcome) {
  if (outcome.files) {
    const auto applied =
        loaded_->workspace.apply_diff(*outcome.files, wasi::SystemClocks().realtime_ns());
    if (!applied.ok()) return {.error = applied.error().message};
  }
  auto done = loaded_->folder.write_back();
  if (!done.ok()) return {.error = std::move(done).error().message};
  return {.written = done->written.size(),
          .refused = std::move(done->refused),
          .left = std::move(done->left)};
}

}  // namespace sw
