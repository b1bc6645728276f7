// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// POST /files: the operations on files, as requests.

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "sandbox/sandbox.h"

namespace sw::sandbox {

/// What a file is to browsers, by the ending of its name.
std::string_view mime_type(std::string_view path, bool is_binary);

/// The answer's body, without `success` and `timestamp`.
Result<boost::json::object> file_operation(Sandbox& sandbox, const boost::json::object& request);

}  // namespace sw::sandbox
