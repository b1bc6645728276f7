// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// kill_child FOLDER LANGUAGE: counts in a context for ever and prints each number once its run has
// ended. The test that starts it kills it.

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <map>
#include <string>

#include "interpreter/test_worker.h"
#include "storage/sqlite/sqlite_storage.h"

namespace {

[[noreturn]] void count(const std::string& folder, const std::string& language) {
  using namespace sw::interpreter;
  const std::map<std::string, std::string> cells = {
      {"python", "n = globals().get('n', 0) + 1; n"},
      {"javascript", "globalThis.n = (globalThis.n ?? 0) + 1"},
      {"perl", "our $n; $n += 1"},
      {"ruby", "$n = $n.to_i + 1"},
  };
  const auto storage = sw::storage::open_sqlite_storage(folder, {}).value();
  sw::Workspace files(sw::kWorkspaceLimits, 1);
  TestWorker worker(TestWorker::engine(language), *storage, files);
  worker.create("c");  // or it is there already
  for (;;) {
    const auto result = worker.run("c", cells.at(language));
    if (!result.outcome.value) _exit(3);
    const std::string line =
        fmt::format("{} {}\n", result.outcome.value->text, result.outcome.context->executions);
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(4);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    count(argv[1], argv[2]);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "kill_child: {}\n", problem.what());
    return 1;
  }
}
