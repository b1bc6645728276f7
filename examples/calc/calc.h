// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/engine.h"

namespace calc {

/// A language of integers: + - * /, parentheses, and env.NAME for what an environment variable
/// holds.
class Calc final : public sw::engine::Engine {
 public:
  const sw::engine::EngineInfo& info() const override { return info_; }
  sw::Result<sw::Outcome> run(const sw::Run& request, sw::RunEvents& output) override;

 private:
  const sw::engine::EngineInfo info_{.language = "calc",
                                     .engine_name = "Calc 1",
                                     .build = "calc-1",
                                     .limits = {.memory_bytes = 1 << 20}};
};

}  // namespace calc
