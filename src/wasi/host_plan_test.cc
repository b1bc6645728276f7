// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "wasi/host_test_support.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using PlanTest = WriteBackFixture;

TEST_F(PlanTest, RefusesALinkThatLeadsOutThroughAnotherOfTheSameRun) {
  HostFolder loaded = load();
  link("e", "s/s/s/../../../etc/passwd");
  link("s", ".");
  EXPECT_THAT(refused(loaded), ElementsAre(leads_out("e", "s/s/s/../../../etc/passwd")));
  EXPECT_EQ(fs::read_symlink(host() / "s"), ".");
  EXPECT_FALSE(exists("e"));
}

TEST_F(PlanTest, RefusesALinkThatLeadsOutThroughOneOnTheHost) {
  fs::create_symlink(".", host() / "s");
  fs::create_symlink("/etc", host() / "etc");
  HostFolder loaded = load();
  link("a", "s/..");
  link("b", "etc/passwd");
  EXPECT_THAT(refused(loaded), ElementsAre(leads_out("a", "s/.."), leads_out("b", "etc/passwd")));
  EXPECT_EQ(fs::read_symlink(host() / "etc"), "/etc");  // not the run's
}

TEST_F(PlanTest, JudgesALinkByTheFolderAsItWillBe) {
  fs::create_directories(host() / "d/e");
  put("x", "x");
  HostFolder loaded = load();
  link("l", "d/e/../../x");  // fine while d is a folder
  remove("d");
  folder("e");
  link("d", ".");
  EXPECT_THAT(refused(loaded), ElementsAre(leads_out("l", "d/e/../../x")));
  EXPECT_EQ(fs::read_symlink(host() / "d"), ".");
}

TEST_F(PlanTest, WritesALinkThatIsSafeOnlyWithTheOthersOfTheRun) {
  fs::create_directories(host() / "a/b");
  HostFolder loaded = load();
  link("d", "a/b");
  link("c", "d/../../x");
  EXPECT_THAT(refused(loaded), IsEmpty());
  EXPECT_EQ(fs::read_symlink(host() / "c"), "d/../../x");
}

TEST_F(PlanTest, RefusesToMakeAnOldLinkLeadOut) {
  fs::create_directories(host() / "d/e");
  put("d/f", "old");
  fs::create_symlink("d/e/../../x", host() / "l");
  fs::create_symlink("d/e/../../x", host() / "not UTF-8 \xFF");
  HostFolder loaded = load();
  remove("d");
  folder("e");
  link("d", ".");
  EXPECT_THAT(refused(loaded),
              ElementsAre("d -> .: with this change, the link l leads out of the folder"));
  EXPECT_EQ(get("d/f"), "old");
  EXPECT_TRUE(fs::is_directory(host() / "e"));
}

TEST_F(PlanTest, RefusesToMakeAnOldLinkThatWasNotLoadedLeadOut) {
  fs::create_directories(host() / "d/e");
  fs::create_symlink("d/e/../../x", host() / "\xFF");
  HostFolder loaded = load();
  remove("d");
  folder("e");
  link("d", ".");
  EXPECT_THAT(refused(loaded),
              ElementsAre("d -> .: with this change, the link \"\\xff\" leads out of the folder"));
}

TEST_F(PlanTest, RefusesAFolderInPlaceOfALinkIfAnOldLinkWouldLeadOut) {
  fs::create_directories(host() / "a/b");
  fs::create_symlink("a/b", host() / "d");
  fs::create_symlink("d/../../x", host() / "l");
  HostFolder loaded = load();
  remove("d");
  folder("d");
  file("d/f");
  file("other");
  EXPECT_THAT(refused(loaded),
              ElementsAre("d: with this change, the link l leads out of the folder"));
  EXPECT_EQ(fs::read_symlink(host() / "d"), "a/b");
  EXPECT_EQ(get("other"), "new");
}

TEST_F(PlanTest, RefusesAFolderInPlaceOfALinkThatLedInACircle) {
  fs::create_symlink("b", host() / "b");
  fs::create_symlink("b/../..", host() / "a");  // nowhere as long as b leads to itself
  HostFolder loaded = load();
  remove("b");
  folder("b");
  EXPECT_THAT(refused(loaded),
              ElementsAre("b: with this change, the link a leads out of the folder"));
  EXPECT_EQ(fs::read_symlink(host() / "b"), "b");
}

