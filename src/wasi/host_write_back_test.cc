// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What write-back promises: nothing leads out, nothing of the host's is lost, and all or nothing is
// written.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "wasi/host_test_support.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using WriteBackTest = WriteBackFixture;

TEST_F(WriteBackTest, KeepsPermissionsAndOwnerButNoSpecialBits) {
  put("f", "old");
  const bool root = ::geteuid() == 0;
  ASSERT_EQ(::chown((host() / "f").c_str(), root ? 12345 : ::getuid(), root ? 54321 : ::getgid()),
            0);
  ASSERT_EQ(::chmod((host() / "f").c_str(), 07751), 0);
  ASSERT_EQ(::chmod(host().c_str(), 02755), 0);
  const struct stat before = status("f");
  HostFolder loaded = load();
  file("f");
  EXPECT_THAT(refused(loaded), IsEmpty());
  const struct stat after = status("f");
  EXPECT_EQ(get("f"), "new");
  EXPECT_EQ(after.st_mode & 07777, 0751U);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_gid, before.st_gid);
  EXPECT_EQ(status("").st_mode & 07777, 02755U);
}

TEST_F(WriteBackTest, KeepsUserAttributes) {
  put("f", "old");
  if (::setxattr((host() / "f").c_str(), "user.origin", "here", 4, 0) != 0)
    GTEST_SKIP() << "no attributes here";
  HostFolder loaded = load();
  file("f");
  EXPECT_THAT(refused(loaded), IsEmpty());
  char value[10] = {};
  EXPECT_EQ(::getxattr((host() / "f").c_str(), "user.origin", value, sizeof value), 4);
}

TEST_F(WriteBackTest, LeavesOtherNamesOfAFileAlone) {
  put("f", "old");
  fs::create_hard_link(host() / "f", host() / "g");
  fs::create_hard_link(host() / "f", parent_.path() / "outside");
  HostFolder loaded = load();
  file("f");
  EXPECT_THAT(refused(loaded), IsEmpty());
  EXPECT_EQ(get("f"), "new");
  EXPECT_EQ(get("g"), "old");
  EXPECT_EQ(read_text_file(parent_.path() / "outside").value(), "old");
}

