// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Folders of the host with any links: the kernel agrees where they lead, and what a run left in its
// tree is written back without making a link that leads out.

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "fuzz/fuzz.h"
#include "sandbox_workers/wasi/file_system.h"
#include "wasi/host_folder.h"
#include "wasi/host_links.h"
#include "wasi/test_clocks.h"
#include "wasi/tree_state.h"

namespace sw::fuzz {
namespace {

namespace fs = std::filesystem;
using namespace wasi;

constexpr std::size_t kLinkSteps = 100'000;
constexpr int kStepsMax = 20;

std::string any_path(Choices& choices) {
  static constexpr const char* kNames[] = {"a", "b", "c"};
  std::string path = kNames[choices.below(3)];
  for (std::size_t more = choices.below(3); more > 0; --more)
    path += std::string("/") + kNames[choices.below(3)];
  return path;
}

std::string any_target(Choices& choices) {
  static constexpr const char* kParts[] = {"a", "b", "c", "..", ".", "..", "none", "/", "../.."};
  std::string target = kParts[choices.below(std::size(kParts))];
  for (std::size_t more = choices.below(6); more > 0; --more) {
    target += std::string("/") + kParts[choices.below(std::size(kParts))];
  }
  return target;
}

void fill(const fs::path& folder, Choices& choices) {
  for (int i = 0; i < kStepsMax && choices.below(8) != 0; ++i) {
    const fs::path path = folder / any_path(choices);
    // The way there must not lead through a link.
    std::error_code error;
    if (fs::weakly_canonical(path.parent_path(), error) != path.parent_path()) continue;
    if (fs::exists(fs::symlink_status(path, error))) continue;
    const std::size_t what = choices.below(3);
    if (what == 0) fs::create_directory(path, error);
    else if (what == 1) fs::create_symlink(any_target(choices), path, error);
    else std::ofstream(path) << "old";
  }
}

/// The links that lead out, and their targets.
std::map<std::string, std::string> leading_out(const UniqueFd& folder) {
  std::map<std::string, std::string> found;
  const HostEntries entries = scan_host_folder(folder.get()).value();
  for (const auto& [path, entry] : entries) {
    if (entry.is_link() && kernel_leaves(folder.get(), path)) found[path] = entry.target;
  }
  return found;
}

void check_links(const UniqueFd& folder) {
  const LinkModel model(scan_host_folder(folder.get()).value());
  for (const std::string& link : model.links()) {
    std::size_t steps = kLinkSteps;
    const LinkModel::Resolution resolution = model.resolve(link, steps);
    if (steps == 0) continue;
    require((resolution.escape == LinkModel::Escape::kCertain) == kernel_leaves(folder.get(), link),
            "the kernel agrees", link);
  }
}

void change(const std::shared_ptr<Tree>& tree, Choices& choices) {
  const FixedClocks clocks;
  FileSystem files(standard_layout().build(), clocks);
  files.mount(kWorkspaceMount, tree);
  for (int i = 0; i < kStepsMax && !choices.empty(); ++i) {
    const std::string path = "/workspace/" + any_path(choices);
    switch (choices.below(5)) {
      case 0: (void)files.make_directories(path); break;
      case 1: (void)files.remove_all(path); break;
      case 2: (void)files.rename(path, "/workspace/" + any_path(choices)); break;
      case 3: (void)files.symlink(any_target(choices), path); break;
      default: (void)files.write_file(path, choices.bytes(10)); break;
    }
  }
}

}  // namespace

SW_FUZZ(host_folder) {
  const auto parent = TemporaryDirectory::create(memory_folder(), "sw-fuzz-").value();
  const fs::path path = parent.path() / "folder";
  fs::create_directory(path);
  std::ofstream(parent.path() / "a") << "outside";
  Choices choices(input);
  fill(path, choices);
  const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  check_links(folder);
  const auto led_out = leading_out(folder);
  auto loaded = HostFolder::load(path, {}, 1);
  require(loaded.ok(), "the folder is loaded");
  change(loaded->tree(), choices);
  const auto done = loaded->write_back();
  for (const auto& [link, target] : leading_out(folder)) {
    const auto before = led_out.find(link);
    require(before != led_out.end() && before->second == target, "no other link leads out", link);
  }
  check_links(folder);
  std::size_t outside = 0;
  for (const auto& entry : fs::directory_iterator(parent.path()))
    outside += entry.path().empty() ? 0U : 1U;
  require(outside == 2 && read_text_file(parent.path() / "a").value() == "outside",
          "nothing changes outside");
  if (!done.ok() || !done->refused.empty() || !done->left.empty() || !loaded->skipped().empty())
    return;
  const auto again = HostFolder::load(path, {}, 1);
  require(again.ok(), "what was written is loaded");
  require(TreeState::of(*loaded->tree()).changes_to(TreeState::of(*again->tree())).empty(),
          "the host has all of it");
}

}  // namespace sw::fuzz
