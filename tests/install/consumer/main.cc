// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// A program of somebody else's: runs its argument as JavaScript and prints the value.
#include <cstdio>

#include "sandbox_workers/engine.h"

namespace {

sw::Result<std::string> evaluate(const char* code) {
  SW_TRY(const auto machine, sw::engine::Machine::create());
  SW_TRY(auto language, sw::engine::find_language("javascript"));
  SW_TRY(const auto engine, machine->load(std::move(language)));
  sw::Run request;
  request.code = code;
  sw::RunOutput output;
  sw::Result<sw::Outcome> outcome = sw::Error{};
  SW_CHECK_OK(engine->on_guest_thread([&] { outcome = engine->run(request, output); }));
  SW_TRY(const sw::Outcome done, std::move(outcome));
  if (done.error) return done.error->name;
  return done.value ? done.value->text : std::string();
}

}  // namespace

int main(int, char** arguments) {
  const auto text = evaluate(arguments[1]);
  if (!text.ok()) std::fprintf(stderr, "%s\n", text.error().message.c_str());
  else std::printf("%s\n", text->c_str());
  return text.ok() ? 0 : 1;
}