TEST_F(WriteBackTest, WritesNothingWhenTheDiskIsFull) {
  put("a", "old");
  HostFolder loaded = load();
  file("a");
  folder("d/e");
  EXPECT_EQ(write("/workspace/d/e/large", std::string(100'000, 'x')), Errno::kSuccess);
  const auto before = listing(host());
  EXPECT_EQ(in_child([&]() -> std::string {
              // As far as a write goes, a limit of a file's size is a full disk.
              const rlimit limit{.rlim_cur = 50'000, .rlim_max = 50'000};
              std::signal(SIGXFSZ, SIG_IGN);
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "setrlimit";
              const auto done = loaded.write_back();
              return done.ok() ? "it was written" : done.error().message;
            }),
            "write d/e/large: File too large");
  EXPECT_EQ(listing(host()), before);
}

TEST_F(WriteBackTest, ItsFilesAreNamedOnlyWhenItWasKilled) {
  const pid_t writer = ::fork();
  if (writer == 0) {
    // Stops within the first write that passes the limit.
    const rlimit limit{.rlim_cur = 50'000, .rlim_max = 50'000};
    std::signal(SIGXFSZ, [](int) { std::raise(SIGSTOP); });
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    HostFolder loaded = load();
    if (write("/workspace/large", std::string(100'000, 'x')) == Errno::kSuccess)
      (void)loaded.write_back();
    ::_exit(0);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(writer, &ended, WUNTRACED), writer);
  ASSERT_TRUE(WIFSTOPPED(ended));
  const auto left = listing(host());
  EXPECT_THAT(left, SizeIs(1));
  EXPECT_THAT(load().skipped(), IsEmpty());
  ASSERT_EQ(::kill(writer, SIGKILL), 0);
  ASSERT_EQ(::waitpid(writer, &ended, 0), writer);
  EXPECT_EQ(listing(host()), left);
  EXPECT_THAT(load().skipped(), ElementsAre(left.begin()->first));
}

TEST_F(WriteBackTest, UndoesWhatItDidBeforeAStepFails) {
  put("a", "old");
  put("z", "old");
  fs::create_directory(host() / "t");
  put("t/theirs", "old");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of others";
  ASSERT_EQ(::chmod((host() / "t").c_str(), 01777), 0);  // who removes a file there must own it
  ASSERT_EQ(::chmod((host() / "t/theirs").c_str(), 0644), 0);
  for (const fs::path& mine : {parent_.path(), host(), host() / "a", host() / "z"}) {
    ASSERT_EQ(::chown(mine.c_str(), 65534, 65534), 0);
  }
  const auto before = listing(host());
  for (const bool flags : {true, false}) {
    EXPECT_EQ(in_child([&]() -> std::string {
                if (!become_ordinary_user()) return "setresuid";
                if (!flags && !forbid_call(SYS_renameat2, EINVAL)) return "seccomp";
                HostFolder loaded = load();
                remove("a");
                remove("t/theirs");
                folder("new/folder");
                file("z");
                const auto done = loaded.write_back();
                return done.ok() ? "it was written" : done.error().message;
              }),
              "write t/theirs: Operation not permitted");
    EXPECT_EQ(listing(host()), before);
  }
}

TEST_F(WriteBackTest, DoesWithoutTheNewerSystemCalls) {
  for (const int error : {ENOSYS, EPERM}) {
    fs::remove_all(host());
    fs::create_directories(host() / "d/e");
    put("d/e/f", "old");
    put("becomes_folder", "old");
    fs::create_symlink("d", host() / "becomes_file");
    EXPECT_EQ(in_child([&]() -> std::string {
                if (!forbid_call(SYS_openat2, error) || !forbid_call(SYS_renameat2, EINVAL))
                  return "seccomp";
                HostFolder loaded = load();
                remove("becomes_folder");
                folder("becomes_folder/x");
                file("becomes_folder/x/f");
                remove("becomes_file");
                file("becomes_file");
                file("d/e/f");
                link("l", "d/e/f");
                link("out", "d/../..");
                const auto done = loaded.write_back();
                return done.ok() ? fmt::format("{}", fmt::join(done->refused, ","))
                                 : done.error().message;
              }),
              leads_out("out", "d/../.."));
    EXPECT_EQ(get("becomes_folder/x/f"), "new");
    EXPECT_EQ(get("becomes_file"), "new");
    EXPECT_EQ(get("l"), "new");
    EXPECT_EQ(std::distance(fs::directory_iterator(host()), {}), 4);
  }
}

TEST_F(WriteBackTest, WithoutTheNewerSystemCallsItFollowsNoLinkEither) {
  fs::create_directory(parent_.path() / "outside");
  fs::create_directory(host() / "d");
  HostFolder loaded = load();
  file("d/f");
  fs::remove(host() / "d");
  fs::create_directory_symlink(parent_.path() / "outside", host() / "d");
  EXPECT_EQ(in_child([&]() -> std::string {
              if (!forbid_call(SYS_openat2, ENOSYS)) return "seccomp";
              const UniqueFd folder(::open(host().c_str(), O_PATH | O_DIRECTORY));
              if (open_beneath(folder.get(), "d/f", O_WRONLY | O_CREAT, 0600))
                return "it followed the link";
              const auto done = loaded.write_back();
              return done.ok() ? "it was written" : done.error().message;
            }),
            "d/f no longer has its folder on the host");
  EXPECT_TRUE(fs::is_empty(parent_.path() / "outside"));
}

TEST_F(WriteBackTest, RemovesFoldersThatAnOverlayDoesNotRename) {
  for (const char* name : {"lower", "upper", "work"}) fs::create_directory(parent_.path() / name);
  fs::create_directories(parent_.path() / "lower/d/e");
  std::ofstream(parent_.path() / "lower/d/e/f") << "old";
  std::ofstream(parent_.path() / "lower/f") << "old";
  const auto at = [this](const char* name) { return (parent_.path() / name).native(); };
  const std::string options = fmt::format("lowerdir={},upperdir={},workdir={},redirect_dir=off",
                                          at("lower"), at("upper"), at("work"));
  const std::string wrong = in_child([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("overlay", host().c_str(), "overlay", 0, options.c_str()) != 0) {
      return "no overlay";
    }
    HostFolder loaded = load();
    remove("d");
    file("f");
    folder("new");
    const auto done = loaded.write_back();
    if (!done.ok()) return done.error().message;
    return exists("d") || get("f") != "new" || !exists("new") ? "not written" : "";
  });
  if (wrong == "no overlay") GTEST_SKIP() << "cannot mount an overlay";
  EXPECT_EQ(wrong, "");
}

TEST_F(WriteBackTest, AnOrdinaryUserLosesNothingEither) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  ASSERT_EQ(::chmod(parent_.path().c_str(), 0755), 0);
  fs::create_directories(host() / "closed");
  fs::create_directories(host() / "fixed/inner");
  put("closed/x", "old");
  put("fixed/inner/f", "old");
  put("secret", "old");
  put("theirs", "old");
  put("mine", "old");
  for (const char* mine : {"", "fixed", "fixed/inner", "fixed/inner/f", "mine"}) {
    ASSERT_EQ(::chown((host() / mine).c_str(), 65534, 65534), 0);
  }
  ASSERT_EQ(::chmod((host() / "closed").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((host() / "secret").c_str(), 0), 0);
  ASSERT_EQ(::chmod((host() / "theirs").c_str(), 0666), 0);
  ASSERT_EQ(::chmod((host() / "fixed/inner").c_str(), 0555), 0);
  const auto before = listing(host());
  const auto write_back = [&](const std::function<void()>& change) {
    return in_child([&]() -> std::string {
      if (!become_ordinary_user()) return "setresuid";
      HostFolder loaded = load();
      if (loaded.skipped() != std::vector<std::string>{"closed", "secret"})
        return "loaded too much";
      file("new");
      change();
      const auto done = loaded.write_back();
      return done.ok() ? fmt::format("{}", fmt::join(done->refused, ",")) : done.error().message;
    });
  };
  EXPECT_EQ(write_back([&] { file("theirs"); }),
            "keep the owner 0 and group 0 of theirs: Operation not permitted");
  EXPECT_EQ(write_back([&] { remove("fixed"); }), "replace or remove fixed: Permission denied");
  EXPECT_EQ(write_back([&] { file("fixed/inner/g"); }), "write fixed/inner/g: Permission denied");
  EXPECT_EQ(write_back([&] { file("secret"); }),
            "secret is a file on the host, which was not loaded");
  EXPECT_EQ(listing(host()), before);
  EXPECT_EQ(write_back([&] {
              file("mine");
              link("l", "closed/x/..");
            }),
            "l -> closed/x/..: leads through a folder that cannot be read");
  EXPECT_EQ(get("mine"), "new");
  EXPECT_EQ(status("mine").st_uid, 65534U);
}

TEST_F(WriteBackTest, PathsMayBeLongerThanTheKernelTakesAtOnce) {
  HostFolder loaded = load();
  Node* at = &loaded.tree()->root();
  for (int i = 0; i < 30; ++i) {
    at = loaded.tree()->create(*at, std::string(200, 'd'), FileType::kDirectory, 1).value().get();
  }
  const auto made = loaded.tree()->create(*at, "f", FileType::kRegularFile, 1).value();
  ASSERT_EQ(loaded.tree()->set_content(*made, SharedBytes::own(Bytes(3)), 1), Errno::kSuccess);
  EXPECT_THAT(refused(loaded), IsEmpty());
  HostFolder again = load();
  EXPECT_EQ(again.tree()->usage().entries, 31U);
  EXPECT_EQ(again.tree()->usage().bytes, 3U);
  const std::string name(200, 'd');
  ASSERT_EQ(again.tree()->remove_all(again.tree()->root(), name, 1), Errno::kSuccess);
  EXPECT_THAT(refused(again), IsEmpty());
  EXPECT_TRUE(fs::is_empty(host()));
}

TEST_F(WriteBackTest, SaysWhichLimitAFolderPasses) {
  put("sparse", "");
  fs::resize_file(host() / "sparse", std::uint64_t{1} << 40);
  EXPECT_EQ(HostFolder::load(host(), {}, 1).error().message,
            "sparse has more than 268435456 bytes");
  fs::remove(host() / "sparse");
  fs::create_directories(host() / "a/b/c/d");
  EXPECT_EQ(HostFolder::load(host(), {.depth_max = 3}, 1).error().message,
            "a/b/c/d is nested more than 3 folders deep");
}

TEST_F(WriteBackTest, ReadsAProgramOnlyFromAFileInTheFolder) {
  const auto message = [this](const std::string& name, std::size_t bytes_max = 100) {
    const auto text = read_file_beneath(host(), name, bytes_max);
    return text.ok() ? *text : text.error().message.substr(host().native().size() + 1);
  };
  put("real", "text");
  ASSERT_EQ(::mkfifo((host() / "fifo").c_str(), 0600), 0);
  fs::create_symlink("real", host() / "inside");
  fs::create_symlink("fifo", host() / "to_fifo");
  fs::create_symlink("/etc/passwd", host() / "outside");
  fs::create_symlink("../folder/real", host() / "out_and_in");
  EXPECT_EQ(message("real"), "text");
  EXPECT_EQ(message("inside"), "text");
  EXPECT_EQ(message("fifo"), "fifo is a FIFO, not a file");
  EXPECT_EQ(message("to_fifo"), "to_fifo is a FIFO, not a file");
  EXPECT_EQ(message("outside"), "outside is a link that leads out of its folder");
  EXPECT_EQ(message("out_and_in"), "out_and_in is a link that leads out of its folder");
  EXPECT_EQ(message("real", 3), "real is too large: the limit is 3 bytes");
}

}  // namespace
}  // namespace sw::wasi