TEST_F(PlanTest, LeavesLinksThatLedOutBeforeAndStillDo) {
  fs::create_directory(host() / "d");
  fs::create_symlink("d/../../x", host() / "l");
  HostFolder loaded = load();
  remove("d");
  link("d", ".");
  EXPECT_THAT(refused(loaded), IsEmpty());
}

TEST_F(PlanTest, JudgesLinksOfAFolderThatMovedByTheirNewPlace) {
  fs::create_directories(host() / "a/b");
  fs::create_symlink("../../x", host() / "a/b/l");
  HostFolder loaded = load();
  move("a/b", "b");
  EXPECT_THAT(refused(loaded), ElementsAre(leads_out("b/l", "../../x")));
  EXPECT_TRUE(fs::is_directory(host() / "b"));
  EXPECT_FALSE(exists("a/b"));
  folder("c/d");
  move("b", "c/d/b");
  EXPECT_THAT(refused(loaded), IsEmpty());
  EXPECT_EQ(fs::read_symlink(host() / "c/d/b/l"), "../../x");
}

TEST_F(PlanTest, KeepsWhatALinkThatIsRefusedWouldHaveReplaced) {
  fs::create_directory(host() / "d");
  put("d/inner", "old");
  put("f", "old");
  HostFolder loaded = load();
  remove("d");
  link("d", "..");
  remove("f");
  link("f", "/etc/passwd");
  EXPECT_EQ(refused(loaded).size(), 2U);
  EXPECT_EQ(get("f"), "old");
  EXPECT_EQ(get("d/inner"), "old");
}

TEST_F(PlanTest, DoesNotReplaceReadOnlyFiles) {
  put("f", "old");
  put("g", "old");
  for (const char* name : {"f", "g"}) ASSERT_EQ(::chmod((host() / name).c_str(), 0444), 0);
  HostFolder loaded = load();
  file("f");
  file("other");
  remove("g");  // needs no permission on the file itself
  expect_nothing_written(loaded, "f is read-only");
}

TEST_F(PlanTest, FindsAllThatIsInTheWayBeforeItWritesAnything) {
  ASSERT_EQ(::mkfifo((host() / "q").c_str(), 0600), 0);
  fs::create_directories(host() / "d/e");
  ASSERT_EQ(::mkfifo((host() / "d/e/pipe").c_str(), 0600), 0);
  HostFolder loaded = load();
  file("a");
  folder("q/x");
  remove("d");
  fs::create_directory(host() / "meanwhile");
  file("meanwhile");
  expect_nothing_written(
      loaded,
      "d/e/pipe is a FIFO on the host, which was not loaded; meanwhile is a folder on the host, "
      "which was not loaded; q is a FIFO on the host, which was not loaded");
}

TEST_F(PlanTest, DoesNotOverwriteWhatSomebodyElseChanged) {
  for (const char* name : {"edited", "removed", "replaced", "untouched", "gone"}) put(name, "old");
  fs::create_directory(host() / "d");
  put("d/f", "old");
  HostFolder loaded = load();
  put("edited", "elsewhere");
  for (const char* name : {"removed", "replaced", "gone"}) fs::remove(host() / name);
  fs::create_directory(host() / "replaced");
  put("untouched", "elsewhere");
  put("d/f", "elsewhere");
  for (const char* name : {"edited", "removed", "replaced"}) file(name);
  remove("gone");  // by both: nothing to object to
  remove("d");
  expect_nothing_written(
      loaded,
      "d/f was changed on the host during the run; edited was changed on the host during the run; "
      "removed was removed on the host during the run; replaced was changed on the host during the "
      "run");
}

TEST_F(PlanTest, LoadsNothingThatAKilledWriteBackLeft) {
  put(".sandbox-workers-1-2.tmp", "half");
  HostFolder loaded = load();
  EXPECT_THAT(loaded.skipped(), ElementsAre(".sandbox-workers-1-2.tmp"));
  EXPECT_THAT(names("/workspace"), IsEmpty());
  file(".sandbox-workers-3-4.tmp");
  EXPECT_THAT(refused(loaded),
              ElementsAre(HasSubstr(".sandbox-workers-3-4.tmp: the name is reserved for")));
  EXPECT_FALSE(exists(".sandbox-workers-3-4.tmp"));
}

}  // namespace
}  // namespace sw::wasi
