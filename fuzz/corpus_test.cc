// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Runs the inputs that are kept in the repository: those that once led to a fault, and those that
// lead everywhere.

#include <filesystem>

#include "fuzz/fuzz.h"

namespace sw::fuzz {

void run_corpus(std::string_view name, void (*target)(BytesView)) {
  namespace fs = std::filesystem;
  std::size_t inputs = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(SW_FUZZ_CORPUS) / name)) {
    const auto bytes = read_file(entry.path());
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    // A target ends the process when something does not hold, and this says where.
    std::fprintf(stderr, "%s\n", entry.path().c_str());
    target(*bytes);
    ++inputs;
  }
  EXPECT_GT(inputs, 0U) << "there is no corpus of " << name;
  target({});
}

}  // namespace sw::fuzz
