// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/mirror.h"

#include <fmt/format.h>

#include <set>

#include "wasi/tree_state.h"
#include "workspace/diff.h"

namespace sw {

namespace {

Error bad_files(std::string message) { return Error{ErrorCode::kBadReply, std::move(message), 0}; }

/// Are these the files that were asked for, each once?
bool were_asked_for(const std::vector<WorkspaceFile>& files,
                    const std::vector<std::string>& paths) {
  std::set<std::string_view> asked(paths.begin(), paths.end());
  for (const WorkspaceFile& file : files) {
    if (asked.erase(file.path) == 0) return false;
  }
  return true;
}

}  // namespace

Mirror::Mirror(std::uint64_t now_ns)
    : files_(kWorkspaceLimits, now_ns),
      followed_(std::make_shared<wasi::TreeState>()),
      before_(followed_) {}

Result<void> Mirror::follow(const RunFiles& files, std::uint64_t now_ns) {
  files_.set_disabled(files.disabled);
  if (files.limits) files_.tree()->set_limits(*files.limits);
  if (files.state) {
    SW_CHECK_OK(follow_state(*files.state, now_ns));
  } else {
    SW_CHECK_OK(follow_manifest(files.manifest, files.get_files, now_ns));
  }
  before_ = std::make_shared<wasi::TreeState>(files_.remember());
  followed_ = files.state ? files.state : before_;
  return {};
}

/// Where neither the sandbox nor the copy changed, the two are still equal.
Result<void> Mirror::follow_state(const wasi::TreeState& wanted, std::uint64_t now_ns) {
  using Entries = wasi::TreeState::Entries;
  const wasi::TreeState now = files_.remember();
  std::set<std::string> changed;
  const auto add = [&](const std::string& path, const auto*, const auto*) { changed.insert(path); };
  Entries::differences(followed_->entries(), wanted.entries(), add);
  Entries::differences(before_->entries(), now.entries(), add);
  WorkspaceDiff diff;
  for (const std::string& path : changed) {
    add_change(diff, path, now.entries().find(path), wanted.entries().find(path));
  }
  return files_.apply_diff(diff, now_ns);
}

Result<void> Mirror::follow_manifest(const WorkspaceManifest& manifest, const GetFiles& get_files,
                                     std::uint64_t now_ns) {
  SW_TRY(const std::vector<std::string> missing, files_.apply_sync(manifest, {}, now_ns));
  if (missing.empty()) return {};
  if (!get_files) return bad_files("RunFiles::get_files is empty, but files are listed");
  const auto given = get_files(missing);
  if (!given.ok()) {
    return bad_files("Sandbox failed to provide files: " + given.error().message);
  }
  const std::vector<WorkspaceFile>& files = *given;
  if (!were_asked_for(files, missing)) {
    return bad_files("Sandbox returned an invalid workspace file entry");
  }
  const auto left = files_.apply_sync(manifest, files, now_ns);
  if (!left.ok()) return bad_files(left.error().message);
  if (left->empty()) return {};
  return bad_files(fmt::format("Sandbox did not provide {} workspace file(s)", left->size()));
}

}  // namespace sw
