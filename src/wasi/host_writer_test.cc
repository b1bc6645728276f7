// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "wasi/host_test_support.h"
#include "wasi/tree_state.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

/// Somebody changes the folder after the plan was made, and before it is carried out.
class HostWriterTest : public WriteBackFixture {
 protected:
  void SetUp() override {
    put("f", "old");
    fs::create_directories(host() / "d/e");
    put("d/f", "old");
    folder_ = UniqueFd(::open(host().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    loaded_.emplace(load());
    before_ = TreeState::of(*loaded_->tree());
  }

  /// What is wrong with carrying out what the tree holds now, after `meanwhile`. The folder stays
  /// as that left it.
  std::string carry_out(const std::function<void()>& meanwhile) {
    const HostEntries entries = scan_host_folder(folder_.get()).value();
    const HostPlan plan =
        plan_write_back(before_, TreeState::of(*loaded_->tree()), entries, entries).value();
    EXPECT_THAT(plan.conflicts, IsEmpty());
    meanwhile();
    const auto with_change = listing(host());
    HostWriter writer(folder_.get(), plan, entries);
    const auto done = writer.run();
    EXPECT_THAT(writer.left(), IsEmpty());
    if (done.ok()) return "";
    EXPECT_EQ(listing(host()), with_change);
    return done.error().message;
  }

  UniqueFd folder_;
  std::optional<HostFolder> loaded_;
  TreeState before_;
};

TEST_F(HostWriterTest, CarriesOutAPlan) {
  file("f");
  EXPECT_EQ(carry_out([] {}), "");
  EXPECT_EQ(get("f"), "new");
}

TEST_F(HostWriterTest, PutsBackAFileThatWasChangedMeanwhile) {
  file("f");
  file("another");
  EXPECT_EQ(carry_out([this] { put("f", "elsewhere"); }),
            "f was changed on the host during the run");
  EXPECT_EQ(get("f"), "elsewhere");
}

TEST_F(HostWriterTest, PutsBackAFileThatWasToGoAndWasReplacedMeanwhile) {
  remove("f");
  EXPECT_EQ(carry_out([this] {
              fs::remove(host() / "f");
              fs::create_directory(host() / "f");
            }),
            "f was changed on the host during the run");
}

TEST_F(HostWriterTest, PutsBackAFolderIntoWhichSomethingWasPutMeanwhile) {
  remove("d");
  EXPECT_EQ(carry_out([this] { put("d/e/late", "elsewhere"); }),
            "d/e/late was changed on the host during the run");
}

TEST_F(HostWriterTest, ReplacesNothingThatCameMeanwhile) {
  file("new");
  folder("newer/folder");
  link("link", "f");
  for (const char* name : {"new", "newer", "link"}) {
    const std::string reason = carry_out([&] { put(name, "elsewhere"); });
    EXPECT_EQ(reason, std::string(name) + " was changed on the host during the run");
    fs::remove(host() / name);
  }
}

TEST_F(HostWriterTest, TakesBackALinkThatLeadsOutByAChangeMeanwhile) {
  link("l", "d/e/../../f");
  file("f");
  EXPECT_EQ(carry_out([this] {
              fs::rename(host() / "d/e", host() / "e");
              fs::remove_all(host() / "d");
              fs::create_directory_symlink(".", host() / "d");
            }),
            "l leads out of the folder because something was changed on the host during the run");
  EXPECT_EQ(get("f"), "old");
}

}  // namespace
}  // namespace sw::wasi
