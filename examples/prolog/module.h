// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace prolog {

/// The package has its module as base64 text within a JavaScript file. Gives its bytes, whose
/// digest is checked.
/// Errors: kCorrupt.
sw::Result<sw::Bytes> module_within(std::string_view javascript);

}  // namespace prolog
