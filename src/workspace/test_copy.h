// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A copy of a workspace, and what runs do to it.

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/wasi/file_system.h"
#include "sandbox_workers/workspace/workspace.h"
#include "wasi/tree_state.h"

namespace sw {

inline constexpr std::uint64_t kNow = 1'700'000'000'000'000'000;

/// A workspace, and the same files as a guest reaches them.
struct Copy {
  wasi::SystemClocks clocks;
  Workspace workspace{wasi::TreeLimits{}, kNow};
  wasi::FileSystem guest{wasi::standard_layout().build(), clocks};

  Copy() { guest.mount(wasi::kWorkspaceMount, workspace.tree()); }

  void write(const std::string& path, std::string_view text) {
    ASSERT_EQ(guest.write_file("/workspace/" + path, as_bytes(text)), wasi::Errno::kSuccess);
  }
  std::string read(const std::string& path) {
    const auto bytes = guest.read_file("/workspace/" + path);
    return bytes.ok() ? std::string(as_text(bytes->bytes))
                      : std::string(wasi::errno_name(bytes.error()));
  }
  std::vector<std::string> sync(const WorkspaceManifest& manifest,
                                const std::vector<WorkspaceFile>& files = {}) {
    auto missing = workspace.apply_sync(manifest, files, kNow);
    EXPECT_TRUE(missing.ok()) << missing.error().message;
    return missing.ok() ? *missing : std::vector<std::string>{"failed"};
  }
};

/// "write f 1; folder d; link l f; remove f": what a run does.
inline void act(Copy& copy, const std::string& script) {
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream words(line);
    std::string what;
    std::string name;
    std::string text;
    words >> what >> name >> text;
    const std::string path = "/workspace/" + name;
    wasi::Errno done = wasi::Errno::kSuccess;
    if (what == "write") done = copy.guest.write_file(path, as_bytes(text));
    if (what == "folder") done = copy.guest.make_directories(path);
    if (what == "link") done = copy.guest.symlink(text, path);
    if (what == "remove") done = copy.guest.remove_all(path);
    EXPECT_EQ(done, wasi::Errno::kSuccess) << line;
  }
}

inline std::string text_of(const Copy& copy) {
  std::string all;
  const wasi::TreeState state = copy.workspace.remember();
  for (const auto& [path, entry] : state.entries()) {
    all += all.empty() ? path : " " + path;
    if (entry.type == wasi::FileType::kDirectory) all += '/';
    if (entry.type == wasi::FileType::kSymbolicLink) all += "->" + entry.target;
    if (entry.type == wasi::FileType::kRegularFile) {
      all += '=';
      all += as_text(entry.bytes.bytes);
    }
  }
  return all;
}

}  // namespace sw
