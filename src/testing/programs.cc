// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <boost/json.hpp>
#include <exception>

#include "base/describe.h"
#include "engine/embedded_files.h"
#include "sandbox_workers/testing/conformance.h"

namespace sw::testing {

namespace {

namespace json = boost::json;

// Boost.JSON reports what is missing or mistyped by an exception, which parse_programs turns into
// an Error.

std::string text(const json::object& object, std::string_view key) {
  return json::value_to<std::string>(object.at(key));
}

std::optional<std::string> text_if_there(const json::object& object, std::string_view key) {
  return object.contains(key) ? std::optional(text(object, key)) : std::nullopt;
}

const json::object* object_if_there(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found == nullptr ? nullptr : &found->as_object();
}

std::optional<DefineAndUse> two_cells(const json::object& object, std::string_view key) {
  const json::object* cells = object_if_there(object, key);
  if (cells == nullptr) return std::nullopt;
  return DefineAndUse{.define = text(*cells, "define"),
                      .use = text(*cells, "use"),
                      .expect_text = text(*cells, "value")};
}

ConformancePrograms from_object(const json::object& object) {
  const json::object& simple = object.at("simple").as_object();
  ConformancePrograms programs{
      .simple = {.code = text(simple, "code"), .expect_text = text_if_there(simple, "value")},
      .error = text(object, "error")};
  programs.stateful = two_cells(object, "stateful");
  programs.endless = text_if_there(object, "endless");
  programs.crash = text_if_there(object, "crash");
  if (const auto* env = object_if_there(object, "env")) {
    programs.env = EnvProgram{.code = text(*env, "code"), .name = text(*env, "name")};
    if (const auto shown = text_if_there(*env, "value")) programs.env->expect_text = *shown;
  }
  if (const auto* cwd = object_if_there(object, "cwd")) {
    programs.cwd = CwdProgram{.enter = text(*cwd, "enter"),
                              .show = text(*cwd, "show"),
                              .expect_text = text(*cwd, "value")};
  }
  if (const auto* files = object_if_there(object, "files")) {
    programs.files =
        FilesProgram{.write = text(*files, "write"), .fail = text_if_there(*files, "fail")};
  }
  programs.open_file = two_cells(object, "openFile");
  programs.random = text_if_there(object, "random");
  return programs;
}

}  // namespace

Result<ConformancePrograms> parse_programs(std::string_view text) {
  try {
    return from_object(json::parse(text).as_object());
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("bad programs: {}", describe(problem)),
                 0};
  }
}

Result<ConformancePrograms> built_in_programs(std::string_view language) {
  const auto text =
      engine::find_embedded_file(fmt::format("engines/{}/conformance.json", language));
  if (!text) {
    return Error{ErrorCode::kNotFound, fmt::format("{} has no conformance.json", language), 0};
  }
  return parse_programs(*text);
}

}  // namespace sw::testing
