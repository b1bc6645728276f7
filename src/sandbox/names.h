// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How sandboxes, bindings, contexts and Interpreters are called.

#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::sandbox {

/// The class of their objects in the storage.
inline constexpr char kSandboxClass[] = "sandbox";

/// Errors: kInvalidArgument saying the rule: 1 to 63 of A-Z a-z 0-9 . _ -, no hyphen at either end,
/// none of the reserved names.
Result<void> check_sandbox_id(std::string_view id);

/// The storage's object for a sandbox. Errors: those of check_sandbox_id.
Result<storage::ObjectName> object_name(std::string_view id);

/// What a new sandbox's Interpreters are called, whatever their language: 64 random hexadecimal
/// digits, so that two callers of a Worker never meet, and nobody finds a sandbox by its id.
std::string new_interpreter_key();
/// What they were called before sandboxes kept a key: a hash of the sandbox's name.
std::string old_interpreter_key(const storage::ObjectName& name);

/// May a sandbox or a context have this variable? Errors: kInvalidArgument.
Result<void> check_env(std::string_view name, std::string_view value);

/// A letter or _, then letters, digits and _: names of bindings and of environment variables.
bool is_identifier(std::string_view text);

/// A random UUID.
std::string new_context_id();

}  // namespace sw::sandbox
