// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads .case files; README.md says what they may contain.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"

namespace sw::cases {

/// One "--- name argument… modifiers" line and its body.
struct Section {
  std::string name;
  std::vector<std::string> words;  ///< what stands after the name, modifiers left out
  bool contains = false;
  bool any = false;
  std::string body;
};

/// A run and what is expected of it.
struct Step {
  Section run;                  ///< cell, one-shot or reset
  std::vector<Section> before;  ///< write
  std::vector<Section> expectations;

  const Section* find(std::string_view name) const;
};

struct CaseFile {
  std::string language;  ///< the folder's name
  bool native = false;
  std::vector<Step> steps;
};

/// Errors: kInvalidArgument with the line.
Result<CaseFile> read_case(const std::filesystem::path& path);

}  // namespace sw::cases
