// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/workspace/workspace.h"

namespace sw {

Workspace::Workspace(const wasi::TreeLimits& limits, std::uint64_t now_ns)
    : tree_(std::make_shared<wasi::Tree>(limits, now_ns)) {}

}  // namespace sw
