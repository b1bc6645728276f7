// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cases/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "sandbox_workers/base/files.h"

namespace sw::cases {

namespace {

const std::set<std::string, std::less<>> kRuns = {"cell", "one-shot", "reset"};
const std::set<std::string, std::less<>> kExpectations = {"stdout", "stderr", "text", "json",
                                                          "none",   "error",  "line", "traceback",
                                                          "exit",   "ending", "file"};

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::uint32_t hex(std::string_view digits) {
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::string unescape(std::string_view body) {
  std::string text;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '\n') continue;
    if (body[i] != '\\' || i + 1 == body.size()) {
      text += body[i];
      continue;
    }
    switch (body[++i]) {
      case '0': text += '\0'; break;
      case 'n': text += '\n'; break;
      case 'r': text += '\r'; break;
      case 't': text += '\t'; break;
      case 'x':
        text += static_cast<char>(hex(body.substr(i + 1, 2)));
        i += 2;
        break;
      case 'u': {
        const std::size_t end = body.find('}', i);
        append_utf8(text, hex(body.substr(i + 2, end - i - 2)));
        i = end;
        break;
      }
      default: text += body[i];
    }
  }
  return text;
}

/// Sections in the order they stand, with the lines above the first one as a section without a
/// name.
std::vector<Section> split(std::string_view text) {
  std::vector<Section> sections(1);
  bool escaped = false;
  const auto close = [&] {
    std::string& body = sections.back().body;
    if (body.ends_with('\n')) body.pop_back();
    if (escaped) body = unescape(body);
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with("--- ")) {
      sections.back().body.append(line).append("\n");
      continue;
    }
    close();
    escaped = false;
    Section& section = sections.emplace_back();
    std::istringstream words{std::string(line.substr(4))};
    words >> section.name;
    for (std::string word; words >> word;) {
      if (word == "contains") section.contains = true;
      else if (word == "any") section.any = true;
      else if (word == "escaped") escaped = true;
      else section.words.push_back(word);
    }
  }
  close();
  return sections;
}

}  // namespace

const Section* Step::find(std::string_view name) const {
  const auto found = std::ranges::find(expectations, name, &Section::name);
  return found == expectations.end() ? nullptr : &*found;
}

Result<CaseFile> read_case(const std::filesystem::path& path) {
  SW_TRY(const std::string text, read_text_file(path));
  CaseFile file;
  file.language = path.parent_path().filename().native();
  std::vector<Section> pending;
  for (Section& section : split(text)) {
    if (section.name.empty()) {
      file.native = section.body.find("native: yes") != std::string::npos;
    } else if (section.name == "write") {
      pending.push_back(std::move(section));
    } else if (kRuns.contains(section.name)) {
      file.steps.push_back(
          {.run = std::move(section), .before = std::move(pending), .expectations = {}});
      pending.clear();
    } else if (kExpectations.contains(section.name) && !file.steps.empty()) {
      file.steps.back().expectations.push_back(std::move(section));
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: '--- {}' makes no sense there", path.native(), section.name),
                   0};
    }
  }
  if (file.steps.empty())
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} runs nothing", path.native()), 0};
  return file;
}

}  // namespace sw::cases
