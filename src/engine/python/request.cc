// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/request.h"

#include <fmt/format.h>

#include <cstdint>

namespace sw::engine {

namespace {

// Of cell.py.
constexpr std::uint32_t kFlagFresh = 1;
constexpr std::uint32_t kFlagFiles = 2;
constexpr std::uint32_t kFlagScript = 4;
constexpr std::uint32_t kFlagHome = 8;

/// Writes Python's marshal format: a type byte, then lengths and numbers as 32 bits, little-endian.
class MarshalWriter {
 public:
  void tuple(std::uint32_t size) { type('(', size); }
  void list(std::uint32_t size) { type('[', size); }
  void bytes(std::string_view value) { sized('s', value); }
  void text(std::string_view utf8) { sized('u', utf8); }
  void number(std::uint32_t value) { type('i', value); }
  void none() { out_ += 'N'; }
  void begin_dict() { out_ += '{'; }
  void end_dict() { out_ += '0'; }
  std::string take() && { return std::move(out_); }

 private:
  void type(char code, std::uint32_t value) {
    out_ += code;
    for (int shift = 0; shift < 32; shift += 8) out_ += static_cast<char>(value >> shift & 0xFF);
  }
  void sized(char code, std::string_view value) {
    type(code, static_cast<std::uint32_t>(value.size()));
    out_ += value;
  }

  std::string out_;
};

std::string bytes_literal(std::string_view bytes) {
  std::string literal = "b'";
  literal.reserve(bytes.size() * 5 / 4);
  for (const char c : bytes) {
    if (c == '\n') literal += "\\n";
    else if (c == '\\' || c == '\'') (literal += '\\') += c;
    else if (c >= ' ' && c <= '~') literal += c;
    else literal += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return literal += '\'';
}

/// "cell" of "driver/cell.py".
std::string_view stem(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.rfind('.'));
}

}  // namespace

std::string cell_request(const Run& request, std::string_view file_name, const CellFlags& flags) {
  MarshalWriter writer;
  writer.tuple(6);
  writer.bytes(request.code);
  writer.text(file_name);
  writer.begin_dict();
  for (const auto& [name, value] : request.env) {
    writer.text(name);
    writer.text(value);
  }
  writer.end_dict();
  if (request.args.empty()) {
    writer.none();
  } else {
    writer.list(static_cast<std::uint32_t>(request.args.size()));
    for (const std::string& argument : request.args) writer.text(argument);
  }
  if (flags.fresh && !request.cwd.empty()) writer.text(request.cwd);
  else writer.none();  // the working folder stays where the last cell left it
  writer.number((flags.fresh ? kFlagFresh : 0) | (flags.files ? kFlagFiles : 0) |
                (flags.script ? kFlagScript : 0) | (flags.home ? kFlagHome : 0));
  return std::move(writer).take();
}

std::string boot_source(const std::vector<DriverFile>& files,
                        const std::vector<std::string>& imports) {
  std::string boot = "b''";
  std::string others;
  for (const auto& [path, content] : files) {
    if (stem(path) == "boot") boot = bytes_literal(content);
    else others += fmt::format("'{}':{},", stem(path), bytes_literal(content));
  }
  std::string names;
  for (const std::string& name : imports) names += fmt::format("'{}',", name);
  return fmt::format(
      "exec(compile({},'<sandbox/"
      "boot>','exec'),{{'__name__':'boot','FILES':{{{}}},'IMPORTS':[{}]}})",
      boot, others, names);
}

}  // namespace sw::engine
