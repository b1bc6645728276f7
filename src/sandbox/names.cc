// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/uuid/uuid_generators.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/base/utf8.h"

namespace sw::sandbox {

namespace {

constexpr std::size_t kIdBytesMax = 63;
// Names that a host in front of sandboxes is likely to use itself.
constexpr std::array<std::string_view, 7> kReserved = {"www",    "api",        "admin",  "root",
                                                       "system", "cloudflare", "workers"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Error invalid_id(std::string_view id, std::string_view rule) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("Invalid sandbox id \"{}\": {}", id, rule),
               0};
}

}  // namespace

Result<void> check_sandbox_id(std::string_view id) {
  const bool fine = std::ranges::all_of(
      id, [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-'; });
  if (!fine || id.empty() || id.size() > kIdBytesMax) {
    return invalid_id(id, "must be 1 to 63 letters, digits, dots, underscores or hyphens");
  }
  if (id.front() == '-' || id.back() == '-')
    return invalid_id(id, "cannot start or end with a hyphen");
  if (std::ranges::any_of(
          kReserved, [&](std::string_view name) { return boost::algorithm::iequals(id, name); })) {
    return invalid_id(id, fmt::format("'{}' is a reserved name", id));
  }
  return {};
}

Result<storage::ObjectName> object_name(std::string_view id) {
  SW_CHECK_OK(check_sandbox_id(id));
  return storage::ObjectName{.class_name = "sandbox", .id = std::string(id)};
}

std::string new_interpreter_key() {
  return Sha256().field(new_context_id()).field(new_context_id()).hex();
}

std::string old_interpreter_key(const storage::ObjectName& name) {
  return Sha256().field("interpreters of").field(name.class_name).field(name.id).hex();
}

Result<void> check_env(std::string_view name, std::string_view value) {
  if (!is_identifier(name)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("Invalid envVars key: {}", name), 0};
  }
  if (value.find('\0') != std::string_view::npos || first_invalid_utf8(value)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("The value of {} must be UTF-8 without NUL", name), 0};
  }
  return {};
}

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return false;
  return std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

std::string new_context_id() { return boost::uuids::to_string(boost::uuids::random_generator()()); }

}  // namespace sw::sandbox
