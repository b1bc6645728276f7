// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/all_languages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "engine/embedded_files.h"
#include "engine/javascript/javascript.h"
#include "engine/perl/perl.h"
#include "engine/python/python.h"
#include "engine/ruby/ruby.h"

namespace sw::engine {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return result;
}

bool has_name(const Manifest& manifest, std::string_view name) {
  return manifest.language == name ||
         std::ranges::find(manifest.aliases, name) != manifest.aliases.end();
}

/// guests/NAME and guests/common, by their paths below guests/.
std::vector<DriverFile> build_files(std::string_view name) {
  constexpr std::string_view kRoot = "guests/";
  std::vector<DriverFile> files;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(kRoot)) continue;
    const std::string_view path = file.path.substr(kRoot.size());
    const std::string_view folder = path.substr(0, path.find('/'));
    if (folder == name || folder == "common") {
      files.push_back({.name = std::string(path), .content = std::string(file.content)});
    }
  }
  std::ranges::sort(files, {}, &DriverFile::name);
  return files;
}

/// engines/LANGUAGE/manifest.json and the drivers it names are part of the program, so an installed
/// one needs no other files.
Result<Manifest> embedded_manifest(std::string_view language) {
  const auto text = find_embedded_file(fmt::format("engines/{}/manifest.json", language));
  if (!text)
    return Error{ErrorCode::kInternal, fmt::format("the manifest of {} is not embedded", language),
                 0};
  const auto find_file = [&](std::string_view name) -> std::optional<std::string> {
    const auto content = find_embedded_file(fmt::format("engines/{}/{}", language, name));
    return content ? std::optional(std::string(*content)) : std::nullopt;
  };
  return parse_manifest(*text, find_file, build_files);
}

template <class Matches>
Result<std::unique_ptr<Language>> first_that(const Matches& matches, const auto& describe_failure) {
  SW_TRY(auto languages, all_languages());
  std::vector<std::string> known;
  for (auto& language : languages) {
    if (matches(language->manifest())) return std::move(language);
    known.push_back(language->manifest().language);
  }
  return Error{ErrorCode::kInvalidArgument,
               describe_failure(fmt::format("{}", fmt::join(known, ", "))), 0};
}

/// "python3" of "#!/usr/bin/env -S python3 -u" or "#!/usr/bin/python3.11"; digits and dots at its
/// end do not count.
std::string interpreter_of(std::string_view code) {
  if (!code.starts_with("#!")) return {};
  std::string_view line = code.substr(2, code.find('\n') - 2);
  std::string name;
  while (!line.empty()) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    const std::string_view base = word.substr(word.rfind('/') + 1);
    if (base.empty() || base == "env" || base.starts_with('-') ||
        base.find('=') != std::string_view::npos)
      continue;
    name = base;
    break;
  }
  while (!name.empty() &&
         (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == '.')) {
    name.pop_back();
  }
  return name;
}

}  // namespace

Result<std::vector<std::unique_ptr<Language>>> all_languages() {
  std::vector<std::unique_ptr<Language>> languages;
  const std::pair<std::string_view, std::unique_ptr<Language> (*)(Manifest)> makers[] = {
      {"javascript", make_javascript},
      {"perl", make_perl},
      {"python", make_python},
      {"ruby", make_ruby}};
  for (const auto& [name, make] : makers) {
    SW_TRY(Manifest manifest, embedded_manifest(name));
    languages.push_back(make(std::move(manifest)));
  }
  return languages;
}

Result<std::unique_ptr<Language>> find_language(std::string_view name) {
  const std::string wanted = lower(name);
  return first_that([&](const Manifest& manifest) { return has_name(manifest, wanted); },
                    [&](const std::string& known) {
                      return fmt::format("unknown language '{}'; the languages are {}", name,
                                         known);
                    });
}

Result<std::unique_ptr<Language>> guess_language(std::string_view file_name,
                                                 std::string_view code) {
  const std::string name = lower(file_name);
  const std::string interpreter = interpreter_of(code);
  const auto by_ending = first_that(
      [&](const Manifest& manifest) {
        return std::ranges::any_of(manifest.extensions,
                                   [&](const std::string& end) { return name.ends_with(end); });
      },
      [](const std::string&) { return std::string(); });
  if (by_ending.ok()) return find_language((*by_ending)->manifest().language);
  return first_that(
      [&](const Manifest& manifest) {
        return !interpreter.empty() && has_name(manifest, interpreter);
      },
      [&](const std::string& known) {
        return fmt::format("cannot determine the language of {}; pass -l (one of {})",
                           file_name.empty() ? "the code" : fmt::format("'{}'", file_name), known);
      });
}

}  // namespace sw::engine
