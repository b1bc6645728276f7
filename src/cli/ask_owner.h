// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/caller.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

/// Lets the process at the other end of `owner` (connect_to_owner) run a command with this
/// process's streams. What there is on stdin is read here, if the command `reads_input`: the other
/// process must not wait for it, nor read from a terminal. Returns its exit status; nothing if that
/// process ended, or refused, before it began the command: then it may be tried again.
/// Errors: kUnreachable when it does not answer.
Result<std::optional<int>> ask_owner(const UniqueFd& owner, const Caller& caller,
                                     const std::vector<std::string>& arguments, bool reads_input);

}  // namespace sw::cli
