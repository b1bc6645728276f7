// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/storage.h"

#include <fmt/format.h>

#include <algorithm>

namespace sw::storage {

namespace {

bool is_class_byte(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

Error bad_name(const ObjectName& name, std::string_view rule) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("invalid object name {}: {}", to_string(name), rule), 0};
}

}  // namespace

Result<void> check_name(const ObjectName& name) {
  const std::string& cls = name.class_name;
  if (cls.empty() || cls.size() > kClassBytesMax) {
    return bad_name(name, fmt::format("the class must have 1 to {} bytes", kClassBytesMax));
  }
  if (cls[0] < 'a' || cls[0] > 'z' || !std::all_of(cls.begin(), cls.end(), is_class_byte)) {
    return bad_name(name, "the class must consist of a-z, 0-9 and _, and begin with a letter");
  }
  if (name.id.empty() || name.id.size() > kIdBytesMax) {
    return bad_name(name, fmt::format("the id must have 1 to {} bytes", kIdBytesMax));
  }
  if (name.id.find('\0') != std::string::npos)
    return bad_name(name, "the id must not contain NUL bytes");
  return {};
}

std::string to_string(const ObjectName& name) {
  std::string text = name.class_name + "/";
  for (const char c : name.id) {
    if (c > ' ' && c < '\x7f' && c != '\\') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

Range Range::of_prefix(TableId table, std::string_view prefix) {
  std::string end(prefix);
  // The first key beyond the prefix: its last byte that can grow is raised, the bytes behind it go.
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return Range{table, std::string(prefix), std::move(end)};
}

std::string ordered_key(std::uint64_t number) {
  std::string key(8, '\0');
  for (std::size_t i = 8; i-- > 0; number >>= 8U) key[i] = static_cast<char>(number & 0xffU);
  return key;
}

std::optional<std::uint64_t> number_of_key(std::string_view key) {
  if (key.size() != 8) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : key) number = number << 8U | static_cast<unsigned char>(c);
  return number;
}

}  // namespace sw::storage
