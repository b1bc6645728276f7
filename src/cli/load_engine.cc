// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/load_engine.h"

#include "cli/progress.h"

namespace sw::cli {

Result<std::shared_ptr<engine::Engine>> load_engine(engine::Machine& machine,
                                                    std::unique_ptr<engine::Language> language) {
  ProgressDisplay display;
  return machine.load(std::move(language),
                      [&](std::string_view step, std::chrono::seconds expected) {
                        display.begin_step(step, expected);
                      });
}

}  // namespace sw::cli
