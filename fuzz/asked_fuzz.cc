// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Commands that one process sends to another.

#include "cli/asked_message.h"
#include "fuzz/fuzz.h"

namespace sw::fuzz {

SW_FUZZ(asked) {
  const std::string_view text = as_text(input);
  if (const auto bytes = cli::parse_asked_header(text.substr(0, cli::kHeaderBytes))) {
    require(*bytes <= cli::kAskedBytesMax, "a length within its limit");
    const auto header = cli::asked_header(*bytes);
    require(text.starts_with(std::string_view(header.data(), header.size())), "the same header");
  }
  (void)cli::parse_reply(text);
  const auto command = cli::parse_asked_body(text);
  if (!command.ok()) return;
  require(command->folder.is_absolute(), "a folder that is the same for both");
  const auto body = cli::asked_body(*command);
  require(body.ok() && *body == text, "the same command");
}

}  // namespace sw::fuzz
