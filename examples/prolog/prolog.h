// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sandbox_workers/embedded_interpreter.h"

namespace prolog {

/// Trealla Prolog, for Machine::load. A cell is Prolog text: clauses are added to the program, "?-
/// Goal." is run, and what it finds for its variables is the value ("X = 2, Y = a"; "true";
/// "false").
sw::Result<std::unique_ptr<sw::engine::Language>> make_language();

}  // namespace prolog
