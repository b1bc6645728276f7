// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hostile/dice.h"

namespace sw::hostile {

/// What stands for a hole that no rule of the grammar fills: a number, a name, a path. nullopt:
/// there is none such.
std::optional<std::string> fill_hole(Dice& dice, std::string_view hole);

/// Whether `fill_hole`, or the program's making, knows the hole.
bool is_hole(std::string_view hole);

/// Valid UTF-8 that is hardly a program.
std::string garbage(Dice& dice);

/// One of the cells, changed here and there.
std::string mutated(Dice& dice, const std::vector<std::string>& cells);

}  // namespace sw::hostile
