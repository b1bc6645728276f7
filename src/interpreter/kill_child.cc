// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// kill_child FOLDER LANGUAGE: counts in a context for ever and prints each number once its run has ended. The test
// that starts it kills it.

#include <fmt/format.h>
#include <unistd.h>

#include "interpreter/test_machine.h"

int main(int argc, char** argv) {
  using namespace sw::interpreter;
  if (argc != 3) return 2;
  TestMachine machine;
  const std::string count = std::string_view(argv[2]) == "python" ? "n = globals().get('n', 0) + 1; n"
                                                                  : "globalThis.n = (globalThis.n ?? 0) + 1";
  const auto engine = machine.load(argv[2]);
  const auto storage = sw::storage::open_sqlite_storage(argv[1], {}).value();
  const auto object = storage->open(kTestObject, {}).value();
  (void)machine.machine->on_guest_thread([&] {
    const auto interpreter = Interpreter::open(engine, *object, machine.clocks, {}).value();
    if (!interpreter->context("c").ok()) (void)interpreter->create_context("c", "/workspace");
    for (;;) {
      const auto result = machine.execute(*interpreter, "c", count);
      if (!result.ok() || !result->outcome.value) _exit(3);
      const std::string line = fmt::format("{} {}\n", result->outcome.value->text, result->row.executions);
      if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(4);
    }
  });
}
