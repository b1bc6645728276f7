// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lines typed at a terminal, with editing and history, or read from a pipe.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "sandbox_workers/engine/run.h"

namespace sw::cli {

/// Of a line from a pipe, more is not kept: enough for code to be refused because it is too long.
inline constexpr std::size_t kLineBytesMax = kCodeBytesMax + 1;

class LineReader {
 public:
  enum class Kind : std::uint8_t {
    kLine,
    kEnd,          ///< end of input, Ctrl-D
    kInterrupted,  ///< Ctrl-C
  };
  struct Line {
    Kind kind = Kind::kEnd;
    std::string text;  ///< without the line feed
  };

  virtual ~LineReader() = default;
  virtual Line read(const std::string& prompt) = 0;
  virtual bool is_terminal() const = 0;
};

/// Editing with libedit when stdin and stdout are terminals; lines are remembered in `history_file`
/// (empty: only for now). Otherwise lines as they are, without prompts.
std::unique_ptr<LineReader> make_line_reader(const std::filesystem::path& history_file);

}  // namespace sw::cli
