// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Is what was typed a whole cell? A program in the language itself knows, and runs in a sandbox of
// its own.

#include <memory>
#include <string>
#include <string_view>

#include "sandbox_workers/engine/engine.h"

namespace sw::cli {

class Completeness {
 public:
  /// For an engine without such a program (engines/LANGUAGE/complete.*) every line is a cell.
  explicit Completeness(std::shared_ptr<engine::Engine> engine);

  bool is_complete(std::string_view source);

 private:
  std::shared_ptr<engine::Engine> engine_;  // shared with the contexts
  std::string program_;
};

}  // namespace sw::cli
