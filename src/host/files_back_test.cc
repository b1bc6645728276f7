// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Files that go back with the memory of a context.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/host.h"

namespace sw {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Tree = std::map<std::string, std::string>;

/// In memory, and over a data folder.
class FilesBack : public testing::TestWithParam<bool> {
 protected:
  FilesBack() { reopen(); }

  void reopen() {
    host_.reset();
    HostOptions options{.data_folder = GetParam() ? folder_.path() / "data" : ""};
    options.sandboxes.file_history = limits_;
    host_ = Host::open(std::move(options)).value();
  }
  void reopen_folder() {
    if (GetParam()) reopen();
  }

  Sandbox sandbox(const std::string& id = "a") { return host_->sandbox(id); }
  Context context(const std::string& id, const std::string& sandbox_id = "a") {
    return sandbox(sandbox_id).context(id);
  }
  std::string run(const std::string& language, const std::string& code,
                  const std::string& sandbox_id = "a", const std::string& id = {}) {
    const auto outcome =
        sandbox(sandbox_id)
            .run({.language = language, .code = code, .context = id.empty() ? language : id});
    if (!outcome.ok()) return outcome.error().message;
    if (outcome->error) return outcome->error->message;
    return outcome->value ? outcome->value->text : "";
  }
  /// Contents, targets of links, and "/" for folders.
  Tree tree(const std::string& sandbox_id = "a") {
    Tree tree;
    const Files files = sandbox(sandbox_id).files();
    const auto entries = files.list("/workspace", Depth::kAll);
    for (const WorkspaceEntry& entry : *entries) {
      std::string& text = tree[entry.path.substr(sizeof "/workspace")];
      if (entry.type == wasi::FileType::kDirectory) text = "/";
      else if (entry.type == wasi::FileType::kSymbolicLink) text = "a link";
      else text = files.read_text(entry.path).value();
    }
    return tree;
  }

  FileHistoryLimits limits_;
  const TemporaryDirectory folder_ =
      *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-files-back-");
  std::optional<Host> host_;
};

TEST_P(FilesBack, UndoTakesBackWhatLanguagesDidToFilesFoldersAndLinks) {
  run("javascript",
      "var x = 1; fs.mkdirSync('d'); fs.writeFileSync('d/a', 'one');"
      "fs.writeFileSync('b', 'two'); fs.symlinkSync('b', 'link')");
  run("perl", "our $y = 1; open(my $f, '>', 'p'); print $f 'perl'; close $f");
  run("javascript", "x = 2; fs.writeFileSync('b', 'changed')");
  const Tree then = tree();
  EXPECT_EQ(then.at("b"), "changed");
  run("javascript",
      "x = 3; fs.renameSync('d', 'e'); fs.writeFileSync('e/a', 'ONE'); fs.unlinkSync('b');"
      "fs.unlinkSync('link'); fs.mkdirSync('link'); fs.writeFileSync('link/in', '')");
  run("perl", "$y = 2; unlink 'p'; mkdir 'q'");
  const Tree now = tree();
  reopen_folder();

  const VersionFiles told = context("javascript").undo().value();
  EXPECT_EQ(told.step, 2U);
  EXPECT_THAT(told.differ, ElementsAre("b", "d", "d/a", "e", "e/a", "link", "link/in", "p", "q"));
  EXPECT_EQ(tree(), now);
  EXPECT_EQ(run("javascript", "x"), "2");  // step 4

  const VersionFiles back = context("javascript").restore(2, {.files = true}).value();
  EXPECT_EQ(back.restored, 9U);
  EXPECT_THAT(back.differ, IsEmpty());
  EXPECT_EQ(tree(), then);
  EXPECT_EQ(run("javascript", "x + fs.readFileSync('b', 'utf8')"), "'2changed'");
  EXPECT_EQ(run("perl", "$y . (-e 'p' ? ' p' : '') . (-d 'q' ? ' q' : '')"), "2 p")
      << "it has its memory, and sees the files";
  reopen_folder();
  EXPECT_EQ(tree(), then);
  ASSERT_TRUE(context("javascript").restore(3, {.files = true}).ok());
  Tree expected = now;
  expected["p"] = "perl";
  expected.erase("q");
  EXPECT_EQ(tree(), expected) << "going forth again, to when Perl had not removed it yet";
  EXPECT_EQ(run("javascript", "x"), "3");
}

TEST_P(FilesBack, AForkAndACheckpointTakeThemAlong) {
  run("javascript", "var x = 1; fs.writeFileSync('f', 'one')");
  ASSERT_TRUE(context("javascript").checkpoint("first").ok());
  run("javascript", "x = 2; fs.writeFileSync('f', 'two')");
  const VersionFiles plain = context("javascript").fork("plain", 1)->files;
  EXPECT_THAT(plain.differ, ElementsAre("f"));
  EXPECT_EQ(plain.restored, 0U);
  EXPECT_EQ(context("javascript").fork("fork", "first", {.files = true})->files.restored, 1U);
  EXPECT_EQ(tree(), (Tree{{"f", "one"}}));
  EXPECT_EQ(context("fork").run({.code = "x + fs.readFileSync('f', 'utf8')"})->value->text,
            "'1one'");
  ASSERT_TRUE(context("fork").run({.code = "fs.writeFileSync('f', 'branch')"}).ok());
  reopen_folder();
  EXPECT_EQ(context("fork").restore(1, {.files = true})->restored, 1U)
      << "a step that it inherited";
  EXPECT_EQ(tree(), (Tree{{"f", "one"}}));
  EXPECT_EQ(context("javascript").restore(2, {.files = true})->restored, 1U);
  EXPECT_EQ(tree(), (Tree{{"f", "two"}}));
  EXPECT_EQ(context("javascript").restore("first", {.files = true})->restored, 1U);
  EXPECT_EQ(tree(), (Tree{{"f", "one"}}));
}

TEST_P(FilesBack, WhatIsNotKeptIsAnErrorThatChangesNothing) {
  limits_.changes_max = 3;
  reopen();
  for (int i = 1; i <= 6; ++i)
    run("javascript", "var x = " + std::to_string(i) + "; fs.writeFileSync('f', String(x))");
  const auto refused = context("javascript").undo(4, {.files = true});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr("how the files were after step 2 is not kept; that is kept from step 3 on"));
  EXPECT_EQ(run("javascript", "x"), "6");
  EXPECT_FALSE(context("javascript").fork("fork", 2, {.files = true}).ok());
  EXPECT_EQ(sandbox().contexts()->size(), 1U);
  EXPECT_EQ(tree(), (Tree{{"f", "6"}}));
  const VersionFiles told = context("javascript").restore(2).value();
  EXPECT_FALSE(told.known);
  EXPECT_EQ(run("javascript", "x"), "2");
  EXPECT_TRUE(context("javascript").restore(4, {.files = true}).ok());
  EXPECT_EQ(tree(), (Tree{{"f", "4"}}));
}

