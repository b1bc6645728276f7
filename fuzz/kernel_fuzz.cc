// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Paths and links: what we answer is what the kernel answers for a folder of the host's.

#include "fuzz/fuzz.h"
#include "wasi/kernel_comparison.h"

namespace sw::fuzz {
namespace {

constexpr int kStepsMax = 60;

}  // namespace

SW_FUZZ(kernel) {
  const auto folder = TemporaryDirectory::create(memory_folder(), "sw-fuzz-").value();
  Choices choices(input);
  wasi::KernelComparison comparison(folder.path(),
                                    [&](std::size_t count) { return choices.below(count); });
  for (int i = 0; i < kStepsMax && !choices.empty() && comparison.difference().empty(); ++i)
    comparison.step();
  comparison.compare_trees();
  require(comparison.difference().empty(), "we answer as the kernel", comparison.difference());
}

}  // namespace sw::fuzz
