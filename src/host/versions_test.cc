// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Versions of whole sandboxes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/host.h"

namespace sw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// In memory, and over a data folder.
class Versions : public testing::TestWithParam<bool> {
 protected:
  Versions() { reopen(); }

  void reopen() {
    host_.reset();
    host_ = Host::open({.data_folder = GetParam() ? folder_.path() / "data" : ""}).value();
  }

  /// A run in a context of JavaScript; an error is its text.
  std::string run(const std::string& sandbox, const std::string& code,
                  const std::string& context = "javascript") {
    const auto outcome =
        host_->sandbox(sandbox).run({.language = "javascript", .code = code, .context = context});
    if (!outcome.ok()) return outcome.error().message;
    if (outcome->error) return outcome->error->name;
    return outcome->value ? outcome->value->text : "";
  }

  std::string file(const std::string& sandbox) {
    const auto content = host_->sandbox(sandbox).files().read_text("file");
    return content.ok() ? *content : std::string(code_name(content.error().code));
  }

  const TemporaryDirectory folder_ =
      *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-versions-");
  std::optional<Host> host_;
};

TEST_P(Versions, AForkGoesOnFromWhereItsOriginalWasAndEachGoesItsWay) {
  run("a", "var x = 1; fs.writeFileSync('file', 'one')");
  run("a", "var y = 'other'", "second");
  ASSERT_TRUE(host_->sandbox("a").set_env({{"NAME", "value"}}).ok());
  ASSERT_TRUE(host_->sandbox("a").fork("b").ok());
  run("a", "x = 2; fs.writeFileSync('file', 'two')");
  EXPECT_EQ(run("b", "x"), "1");
  EXPECT_EQ(run("b", "y", "second"), "'other'");
  EXPECT_EQ(run("b", "process.env.NAME"), "'value'");
  EXPECT_EQ(file("b"), "one");
  run("b", "x = 3; fs.writeFileSync('file', 'three')");
  EXPECT_EQ(run("a", "x"), "2");
  EXPECT_EQ(file("a"), "two");
  if (GetParam()) {
    reopen();
    EXPECT_EQ(run("a", "x"), "2");
    EXPECT_EQ(run("b", "x"), "3");
    EXPECT_EQ(file("b"), "three");
  }
}

TEST_P(Versions, ACheckpointBringsMemoryAndFilesBack) {
  run("a", "var x = 1; fs.writeFileSync('file', 'one')");
  const SandboxCheckpoint made = host_->sandbox("a").checkpoint("before").value();
  EXPECT_EQ(made.name, "before");
  EXPECT_THAT(made.contexts, ElementsAre("javascript"));
  run("a", "x = 2; fs.writeFileSync('file', 'two')");
  run("a", "var z = 1", "later");
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(host_->sandbox("a").restore("before").ok());
    EXPECT_EQ(run("a", "x"), "1");
    EXPECT_EQ(file("a"), "one");
    EXPECT_EQ(host_->sandbox("a").contexts()->size(), 1U);
    run("a", "x = 5; fs.writeFileSync('file', 'five')");
  }
}

TEST_P(Versions, ACheckpointOutlivesItsSandboxAndMakesNewOnes) {
  run("a", "var x = 1");
  ASSERT_TRUE(host_->sandbox("a").checkpoint("kept").ok());
  ASSERT_TRUE(host_->sandbox("a").destroy().ok());
  if (GetParam()) reopen();
  const auto checkpoints = host_->checkpoints().value();
  ASSERT_EQ(checkpoints.size(), 1U);
  EXPECT_EQ(checkpoints[0].sandbox, "a");
  ASSERT_TRUE(host_->fork_checkpoint("kept", "b").ok());
  ASSERT_TRUE(host_->sandbox("c").restore("kept").ok());
  ASSERT_TRUE(host_->remove_checkpoint("kept").ok());
  EXPECT_TRUE(host_->checkpoints()->empty());
  EXPECT_EQ(run("b", "x"), "1");
  EXPECT_EQ(run("c", "++x"), "2");
  EXPECT_THAT(*host_->sandboxes(), ElementsAre("b", "c"));
}

TEST_P(Versions, NamesAreTakenOnceAndWhatIsNotThereIsNamed) {
  run("a", "1");
  run("b", "1");
  EXPECT_THAT(host_->sandbox("a").fork("b").error().message, HasSubstr("'b' already exists"));
  EXPECT_EQ(host_->sandbox("none").fork("c").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(host_->sandbox("none").checkpoint("c").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(*host_->has_sandbox("none"));
  ASSERT_TRUE(host_->sandbox("a").checkpoint("name").ok());
  EXPECT_THAT(host_->sandbox("b").checkpoint("name").error().message, HasSubstr("already exists"));
  EXPECT_THAT(host_->sandbox("b").checkpoint("no name").error().message,
              HasSubstr("Invalid checkpoint name"));
  EXPECT_THAT(host_->sandbox("a").restore("other").error().message,
              HasSubstr("no checkpoint 'other'"));
  EXPECT_EQ(host_->remove_checkpoint("other").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(host_->sandbox("a").checkpoint().value().name.empty());
}

TEST_P(Versions, RestoringInterruptsRuns) {
  run("a", "var x = 1");
  ASSERT_TRUE(host_->sandbox("a").checkpoint("before").ok());
  RunOutput output;
  sw::Run endless{.language = "javascript", .code = "for (;;) {}"};
  endless.limits.wall_max = {};
  const RunHandle handle = host_->sandbox("a").start(endless, output);
  ASSERT_TRUE(host_->sandbox("a").restore("before").ok());
  (void)handle.wait();
  EXPECT_EQ(run("a", "x"), "1");
}

INSTANTIATE_TEST_SUITE_P(Storages, Versions, testing::Bool(),
                         [](const auto& folder) { return folder.param ? "Folder" : "Memory"; });

}  // namespace
}  // namespace sw
