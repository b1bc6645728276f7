// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the history of a context says about a step, beside what the snapshot store knows.

#include <string>
#include <string_view>

#include "sandbox_workers/protocol/protocol.h"
#include "sandbox_workers/workspace/manifest.h"

namespace sw::interpreter {

/// At most so many bytes of a line of code, and of a file's name.
inline constexpr std::size_t kAboutTextBytesMax = 120;
inline constexpr std::size_t kAboutFilesMax = 8;

/// A text that is kept with the step: JSON, valid UTF-8 without control characters.
std::string about_step(std::string_view code, const WorkspaceDiff& changes);
/// An entry that has what `about_step` made a text of. What is damaged is empty.
protocol::HistoryEntry read_about(std::string_view about);

}  // namespace sw::interpreter
