// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of this room share.

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/wasi/file_system.h"
#include "wasi/test_clocks.h"

namespace sw::wasi {

inline void PrintTo(Errno error, std::ostream* out) { *out << errno_name(error); }

/// A file system with the standard layout and small limits.
class FileSystemTest : public ::testing::Test {
 protected:
  FileSystemTest() { use(standard_layout().build()); }

  void use(std::shared_ptr<const Layout> layout) {
    files_ = std::make_unique<FileSystem>(std::move(layout), clocks_, TreeLimits{});
    workspace_ = std::make_shared<Tree>(TreeLimits{}, clocks_.realtime);
    files_->mount(kWorkspaceMount, workspace_);
  }
  FileSystem& files() { return *files_; }
  Place root() { return files_->root(); }
  Place workspace() { return {static_cast<std::int32_t>(kWorkspaceMount), &workspace_->root()}; }

  Errno write(std::string_view path, std::string_view text, WriteMode mode = WriteMode::kReplace) {
    return files_->write_file(path, as_bytes(text), mode);
  }
  /// The file's content, or the error's name.
  std::string read(std::string_view path) {
    const auto bytes = files_->read_file(path);
    return bytes.ok() ? std::string(as_text(bytes->bytes)) : std::string(errno_name(bytes.error()));
  }
  std::vector<std::string> names(std::string_view path) {
    std::vector<std::string> names;
    const auto entries = files_->read_directory(path);
    if (!entries.ok()) return {std::string(errno_name(entries.error()))};
    for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }

  FixedClocks clocks_;
  std::unique_ptr<FileSystem> files_;
  std::shared_ptr<Tree> workspace_;
};

}  // namespace sw::wasi
