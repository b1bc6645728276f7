// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/create_wasi.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <memory>
#include <string>

#include "wasi/descriptors.h"
#include "wasi/test_support.h"

namespace sw::wasi {
namespace {

/// An archive with one file.
SharedBytes make_archive(const std::string& name, const std::string& content) {
  zip_source_t* const source = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(source);
  zip_t* const zip = zip_open_from_source(source, ZIP_TRUNCATE, nullptr);
  zip_file_add(zip, name.c_str(), zip_source_buffer(zip, content.data(), content.size(), 0), 0);
  EXPECT_EQ(zip_close(zip), 0);
  EXPECT_EQ(zip_source_open(source), 0);
  zip_source_seek(source, 0, SEEK_END);
  Bytes bytes(static_cast<std::size_t>(zip_source_tell(source)));
  zip_source_seek(source, 0, SEEK_SET);
  EXPECT_EQ(zip_source_read(source, bytes.data(), bytes.size()),
            static_cast<zip_int64_t>(bytes.size()));
  zip_source_close(source);
  zip_source_free(source);
  return SharedBytes::own(std::move(bytes));
}

std::string read(Wasi& wasi, std::string_view path) {
  const auto bytes = wasi.files().read_file(path);
  return bytes.ok() ? std::string(as_text(bytes->bytes)) : std::string(errno_name(bytes.error()));
}

/// A second descriptor for the first preopen: what a guest's open does to the table.
std::uint32_t open_one(Wasi& wasi) { return *wasi.descriptors().duplicate(3); }

TEST(CreateWasi, HasTheUsualFoldersAndTheArchive) {
  const FixedClocks clocks;
  auto wasi = create_wasi({.archive = make_archive("lib/init.scm", "(boot)")}, clocks);
  ASSERT_TRUE(wasi.ok()) << wasi.error().message;
  EXPECT_EQ(read(**wasi, "/stdlib/lib/init.scm"), "(boot)");
  EXPECT_TRUE((*wasi)->files().exists("/dev/null"));
  EXPECT_EQ((*wasi)->files().write_file("/workspace/a", as_bytes("1")), Errno::kSuccess);
  EXPECT_EQ((*wasi)->files().write_file("/stdlib/a", as_bytes("1")), Errno::kRofs);
}

TEST(CreateWasi, SaysThatTheArchiveIsNone) {
  const FixedClocks clocks;
  const auto wasi = create_wasi({.archive = SharedBytes::own(Bytes(100))}, clocks);
  ASSERT_FALSE(wasi.ok());
  EXPECT_EQ(wasi.error().code, ErrorCode::kCorrupt);
}

TEST(CreateWasi, AWorkspaceCanBeDisabledWhileItIsInUse) {
  const FixedClocks clocks;
  const auto tree = std::make_shared<Tree>(TreeLimits{}, 0);
  auto wasi = create_wasi({.run = {.workspace = tree}}, clocks).value();
  EXPECT_EQ(wasi->files().write_file("/workspace/a", as_bytes("1")), Errno::kSuccess);
  tree->set_disabled(true);
  EXPECT_EQ(read(*wasi, "/workspace/a"), "EACCES");
  tree->set_disabled(false);
  EXPECT_EQ(read(*wasi, "/workspace/a"), "1");
}

TEST(HasOpenGuestFds, IsTrueWhileTheGuestHasSomethingOpen) {
  const FixedClocks clocks;
  auto wasi =
      create_wasi({.wasi = {.preopens = {{"/stdlib", "/dev"}, {"/workspace", "/workspace"}}}},
                  clocks)
          .value();
  EXPECT_FALSE(has_open_guest_fds(*wasi));
  const std::uint32_t opened = open_one(*wasi);
  EXPECT_TRUE(has_open_guest_fds(*wasi));
  EXPECT_EQ(wasi->descriptors().close(opened), Errno::kSuccess);
  EXPECT_FALSE(has_open_guest_fds(*wasi));
}

TEST(HasOpenGuestFds, IsNotMisledByAClosedStream) {
  const FixedClocks clocks;
  auto wasi = create_wasi({}, clocks).value();
  EXPECT_EQ(wasi->descriptors().close(0), Errno::kSuccess);
  EXPECT_FALSE(has_open_guest_fds(*wasi));
  // The lowest free number is the closed stream's: an open file that looks like standard input.
  open_one(*wasi);
  EXPECT_TRUE(has_open_guest_fds(*wasi));
}

}  // namespace
}  // namespace sw::wasi
