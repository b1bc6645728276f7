// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A guest that calls anything with anything. Nothing may crash, hang or be miscounted.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "wasi/guest_support.h"
#include "wasi/tree_check.h"

namespace sw::wasi {
namespace {

constexpr int kCalls = 20'000;

class RandomCalls : public GuestTest {
 protected:
  RandomCalls() : seed_(std::random_device()()), random_(seed_) {
    cancellation_ = Cancellation::create().value();
    auto workspace = std::make_shared<Tree>(kLimits, 1);
    start({.workspace = std::move(workspace),
           .cancellation = cancellation_.get(),
           .limits = {.open_files_max = 20, .output_bytes_max = 1000}},
          {.tmp_limits = kLimits});
  }

  std::uint64_t pick(std::uint64_t count) {
    return std::uniform_int_distribution<std::uint64_t>(0, count - 1)(random_);
  }

  /// Mostly what makes sense somewhere: descriptors, small flags, addresses of paths and buffers,
  /// lengths of names.
  std::uint64_t argument() {
    switch (pick(8)) {
      case 0: return pick(24);
      case 1: return 3;
      case 2: return kPath + 16 * pick(16);
      case 3: return kIovs + 8 * pick(4);
      case 4: return kBuffer + pick(100);
      case 5: return 1 + pick(14);
      case 6: return kGuestMemoryBytes - pick(70);
      default: return random_() << pick(64);
    }
  }

  void put_paths() {
    static constexpr const char* kPaths[] = {
        "workspace/a", "workspace/b/", "tmp/x",  ".",
        "..",          "dev/null",     "a",      "b",
        "/",           "workspace",    "a/../b", "workspace/a/c",
        "tmp/x/../y",  "dev/zero",     "c",      ""};
    for (std::uint32_t i = 0; i < std::size(kPaths); ++i) put(kPath + 16 * i, kPaths[i]);
    for (std::uint32_t i = 0; i < 4; ++i) {
      store(kIovs + 8 * i, kBuffer + static_cast<std::uint32_t>(pick(1000)));
      store(kIovs + 8 * i + 4, static_cast<std::uint32_t>(pick(100)));
    }
  }

  /// A guest that has closed its only preopen can do nothing any more.
  void reopen() {
    auto root = std::make_shared<OpenFile>();
    root->at = files().keep(files().root());
    root->base = rights::kDirectory;
    root->inheriting = rights::kDirectoryInheriting;
    (void)wasi().descriptors().insert(std::move(root));
  }

  void check_counts(const Tree& tree) {
    EXPECT_EQ(tree_fault(tree, open_nodes(wasi().descriptors(), tree)), "");
  }

  static constexpr TreeLimits kLimits{
      .file_bytes_max = 3000, .tree_bytes_max = 8000, .entries_max = 30, .depth_max = 5};
  unsigned seed_;
  std::mt19937_64 random_;
  std::unique_ptr<Cancellation> cancellation_;
};

TEST_F(RandomCalls, NeitherCrashNorHangNorMiscount) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto calls = [&] {
    for (int i = 0; i < kCalls && !HasFatalFailure(); ++i) {
      const FunctionSignature& function = kFunctions[pick(std::size(kFunctions))];
      if (std::string_view(function.name) == "proc_exit") continue;
      std::vector<std::uint64_t> arguments;
      for (const char* at = function.params; *at != '\0'; ++at) arguments.push_back(argument());
      if (pick(10) == 0) put_paths();
      cancellation_->wake();  // no call may sleep
      const auto answer = call_here(function.name, arguments);
      ASSERT_TRUE(answer.ok()) << function.name << ": " << answer.error().message;
      ASSERT_LE(static_cast<int>(*answer), 76) << function.name;
      if (!wasi().descriptors().find(3)) reopen();
    }
  };
  put_paths();
  ASSERT_TRUE(wasm::run_on_guest_thread(engine().options(), calls).ok());
  check_counts(*workspace_);
  check_counts(*files().mounted(kTmpMount));
  const Bytes blob = wasi().descriptors().serialize(files()).value();
  EXPECT_TRUE(wasi().descriptors().deserialize(blob, files()).ok());
  wasi().descriptors().close_all();
  check_counts(*workspace_);
}

}  // namespace
}  // namespace sw::wasi
