// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// A program of somebody else's: runs its argument as JavaScript, in a fresh interpreter and in a
// sandbox, and prints the value.
#include <cstdio>
#include <string>

#include "sandbox_workers/host.h"

namespace {

std::string shown(const sw::Outcome& outcome) {
  if (outcome.error) return outcome.error->name;
  return outcome.value ? outcome.value->text : std::string();
}

sw::Result<std::string> evaluate(const char* code) {
  SW_TRY(const sw::Host host, sw::Host::open());
  SW_TRY(const sw::Outcome once, host.run({.language = "javascript", .code = code}));
  const sw::Sandbox sandbox = host.sandbox("consumer");
  SW_TRY(const sw::Outcome kept, sandbox.run({.language = "javascript", .code = code}));
  if (shown(once) != shown(kept)) return sw::Error{.message = "they differ"};
  return shown(kept);
}

}  // namespace

int main(int, char** arguments) {
  const auto text = evaluate(arguments[1]);
  if (!text.ok()) std::fprintf(stderr, "%s\n", text.error().message.c_str());
  else std::printf("%s\n", text->c_str());
  return text.ok() ? 0 : 1;
}
