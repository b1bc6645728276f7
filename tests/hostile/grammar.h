// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Composes programs at random from the fragments of a .grammar file; README.md has its form.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hostile/dice.h"
#include "sandbox_workers/base/result.h"

namespace sw::hostile {

/// How a program must end, for those of which it is known.
struct Known {
  std::string ending;     ///< "time-limit", …
  std::string error;      ///< with "guest-error": the error's name
  std::int32_t code = 0;  ///< with "exited"
};

struct Program {
  std::string code;
  std::optional<Known> known;
  bool files = false;    ///< it may fill /workspace and /tmp
  bool lingers = false;  ///< what it leaves in its context may disturb the next cell, by right
};

class Grammar {
 public:
  /// `cases` is a folder of case files, whose cells are mutated.
  static Result<Grammar> read(const std::filesystem::path& file,
                              const std::filesystem::path& cases);

  Program draw(Dice& dice) const;

 private:
  struct Piece {
    std::string text;  ///< literal, or what stands between the brackets
    bool is_hole = false;
  };
  struct Rule {
    std::uint64_t weight = 1;
    bool files = false;
    bool lingers = false;
    bool is_leaf = true;  ///< without holes that lead to other rules
    std::vector<std::string> words;
    std::vector<Piece> pieces;
  };
  class Expansion;

  Result<void> add(std::string_view heading, std::string_view body);
  void find_leaves();

  std::map<std::string, std::vector<Rule>, std::less<>> rules_;
  std::vector<std::string> cells_;
};

}  // namespace sw::hostile