TEST_P(FilesBack, LimitsThatWereLoweredLeaveMemoryAndFiles) {
  run("javascript", "var x = 1; fs.writeFileSync('f', 'x'.repeat(5000))");
  run("javascript", "x = 2; fs.unlinkSync('f')");
  if (!GetParam()) return;
  host_.reset();
  HostOptions options{.data_folder = folder_.path() / "data"};
  options.sandboxes.files.tree_bytes_max = 1000;
  host_ = Host::open(std::move(options)).value();
  EXPECT_EQ(context("javascript").undo(1, {.files = true}).error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(run("javascript", "x"), "2");
  EXPECT_THAT(tree(), IsEmpty());
  EXPECT_TRUE(context("javascript").restore(1).ok());
}

TEST_P(FilesBack, TheLogGoesAlongWithCopiesOfASandbox) {
  run("javascript", "var x = 1; fs.writeFileSync('f', 'one')");
  run("javascript", "x = 2; fs.writeFileSync('f', 'two')");
  ASSERT_TRUE(sandbox().checkpoint("kept").ok());
  ASSERT_TRUE(sandbox().fork("b").ok());
  run("javascript", "x = 3; fs.writeFileSync('f', 'three')");
  EXPECT_TRUE(context("javascript", "b").undo(1, {.files = true}).ok());
  EXPECT_EQ(tree("b"), (Tree{{"f", "one"}}));
  ASSERT_TRUE(sandbox().restore("kept").ok());
  EXPECT_TRUE(context("javascript").undo(1, {.files = true}).ok());
  EXPECT_EQ(tree(), (Tree{{"f", "one"}}));
  reopen_folder();
  ASSERT_TRUE(host_->fork_checkpoint("kept", "c").ok());
  EXPECT_THAT(context("javascript", "c").undo(1)->differ, ElementsAre("f"));
}

TEST_P(FilesBack, ARunThatWasRolledBackLeavesTheStepBefore) {
  run("javascript", "var x = 1; fs.writeFileSync('f', 'one')");
  sw::Run failing{.language = "javascript", .code = "x = 2; fs.writeFileSync('f', 'two'); nope()"};
  failing.on_error = AfterError::kRollback;
  ASSERT_TRUE(sandbox().run(failing).ok());
  EXPECT_EQ(tree(), (Tree{{"f", "one"}}));
  ASSERT_TRUE(sandbox().files().write("g", "from outside").ok());
  run("javascript", "x = 3");
  const VersionFiles told = context("javascript").undo().value();
  EXPECT_EQ(told.step, 1U);
  EXPECT_THAT(told.differ, ElementsAre("g"));
}

TEST_P(FilesBack, NoRunsCannotBeUndone) {
  EXPECT_TRUE(host_->sandbox("s").run({.language = "javascript", .code = "1"}).ok());
  const auto undone = host_->sandbox("s").context("javascript").undo(0, {.files = true});
  EXPECT_EQ(undone.error().code, ErrorCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Storages, FilesBack, testing::Bool(),
                         [](const auto& folder) { return folder.param ? "Folder" : "Memory"; });

}  // namespace
}  // namespace sw
