// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who asked for a command, and from where. It is all that a command knows of the outside: it may
// run in another process than the one that was asked (command_server.h).

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "cli/interrupt.h"
#include "cli/streams.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw::cli {

struct Caller {
  Streams& streams;
  Interrupts& interrupts;
  /// The caller's working directory and process; empty and 0: this process's own.
  std::filesystem::path folder = {};
  pid_t process = 0;

  /// How this process reaches what the caller calls `name`.
  std::filesystem::path reach(const std::filesystem::path& name) const;
  /// The content of a file of the caller's, or of what it can read to its end. Ends early when
  /// nobody waits for the command any more.
  /// Errors: kInvalidArgument when it is larger than `bytes_max`; those of opening and reading it.
  Result<Bytes> read_file(const std::string& name, std::size_t bytes_max) const;
  Result<std::string> read_text_file(const std::string& name, std::size_t bytes_max) const;
};

}  // namespace sw::cli
