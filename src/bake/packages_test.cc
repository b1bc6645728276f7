// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "bake/packages.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/sha256.h"

namespace sw::bake {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Files = std::vector<std::pair<std::string, std::string>>;

void write_tar(const fs::path& path, const Files& files) {
  const std::unique_ptr<archive, decltype(&archive_write_free)> to(archive_write_new(),
                                                                   &archive_write_free);
  archive_write_set_format_ustar(to.get());
  ASSERT_EQ(archive_write_open_filename(to.get(), path.c_str()), ARCHIVE_OK);
  for (const auto& [name, content] : files) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              &archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    ASSERT_EQ(archive_write_header(to.get(), entry.get()), ARCHIVE_OK);
    ASSERT_EQ(archive_write_data(to.get(), content.data(), content.size()),
              static_cast<la_ssize_t>(content.size()));
  }
}

std::vector<std::string> names_in(const fs::path& path) {
  const std::unique_ptr<archive, decltype(&archive_read_free)> from(archive_read_new(),
                                                                    &archive_read_free);
  archive_read_support_format_zip(from.get());
  EXPECT_EQ(archive_read_open_filename(from.get(), path.c_str(), 4096), ARCHIVE_OK);
  std::vector<std::string> names;
  for (archive_entry* entry = nullptr;
       archive_read_next_header(from.get(), &entry) == ARCHIVE_OK;) {
    names.emplace_back(archive_entry_pathname(entry));
  }
  return names;
}

struct PackageTest : ::testing::Test {
  PackageTest() {
    fs::create_directory(folder);
    write_tar(file, {{"package/toy.wasm", "code"}, {"package/lib/a.js", "1"}, {"../evil", "x"}});
  }
  TemporaryDirectory parent =
      TemporaryDirectory::create(fs::temp_directory_path(), "sw-package-").value();
  fs::path file = parent.path() / "toy.tgz";
  fs::path folder = parent.path() / "folder";
  Package package{.registry = "npm",
                  .name = "toy",
                  .version = "1",
                  .file = "toy.tgz",
                  .sha256 = {},
                  .files = {{.member = "package/toy.wasm",
                             .name = "module",
                             .sha256 = sha256_hex(as_bytes("code"))}},
                  .build_files = {},
                  .archive = {},
                  .members = {}};
};

TEST_F(PackageTest, OnlyTheFilesThatTheManifestNamesAreTaken) {
  ASSERT_TRUE(unpack_package(package, file, folder).ok());
  EXPECT_EQ(read_text_file(folder / "module").value(), "code");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(PackageTest, AFileWithAnotherDigestIsNotUsed) {
  package.files[0].sha256 = sha256_hex(as_bytes("other"));
  const auto done = unpack_package(package, file, folder);
  EXPECT_EQ(done.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(done.error().message, HasSubstr("sha256 mismatch"));
}

TEST_F(PackageTest, AFileThatIsNotInThePackageIsNamed) {
  package.files.push_back({.member = "package/more", .name = "more", .sha256 = "00"});
  EXPECT_THAT(unpack_package(package, file, folder).error().message,
              HasSubstr("toy 1 does not contain package/more"));
}

TEST_F(PackageTest, ManySmallFilesAreKeptInOneArchive) {
  package.files.clear();
  package.archive = "lib.zip";
  package.members = {"package/lib/*"};
  ASSERT_TRUE(unpack_package(package, file, folder).ok());
  EXPECT_THAT(names_in(folder / "lib.zip"), ElementsAre("lib/a.js"));
  package.archive = "none.zip";
  package.members = {"package/none/*"};
  EXPECT_EQ(unpack_package(package, file, folder).error().code, ErrorCode::kCorrupt);
}

TEST_F(PackageTest, ABuildFromSourceLeavesItsFilesAndSaysHowFarItIs) {
  package.registry = "source";
  package.file = "toy/build.py";
  package.build_files = {{"toy/build.py",
                          "import os, sys\n"
                          "print('progress 7 building the toy', flush=True)\n"
                          "os.mkdir(sys.argv[1])\n"
                          "open(sys.argv[1] + '/module', 'w').write('built')\n"}};
  std::vector<std::string> steps;
  const auto done = fetch_package(package, folder, [&](std::string_view step, auto expected) {
    steps.emplace_back(std::string(step) + " " + std::to_string(expected.count()));
  });
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(read_text_file(folder / "module").value(), "built");
  EXPECT_THAT(steps, ElementsAre("building the toy 7"));
}

TEST_F(PackageTest, ABuildThatFailsShowsWhatItSaid) {
  package.registry = "source";
  package.file = "build.py";
  package.build_files = {{"build.py", "raise SystemExit('no compiler')\n"}};
  const auto done = fetch_package(package, folder, no_progress);
  EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(done.error().message, HasSubstr("no compiler"));
}

TEST_F(PackageTest, AnUnknownRegistryIsRefused) {
  package.registry = "cpan";
  EXPECT_EQ(fetch_package(package, folder, no_progress).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sw::bake
