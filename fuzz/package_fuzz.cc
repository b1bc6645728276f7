// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Archives that registries hand out, of which the files that a manifest names are taken. Whoever
// makes a package makes the sums in it right.

#include <algorithm>

#include "bake/packages.h"
#include "fuzz/fuzz.h"
#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/wasi/archive.h"

namespace sw::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 512;
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSizeDigits = 11;
constexpr std::size_t kSumAt = 148;
constexpr std::size_t kSumBytes = 8;
constexpr char kFile[] = "a";
constexpr char kLibrary[] = "lib.zip";

/// Of the headers of a tar archive.
void make_sums_right(Bytes& tar) {
  for (std::size_t at = 0; at + kBlock <= tar.size();) {
    const std::span<std::byte> header = std::span(tar).subspan(at, kBlock);
    if (header.front() == std::byte{0}) return;
    const std::span<std::byte> field = header.subspan(kSumAt, kSumBytes);
    std::ranges::fill(field, std::byte{' '});
    unsigned sum = 0;
    for (const std::byte byte : header) sum += std::to_integer<unsigned>(byte);
    char digits[kSumBytes];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::ranges::copy(std::as_bytes(std::span(digits)), field.begin());
    const std::string size(as_text(header.subspan(kSizeAt, kSizeDigits)));
    const std::size_t bytes = std::strtoul(size.c_str(), nullptr, 8);
    at += kBlock + std::min(tar.size(), (bytes + kBlock - 1) / kBlock * kBlock);
  }
}

bake::Package any_package(Choices& choices) {
  bake::Package package;
  package.name = "fuzz";
  if (choices.coin()) {
    package.archive = kLibrary;
    package.members = {choices.coin() ? "*" : "package/l*"};
  }
  if (choices.coin() || package.archive.empty()) {
    package.files = {
        {.member = "package/a", .name = kFile, .sha256 = sha256_hex(as_bytes("content\n"))}};
  }
  return package;
}

void check_library(const fs::path& file) {
  const auto bytes = read_file(file);
  require(bytes.ok(), "there is an archive");
  const auto archive = wasi::Archive::open(wasi::SharedBytes::own(copy_of(*bytes)));
  require(archive.ok(), "what is packed can be opened",
          archive.ok() ? "" : archive.error().message);
  require(!(*archive)->members().empty(), "there is something in it");
  for (const wasi::Archive::Member& member : (*archive)->members()) {
    const auto read = (*archive)->read(member);
    require(read.ok() && read->size() == member.size, "what is packed can be read");
  }
}

}  // namespace

SW_FUZZ(package) {
  Choices choices(input);
  const bake::Package package = any_package(choices);
  const bool is_tar = choices.coin();
  Bytes bytes = copy_of(choices.rest());
  if (is_tar) make_sums_right(bytes);
  const auto parent = TemporaryDirectory::create(memory_folder(), "sw-fuzz-").value();
  const fs::path folder = parent.path() / "folder";
  require(fs::create_directory(folder) && write_file_atomically(parent.path() / "file", bytes).ok(),
          "there is a package");
  const auto done = bake::unpack_package(package, parent.path() / "file", folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    require(entry.is_regular_file() && !entry.is_symlink() && (name == kFile || name == kLibrary),
            "only what is wanted is made", name);
  }
  for (const auto& entry : fs::directory_iterator(parent.path())) {
    const std::string name = entry.path().filename();
    require(name == "file" || name == "folder", "nothing is made elsewhere", name);
  }
  if (!done.ok()) {
    note(done.error().message);
    require(done.error().code == ErrorCode::kCorrupt, "damage is told", done.error().message);
    return;
  }
  if (!package.files.empty())
    require(sha256_file(folder / kFile).value() == package.files.front().sha256,
            "a file has its digest");
  if (!package.archive.empty()) check_library(folder / kLibrary);
}

}  // namespace sw::fuzz
