// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two names of the workspace: /workspace, and /home/user for runs that ask for it.

#include <string>

#include "sandbox_workers/engine/run.h"

namespace sw::engine {

/// The run as a guest gets it that knows the workspace as its home. `is_first`: of its instance.
Run at_home(Run run, bool is_first);

/// A folder's path, with /workspace in the place of /home/user.
std::string in_workspace(std::string path);

}  // namespace sw::engine
