// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "wasi/test_support.h"

namespace sw::wasi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Members = std::vector<std::pair<std::string, std::string>>;

/// A zip archive in memory. A name that ends with "/" is a folder.
Bytes make_zip(const Members& members) {
  zip_source_t* const source = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(source);
  zip_t* const zip = zip_open_from_source(source, ZIP_TRUNCATE, nullptr);
  for (const auto& [name, content] : members) {
    if (name.ends_with('/')) {
      EXPECT_GE(zip_dir_add(zip, name.c_str(), 0), 0);
      continue;
    }
    EXPECT_GE(zip_file_add(zip, name.c_str(),
                           zip_source_buffer(zip, content.data(), content.size(), 0), 0),
              0);
  }
  EXPECT_EQ(zip_close(zip), 0);
  EXPECT_EQ(zip_source_open(source), 0);
  zip_source_seek(source, 0, SEEK_END);
  Bytes bytes(static_cast<std::size_t>(zip_source_tell(source)));
  zip_source_seek(source, 0, SEEK_SET);
  EXPECT_EQ(zip_source_read(source, bytes.data(), bytes.size()),
            static_cast<zip_int64_t>(bytes.size()));
  zip_source_close(source);
  zip_source_free(source);
  return bytes;
}

std::string text(BytesView bytes) { return std::string(as_text(bytes)); }

class NestedArchive : public FileSystemTest {
 protected:
  /// /lib/py.zip is a file; its member data/inner.zip is the folder /lib/py.zip/data.
  void show(const Bytes& inner) {
    outer_ = SharedBytes::own(make_zip({{"mod.py", "x = 1"}, {"data/inner.zip", text(inner)}}));
    LayoutBuilder builder = standard_layout();
    ASSERT_TRUE(builder.add_file("/lib/py.zip", outer_).ok());
    ASSERT_TRUE(add_nested_archive(builder, "/lib/py.zip/data", outer_, "data/inner.zip").ok());
    layout_ = builder.build();
    use(layout_);
  }
  SharedBytes outer_;
  std::shared_ptr<const Layout> layout_;
};

TEST_F(NestedArchive, IsAFileAndAFolder) {
  show(make_zip({{"fonts/a.ttf", "font"}, {"rc", "setting"}, {"empty/", ""}, {"none", ""}}));
  EXPECT_EQ(read("/lib/py.zip"), text(outer_.bytes));
  EXPECT_EQ(files().read_file("/lib/py.zip")->bytes.data(), outer_.bytes.data());  // not copied
  EXPECT_THAT(names("/lib/py.zip/data"), ElementsAre("fonts", "rc", "empty", "none"));
  EXPECT_THAT(names("/lib/py.zip/data/empty"), ElementsAre());
  EXPECT_EQ(read("/lib/py.zip/data/fonts/a.ttf"), "font");
  EXPECT_EQ(read("/lib/py.zip/data/fonts/../rc"), "setting");
  EXPECT_EQ(read("/lib/py.zip/data/none"), "");
  EXPECT_EQ(files().stat("/lib/py.zip/data/rc")->size, 7U);
  EXPECT_EQ(read("/lib/py.zip/data/missing"), "ENOENT");
  EXPECT_EQ(read("/lib/py.zip/mod.py"), "ENOENT");
  EXPECT_EQ(*files().real_path("/lib/py.zip/data/fonts/a.ttf"), "/lib/py.zip/data/fonts/a.ttf");
}

TEST_F(NestedArchive, IsReadOnly) {
  show(make_zip({{"rc", "setting"}}));
  EXPECT_EQ(write("/lib/py.zip", "x"), Errno::kRofs);
  EXPECT_EQ(write("/lib/py.zip/data/rc", "x"), Errno::kRofs);
  EXPECT_EQ(write("/lib/py.zip/data/new", "x"), Errno::kRofs);
  EXPECT_EQ(files().remove("/lib/py.zip/data/rc"), Errno::kRofs);
  EXPECT_EQ(files().rename("/lib/py.zip/data/rc", "/lib/py.zip/data/r"), Errno::kRofs);
}

