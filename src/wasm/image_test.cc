// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/image.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "sandbox_workers/base/files.h"

namespace sw::wasm {
namespace {

namespace fs = std::filesystem;

TEST(Image, PreservesContentAndLeavesHoles) {
  Bytes memory(16 * kWasmPageBytes);
  memory[5 * kPageBytes + 3] = std::byte{7};
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-image-").value();
  ASSERT_TRUE(Image::write(folder.path() / "image", memory).ok());
  const auto image = Image::open(folder.path() / "image").value();
  EXPECT_TRUE(std::ranges::equal(image->bytes(), memory));
  struct stat info = {};
  ASSERT_EQ(::fstat(image->fd(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 64 * 1024);
}

TEST(Image, RefusesASizeNoMemoryHas) {
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-image-").value();
  ASSERT_TRUE(write_file_atomically(folder.path() / "image", as_bytes("short")).ok());
  EXPECT_EQ(Image::open(folder.path() / "image").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace sw::wasm
