// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Manifests and differences that travel between a sandbox and its mirrors.

#include "fuzz/fuzz.h"
#include "sandbox_workers/workspace/mirror.h"
#include "sandbox_workers/workspace/workspace.h"
#include "wasi/tree_check.h"
#include "wasi/tree_state.h"

namespace sw::fuzz {
namespace {

constexpr wasi::TreeLimits kLimits{
    .file_bytes_max = 3000, .tree_bytes_max = 8000, .entries_max = 30, .depth_max = 5};
constexpr int kStepsMax = 40;

/// Mostly paths that meet; any text now and then.
std::string path(Choices& choices) {
  static constexpr const char* kPaths[] = {"/workspace/a",
                                           "/workspace/a/b",
                                           "/workspace/b",
                                           "/workspace/a/b/c",
                                           "/workspace/c",
                                           "/workspace",
                                           "/workspace/c/d",
                                           "/workspace//a",
                                           "/workspace/../a",
                                           "/workspacea",
                                           "/workspace/a/..",
                                           "/workspace/b/a",
                                           "/workspace/a/b/d",
                                           "a",
                                           "",
                                           "/workspace/d/e/f"};
  const std::size_t which = choices.below(20);
  return which < std::size(kPaths) ? kPaths[which] : "/workspace/" + choices.text(300);
}

wasi::SharedBytes content(Choices& choices) {
  return wasi::SharedBytes::own(copy_of(choices.bytes(20)));
}

/// What a run or a host does.
void act(Workspace& files, Choices& choices) {
  const std::string one = path(choices);
  switch (choices.below(6)) {
    case 0: (void)files.write(one, choices.text(20), FileEncoding::kUtf8, 7'000'000); return;
    case 1: (void)files.make_directory(one, choices.coin() ? Depth::kAll : Depth::kOne, 7); return;
    case 2:
      (void)files.remove(one, choices.coin() ? Depth::kAll : Depth::kOne, IfMissing::kFail, 7);
      return;
    case 3: (void)files.rename(one, path(choices), 7); return;
    case 4: (void)files.list(one, Depth::kAll); return;
    default: (void)files.read(one, FileEncoding::kUtf8); return;
  }
}

WorkspaceDiff any_diff(Choices& choices) {
  WorkspaceDiff diff;
  for (std::size_t i = choices.below(4); i > 0; --i) diff.dirs.push_back(path(choices));
  for (std::size_t i = choices.below(4); i > 0; --i) {
    diff.files.push_back(
        {path(choices), content(choices), static_cast<std::int64_t>(choices.any_number())});
  }
  for (std::size_t i = choices.below(3); i > 0; --i) diff.removed.push_back(path(choices));
  for (std::size_t i = choices.below(3); i > 0; --i) diff.links[path(choices)] = choices.text(30);
  return diff;
}

WorkspaceManifest any_manifest(Choices& choices) {
  WorkspaceManifest manifest;
  for (std::size_t i = choices.below(4); i > 0; --i) manifest.dirs.push_back(path(choices));
  for (std::size_t i = choices.below(4); i > 0; --i)
    manifest.files[path(choices)] = content_hash(choices.bytes(3));
  for (std::size_t i = choices.below(3); i > 0; --i)
    manifest.links[path(choices)] = choices.text(30);
  return manifest;
}

/// The host puts what it got in place whatever the limits are, so only the counts are looked at.
void check(const Workspace& files) {
  const wasi::TreeLimits limits = files.tree()->limits();
  files.tree()->set_limits({UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX});
  const std::string fault = wasi::tree_fault(*files.tree());
  files.tree()->set_limits(limits);
  require(fault.empty(), "the tree is in order:", fault);
  const wasi::TreeState known = files.remember();
  const wasi::TreeState all = wasi::TreeState::of(*files.tree());
  require(known.entries().size() == all.entries().size(), "the state has all there is");
  for (const auto& [path, entry] : all.entries()) {
    const auto* const found = known.entries().find(path);
    require(found && found->is_untouched(entry), "the state is that of the tree:", path);
  }
}

std::vector<WorkspaceFile> contents_of(const Workspace& files,
                                       const std::vector<std::string>& paths) {
  std::vector<WorkspaceFile> found;
  for (const std::string& one : paths) {
    if (auto file = files.read_bytes(one); file.ok()) found.push_back(*std::move(file));
  }
  return found;
}

/// A mirror that is made like another and then told of a change is like it again.
void check_mirror(Workspace& files, Choices& choices) {
  Workspace mirror(kLimits, 0);
  (void)mirror.write("/workspace/a", "other", FileEncoding::kUtf8, 1);
  const WorkspaceManifest manifest = manifest_of(files.remember());
  auto missing = mirror.apply_sync(manifest, {}, 5);
  require(missing.ok(), "a manifest of ours can be applied");
  const auto sent = contents_of(files, *missing);
  missing = mirror.apply_sync(manifest, sent, 5);
  require(missing.ok() && missing->empty(), "with the contents nothing is missing");
  require(manifest_of(mirror.remember()).files == manifest.files &&
              manifest_of(mirror.remember()).dirs == manifest.dirs &&
              manifest_of(mirror.remember()).links == manifest.links,
          "the mirror is like it");
  const wasi::TreeState before = files.remember();
  for (int i = 0; i < 5; ++i) act(files, choices);
  require(mirror.apply_diff(files.changes_since(before), 5).ok(),
          "a difference of ours can be applied");
  require(manifest_of(mirror.remember()).files == manifest_of(files.remember()).files &&
              manifest_of(mirror.remember()).dirs == manifest_of(files.remember()).dirs &&
              manifest_of(mirror.remember()).links == manifest_of(files.remember()).links,
          "the mirror is like it again");
  check(mirror);
}

/// A mirror that follows the files, whatever is done to both, is like them; and they are like it when
/// they take over what a run did.
void check_follow(Workspace& files, Mirror& mirror, Choices& choices) {
  const auto require_alike = [&](const std::string& what) {
    require(files.remember().changes_to(mirror.files().remember()).empty(), what);
    check(mirror.files());
  };
  for (int i = 0; i < 4; ++i) act(choices.coin() ? files : mirror.files(), choices);
  require(mirror.follow(*files.for_run(), 5).ok(), "a mirror can follow");
  require_alike("the mirror is like the files");
  for (int i = 0; i < 4; ++i) act(mirror.files(), choices);
  if (choices.coin()) return;  // and the run is thrown away
  require(files.apply_diff(mirror.changes(), 5).ok(), "what a run did can be taken over");
  require_alike("the files are like the mirror");
}

const wasi::TreeState::Entry* find(const wasi::TreeState& state, const std::string& path) {
  return state.entries().find(path);
}

/// Of two runs that began with the same files, what the later did is there, and so is what both
/// left alone.
void check_two_runs(Workspace& files, Choices& choices) {
  const wasi::TreeState began = files.remember();
  wasi::TreeState ended[2];
  WorkspaceDiff diffs[2];
  for (std::size_t run = 0; run < 2; ++run) {
    Workspace mirror(kLimits, 0);
    require(mirror.apply_diff(workspace_diff({}, began), 5).ok(), "a mirror is made");
    const wasi::TreeState before = mirror.remember();
    for (int i = 0; i < 4; ++i) act(mirror, choices);
    ended[run] = mirror.remember();
    diffs[run] = workspace_diff(before, ended[run]);
  }
  for (const WorkspaceDiff& diff : diffs) require(files.apply_diff(diff, 5).ok(), "it is applied");
  const wasi::TreeState all = files.remember();
  for (const auto& [path, entry] : ended[1].entries()) {
    const auto* const old = find(began, path);
    const auto* const first = find(ended[0], path);
    const bool alone = old && old->has_content_of(entry);
    if (alone && (!first || !old->has_content_of(*first))) continue;  // as the first run left it
    const auto* const now = find(all, path);
    require(now && now->has_content_of(entry),
            "what the later run did, and both left alone, is there:", path);
  }
}

}  // namespace

SW_FUZZ(workspace) {
  Workspace files(kLimits, 0);
  Mirror mirror(0);
  Choices choices(input);
  for (int i = 0; i < kStepsMax && !choices.empty(); ++i) {
    switch (choices.below(10)) {
      case 0: (void)files.apply_diff(any_diff(choices), 5); break;
      case 1: {
        const WorkspaceManifest manifest = any_manifest(choices);
        (void)files.apply_sync(manifest, any_diff(choices).files, 5);
        break;
      }
      case 2: check_mirror(files, choices); break;
      case 8: check_two_runs(files, choices); break;
      case 9: check_follow(files, mirror, choices); break;
      default: act(files, choices);
    }
    check(files);
  }
}

}  // namespace sw::fuzz
