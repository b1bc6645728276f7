// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/workspace_folder.h"

#include <gtest/gtest.h>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/host.h"

namespace sw {
namespace {

TEST(WorkspaceFolder, ARunReadsAFolderAndWhatItWritesIsWrittenBack) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-").value();
  ASSERT_TRUE(write_file_atomically(folder.path() / "in", as_bytes("21")).ok());
  WorkspaceFolder loaded = WorkspaceFolder::load(folder.path()).value();
  const Host host = Host::open().value();
  sw::Run run{.language = "js",
              .code = "fs.writeFileSync('out', String(2 * fs.readFileSync('in', 'utf8')))"};
  run.files = loaded.files();
  const Outcome outcome = host.run(run).value();
  ASSERT_FALSE(outcome.error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
  const WriteBackReport report = loaded.write_back(outcome);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.written, 1U);
  EXPECT_EQ(as_text(read_file(folder.path() / "out").value()), "42");
}

TEST(WorkspaceFolder, OneRunsWriteBackLeavesWhatAnotherMade) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-").value();
  WorkspaceFolder loaded = WorkspaceFolder::load(folder.path()).value();
  const Host host = Host::open().value();
  const auto files = loaded.files();
  std::vector<Outcome> outcomes;
  for (const char* name : {"a", "b"}) {
    sw::Run run{.language = "js", .code = std::string("fs.mkdirSync('") + name + "')"};
    run.files = files;
    outcomes.push_back(host.run(run).value());
  }
  for (const Outcome& outcome : outcomes) EXPECT_EQ(loaded.write_back(outcome).error, "");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "a"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "b"));
}

TEST(WorkspaceFolder, SaysWhyNothingIsWritten) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-").value();
  WorkspaceFolder loaded = WorkspaceFolder::load(folder.path()).value();
  Outcome outcome;
  outcome.files = WorkspaceDiff{.files = {{.path = "/workspace/a"}}};
  ASSERT_TRUE(write_file_atomically(folder.path() / "a", as_bytes("theirs")).ok());
  EXPECT_NE(loaded.write_back(outcome).error, "");
  EXPECT_EQ(as_text(read_file(folder.path() / "a").value()), "theirs");
}

TEST(WorkspaceFolder, AFolderThatIsNotThereIsAnError) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-").value();
  EXPECT_FALSE(WorkspaceFolder::load(folder.path() / "none").ok());
}

}  // namespace
}  // namespace sw
