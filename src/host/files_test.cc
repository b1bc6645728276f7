// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/host.h"

namespace sw {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  const TemporaryDirectory folder_ =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-files-").value();
  const Host host_ = Host::open().value();
  const Files files_ = host_.sandbox("a").files();
};

TEST_F(FilesTest, AreWrittenReadListedMovedAndRemoved) {
  ASSERT_TRUE(files_.write("a.txt", "one").ok());
  EXPECT_EQ(files_.read_text("/workspace/a.txt").value(), "one");
  ASSERT_TRUE(files_.make_folder("x/y").ok());
  ASSERT_TRUE(files_.rename("a.txt", "x/y/b.txt").ok());
  EXPECT_EQ(files_.list("x", Depth::kAll)->size(), 2U);
  EXPECT_EQ(files_.stat("x/y/b.txt")->size, 3U);
  EXPECT_FALSE(files_.exists("a.txt"));
  ASSERT_TRUE(files_.remove("x", Depth::kAll).ok());
  EXPECT_TRUE(files_.list()->empty());
}

TEST_F(FilesTest, ErrorsNameThePathAndTheOperation) {
  const auto missing = files_.read("none");
  EXPECT_EQ(missing.error().code, ErrorCode::kFileNotFound);
  EXPECT_EQ(missing.error().context.at("path"), "none");
  EXPECT_EQ(missing.error().context.at("operation"), "file.read");
  EXPECT_EQ(files_.write("../out", "x").error().code, ErrorCode::kPermission);
}

TEST_F(FilesTest, AreCopiedInAndOutWithTheirFolders) {
  const fs::path in = folder_.path() / "in";
  fs::create_directories(in / "deep");
  ASSERT_TRUE(write_file_atomically(in / "deep" / "a", as_bytes("A")).ok());
  ASSERT_TRUE(write_file_atomically(in / "b", as_bytes("B")).ok());
  fs::create_symlink("b", in / "link");
  ASSERT_TRUE(files_.copy_in(in, "copy").ok());
  EXPECT_EQ(files_.read_text("copy/deep/a").value(), "A");
  EXPECT_EQ(files_.read_text("copy/link").value(), "B");
  const fs::path out = folder_.path() / "out";
  ASSERT_TRUE(files_.copy_out("copy", out).ok());
  EXPECT_EQ(as_text(read_file(out / "deep" / "a").value()), "A");
  EXPECT_FALSE(fs::exists(fs::symlink_status(out / "link")));
  EXPECT_EQ(files_.copy_out("copy", out).error().code, ErrorCode::kFileExists);
}

TEST_F(FilesTest, ASingleFileIsCopiedInAndOut) {
  const fs::path in = folder_.path() / "in";
  ASSERT_TRUE(write_file_atomically(in, as_bytes("text")).ok());
  ASSERT_TRUE(files_.copy_in(in, "f").ok());
  ASSERT_TRUE(files_.copy_out("f", folder_.path() / "out").ok());
  EXPECT_EQ(as_text(read_file(folder_.path() / "out").value()), "text");
}

TEST_F(FilesTest, AFolderThatDoesNotFitIsNotCopiedInAtAll) {
  const Host small = Host::open({.sandboxes = {.files = {.tree_bytes_max = 10}}}).value();
  const Files files = small.sandbox("a").files();
  ASSERT_TRUE(files.write("old", "1").ok());
  ASSERT_TRUE(files_.make_folder("folder").ok());
  ASSERT_TRUE(files_.write("folder/a", "12345").ok());
  ASSERT_TRUE(files_.write("folder/b", "123456").ok());
  EXPECT_EQ(files_.copy_to("folder", files, "new").error().code, ErrorCode::kNoSpace);
  EXPECT_FALSE(files.exists("new"));
  EXPECT_EQ(files.read_text("old").value(), "1");
}

TEST_F(FilesTest, AreCopiedToOtherSandboxes) {
  ASSERT_TRUE(files_.make_folder("folder/deep").ok());
  ASSERT_TRUE(files_.write("folder/deep/a", "A").ok());
  const Files other = host_.sandbox("b").files();
  ASSERT_TRUE(files_.copy_to("folder", other, "copy").ok());
  EXPECT_EQ(other.read_text("copy/deep/a").value(), "A");
  ASSERT_TRUE(files_.copy_to("folder/deep/a", other, "one").ok());
  EXPECT_EQ(other.read_text("one").value(), "A");
  ASSERT_TRUE(files_.copy_to("/workspace", files_, "all").ok());
  EXPECT_EQ(files_.read_text("all/folder/deep/a").value(), "A");
}

TEST_F(FilesTest, AFileOnTheHostIsReplacedOnlyIfAskedAndNeverThroughALink) {
  const fs::path place = folder_.path() / "place";
  const fs::path other = folder_.path() / "other";
  ASSERT_TRUE(write_file_atomically(other, as_bytes("somebody's")).ok());
  fs::create_symlink(other, place);
  ASSERT_TRUE(files_.write("f", "new").ok());
  EXPECT_EQ(files_.copy_out("f", place).error().code, ErrorCode::kFileExists);
  ASSERT_TRUE(files_.copy_out("f", place, IfThere::kReplace).ok());
  EXPECT_EQ(as_text(read_file(place).value()), "new");
  EXPECT_EQ(as_text(read_file(other).value()), "somebody's");
  fs::permissions(place, fs::perms(0640));
  ASSERT_TRUE(files_.copy_out("f", place, IfThere::kReplace).ok());
  EXPECT_EQ(fs::status(place).permissions(), fs::perms(0640));
  fs::create_directory(folder_.path() / "folder");
  EXPECT_EQ(files_.copy_out("f", folder_.path() / "folder", IfThere::kReplace).error().code,
            ErrorCode::kFileExists);
  // Nothing is left of what was on its way.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 3);
}

TEST_F(FilesTest, LinksThatAreNotCopiedOutAreReturned) {
  const fs::path in = folder_.path() / "in";
  fs::create_directories(in);
  fs::create_symlink("elsewhere", in / "link");
  ASSERT_TRUE(files_.copy_in(in, "copy").value().empty());
  EXPECT_EQ(files_.copy_out("copy", folder_.path() / "out").value(),
            std::vector<std::string>{"/workspace/copy/link"});
}

}  // namespace
}  // namespace sw
