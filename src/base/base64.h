// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sandbox_workers/base/files.h"

namespace sw {

/// With the standard alphabet (+ and /), padded, on one line.
std::string base64_encode(BytesView bytes);

/// White space is skipped and the padding may be missing; nullopt for anything else that is not
/// base64.
std::optional<Bytes> base64_decode(std::string_view text);

}  // namespace sw
