// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ES modules: where a specifier leads, and the source text behind it.
//
// A file's module is named by its path and a mark of its content ("/workspace/a.mjs?v=…"): the
// interpreter keeps modules by name, so importing a file that was edited loads it anew, while one
// that was not is the same module. The driver takes the marks out of traces.

#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"

namespace sw::engine::javascript {

/// Where guests see the libraries that their driver is made of.
inline constexpr std::string_view kLibraryFolder = "/usr/share/javascript";

class JavaScriptGuest;

/// The two imports. Both answer with memory that the interpreter frees, or 0 after throwing.
Result<std::uint32_t> normalize_module(JavaScriptGuest& guest, std::uint32_t base,
                                       std::uint32_t name);
Result<std::uint32_t> load_module(JavaScriptGuest& guest, std::uint32_t name, std::uint32_t length);

}  // namespace sw::engine::javascript