TEST_F(NestedArchive, GivesTheSameInodesWhateverIsLookedAtFirst) {
  const Bytes inner = make_zip({{"a", "1"}, {"d/b", "2"}});
  show(inner);
  const std::uint64_t b = files().stat("/lib/py.zip/data/d/b")->inode;
  const std::uint64_t a = files().stat("/lib/py.zip/data/a")->inode;
  show(inner);
  EXPECT_EQ(files().stat("/lib/py.zip/data/a")->inode, a);
  EXPECT_EQ(files().stat("/lib/py.zip/data/d/b")->inode, b);
  EXPECT_NE(a, b);
}

TEST_F(NestedArchive, IsSharedByThreads) {
  Members members;
  for (int i = 0; i < 50; ++i)
    members.emplace_back("f" + std::to_string(i), std::string(2000, 'x') + std::to_string(i));
  show(make_zip(members));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      FileSystem mine(layout_, clocks_);
      for (const auto& [name, content] : members) {
        const auto bytes = mine.read_file("/lib/py.zip/data/" + name);
        if (!bytes.ok() || text(bytes->bytes) != content) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST_F(NestedArchive, AnswersIoErrorsWhenTheInnerArchiveIsDamaged) {
  show(Bytes(100, std::byte{7}));
  EXPECT_THAT(names("/lib/py.zip/data"), ElementsAre("EIO"));
  EXPECT_EQ(read("/lib/py.zip/data/x"), "EIO");
  EXPECT_EQ(read("/lib/py.zip").size(), outer_.bytes.size());
}

TEST_F(NestedArchive, AnswersIoErrorsWhenAMemberIsDamaged) {
  Bytes inner = make_zip({{"stored", "abcdefgh"}, {"other", "fine"}});
  const std::string content =
      "abcdefgh";  // too short to deflate, so it lies in the archive as it is
  const auto at =
      std::search(inner.begin(), inner.end(), as_bytes(content).begin(), as_bytes(content).end());
  ASSERT_NE(at, inner.end());
  *at = std::byte{'X'};
  show(inner);
  EXPECT_EQ(read("/lib/py.zip/data/stored"), "EIO");
  EXPECT_EQ(read("/lib/py.zip/data/other"), "fine");
}

TEST_F(NestedArchive, RefusesMembersThatAreNoPlainPaths) {
  for (const char* name : {"../up", "/absolute", "a/../b", "a//b", "./a"}) {
    show(make_zip({{name, "x"}}));
    EXPECT_THAT(names("/lib/py.zip/data"), ElementsAre("EIO")) << name;
  }
  show(make_zip({{"a", "x"}, {"a/b", "y"}}));
  EXPECT_THAT(names("/lib/py.zip/data"), ElementsAre("EIO"));
}

TEST(Archive, ReadsMembersByName) {
  const std::string big(100'000, 'z');
  const auto archive =
      Archive::open(SharedBytes::own(make_zip({{"a", "1"}, {"d/big", big}}))).value();
  EXPECT_EQ(text(archive->read("d/big").value()), big);
  EXPECT_EQ(archive->read("missing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(archive->members().size(), 2U);
}

TEST(Archive, RefusesWhatIsNoArchive) {
  const auto opened = Archive::open(SharedBytes::own(Bytes(10)));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(opened.error().message, HasSubstr("not a zip archive"));
  EXPECT_FALSE(Archive::open(SharedBytes::own({})).ok());
}

TEST(Archive, SurvivesAnyDamagedByte) {
  const Bytes good = make_zip({{"a", "1234567890"}, {"d/b", std::string(500, 'q')}});
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{0x41};
    const auto archive = Archive::open(SharedBytes::own(std::move(bad)));
    if (!archive.ok()) continue;
    Directory directory;
    const auto filled = (*archive)->fill(directory, nullptr, 1);
    for (const Archive::Member& member : (*archive)->members()) {
      const auto content = (*archive)->read(member);
      if (content.ok()) {
        EXPECT_EQ(content->size(), member.size);
      }
    }
  }
}

TEST(MapFile, ShowsTheFilesBytes) {
  const auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-map-").value();
  ASSERT_TRUE(write_file_atomically(folder.path() / "f", as_bytes("content")).ok());
  ASSERT_TRUE(write_file_atomically(folder.path() / "empty", {}).ok());
  EXPECT_EQ(text(map_file(folder.path() / "f")->bytes), "content");
  EXPECT_TRUE(map_file(folder.path() / "empty")->bytes.empty());
  EXPECT_FALSE(map_file(folder.path() / "none").ok());
  EXPECT_FALSE(map_file(folder.path()).ok());
}

}  // namespace
}  // namespace sw::wasi
