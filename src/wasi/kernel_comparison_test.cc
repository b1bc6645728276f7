// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/kernel_comparison.h"

#include <gtest/gtest.h>

#include <random>

#include "sandbox_workers/base/files.h"

namespace sw::wasi {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kRounds = 60;
constexpr int kStepsPerRound = 300;

TEST(KernelComparison, RandomOperationsAnswerAsTheKernelDoes) {
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-kernel-").value();
  const unsigned seed = std::random_device()();
  for (unsigned round = 0; round < kRounds; ++round) {
    std::mt19937 random(seed + round);
    const fs::path path = folder.path() / std::to_string(round);
    fs::create_directory(path);
    KernelComparison comparison(path, [&](std::size_t count) {
      return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    });
    for (int i = 0; i < kStepsPerRound && comparison.difference().empty(); ++i) comparison.step();
    comparison.compare_trees();
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed << ", round " << round;
  }
}

}  // namespace
}  // namespace sw::wasi
