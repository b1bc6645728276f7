// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/step_about.h"

#include <algorithm>
#include <boost/json.hpp>

#include "sandbox_workers/base/utf8.h"

namespace sw::interpreter {

namespace {

namespace json = boost::json;

constexpr std::string_view kWhitespace = " \t\r\n\v\f";
constexpr std::string_view kEllipsis = "…";
constexpr std::string_view kFolder = "/workspace/";

/// For one line of a table.
std::string shown(std::string_view text) {
  std::string valid = to_valid_utf8(text.substr(0, 4 * kAboutTextBytesMax));
  std::ranges::replace_if(
      valid, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  if (valid.size() <= kAboutTextBytesMax) return valid;
  valid.resize(whole_utf8_sequences(valid, kAboutTextBytesMax - kEllipsis.size()));
  return valid.append(kEllipsis);
}

std::string_view first_line(std::string_view code) {
  const std::size_t begin = code.find_first_not_of(kWhitespace);
  if (begin == std::string_view::npos) return {};
  const std::string_view line = code.substr(begin, code.find('\n', begin) - begin);
  return line.substr(0, line.find_last_not_of(kWhitespace) + 1);
}

std::string_view name_of(std::string_view path) {
  return path.starts_with(kFolder) ? path.substr(kFolder.size()) : path;
}

/// The one place that looks at what a run did to the files.
std::vector<std::string_view> changed_files(const WorkspaceDiff& changes) {
  std::vector<std::string_view> names;
  for (const WorkspaceFile& file : changes.files) names.push_back(name_of(file.path));
  for (const std::string& path : changes.removed) names.push_back(name_of(path));
  return names;
}

}  // namespace

std::string about_step(std::string_view code, const WorkspaceDiff& changes) {
  json::object about = {{"code", shown(first_line(code))}};
  const std::vector<std::string_view> names = changed_files(changes);
  if (!names.empty()) {
    json::array files;
    for (std::size_t i = 0; i < std::min(names.size(), kAboutFilesMax); ++i)
      files.push_back(json::value(shown(names[i])));
    about["files"] = std::move(files);
    about["filesChanged"] = names.size();
  }
  return json::serialize(about);
}

protocol::HistoryEntry read_about(std::string_view about) {
  protocol::HistoryEntry entry;
  try {
    const json::value value = json::parse(about);
    const json::object& object = value.as_object();
    entry.code = json::value_to<std::string>(object.at("code"));
    if (const json::value* const files = object.if_contains("files")) {
      entry.files = json::value_to<std::vector<std::string>>(*files);
      entry.files_changed = object.at("filesChanged").to_number<std::uint64_t>();
    }
  } catch (const std::exception&) {
    return {};
  }
  return entry;
}

}  // namespace sw::interpreter
