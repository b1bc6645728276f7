// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "sandbox_workers/workspace/manifest.h"
#include "wasi/tree_state.h"

namespace sw {

/// Adds to `diff` what turns `before` into `after`, both at the path `below` the root; null: there is
/// nothing.
void add_change(WorkspaceDiff& diff, std::string_view below, const wasi::TreeState::Entry* before,
                const wasi::TreeState::Entry* after);

}  // namespace sw
