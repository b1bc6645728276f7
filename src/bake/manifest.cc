// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/bake/manifest.h"
#include "base/describe.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <stdexcept>

#include "sandbox_workers/base/sha256.h"

namespace sw::bake {

namespace {

namespace json = boost::json;

// Boost.JSON reports a missing or mistyped field by an exception, which parse_manifest turns into
// an Error.

std::string text(const json::object& object, std::string_view key) {
  return json::value_to<std::string>(object.at(key));
}

std::vector<std::string> texts(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found == nullptr ? std::vector<std::string>{}
                          : json::value_to<std::vector<std::string>>(*found);
}

/// What a build gives is determined by the files it is made of, which carry the digests of what
/// they fetch.
void take_digests_from(std::vector<DriverFile> build_files, Package& package) {
  if (build_files.empty())
    throw std::runtime_error(fmt::format("no build files for '{}'", package.name));
  Sha256 hash;
  for (const DriverFile& file : build_files) hash.field(file.name).field(file.content);
  package.sha256 = hash.hex();
  package.build_files = std::move(build_files);
  for (PackageFile& file : package.files) {
    Sha256 own;
    own.field(package.sha256).field(file.name);
    file.sha256 = own.hex();
  }
}

Package parse_package(const json::object& object, const FindBuildFiles& find_build_files) {
  Package package{.registry = text(object, "registry"),
                  .name = text(object, "name"),
                  .version = text(object, "version"),
                  .file = text(object, "file"),
                  .sha256 = {},
                  .files = {},
                  .build_files = {},
                  .archive = {},
                  .members = texts(object, "members")};
  if (package.registry == "source") {
    for (const json::value& item : object.at("files").as_array()) {
      package.files.push_back({.member = {}, .name = text(item.as_object(), "name"), .sha256 = {}});
    }
    if (!find_build_files)
      throw std::runtime_error("packages built from source are not supported here");
    take_digests_from(find_build_files(package.name), package);
    return package;
  }
  package.sha256 = text(object, "sha256");
  if (object.contains("archive")) package.archive = text(object, "archive");
  if (!package.archive.empty() && !object.contains("files")) return package;
  for (const json::value& item : object.at("files").as_array()) {
    const json::object& file = item.as_object();
    package.files.push_back({.member = text(file, "member"),
                             .name = text(file, "name"),
                             .sha256 = text(file, "sha256")});
  }
  return package;
}

std::vector<Package> parse_libraries(const json::object& object) {
  std::vector<Package> libraries;
  const json::value* found = object.if_contains("libraries");
  if (found == nullptr) return libraries;
  for (const json::value& item : found->as_array())
    libraries.push_back(parse_package(item.as_object(), {}));
  return libraries;
}

std::vector<DriverFile> read_drivers(const json::object& object, const FindFile& find_file) {
  std::vector<DriverFile> drivers;
  for (std::string& name : texts(object, "drivers")) {
    std::optional<std::string> content = find_file(name);
    if (!content) throw std::runtime_error(fmt::format("no file '{}' next to it", name));
    drivers.push_back({.name = std::move(name), .content = *std::move(content)});
  }
  return drivers;
}

Manifest parse_object(const json::object& object, const FindFile& find_file,
                      const FindBuildFiles& find_build_files) {
  return {.language = text(object, "language"),
          .name = text(object, "name"),
          .engine = text(object, "engine"),
          .version = text(object, "version"),
          .licence = text(object, "licence"),
          .package = parse_package(object.at("package").as_object(), find_build_files),
          .libraries = parse_libraries(object),
          .module = text(object, "module"),
          .drivers = read_drivers(object, find_file),
          .imports = texts(object, "imports"),
          .extensions = texts(object, "extensions"),
          .aliases = texts(object, "aliases"),
          .memory_bytes_max = object.at("memory_bytes_max").to_number<std::uint64_t>(),
          .recipe = {}};
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, const FindFile& find_file,
                                const FindBuildFiles& find_build_files) {
  try {
    return parse_object(json::parse(text).as_object(), find_file, find_build_files);
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("invalid manifest: {}", describe(problem)), 0};
  }
}

}  // namespace sw::bake
