// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// From a cell's text, which may be TypeScript or have import declarations, to compiled code.

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>

#include "engine/javascript/guest.h"

namespace sw::engine::javascript {

namespace {

// A longer cell that is no JavaScript must be said to be TypeScript: looking for types in it takes
// seconds.
constexpr std::size_t kGuessBytesMax = std::size_t{256} << 10;

bool is_typescript(std::string_view alias) {
  return std::ranges::any_of(std::array{"typescript", "ts", "mts", "cts"}, [&](const char* name) {
    return boost::algorithm::iequals(alias, name);
  });
}

}  // namespace

bool is_typescript_file(std::string_view path) {
  return path.ends_with(".ts") || path.ends_with(".mts") || path.ends_with(".cts");
}

Result<JavaScriptGuest::Compiled> JavaScriptGuest::compile_cell(const Run& request,
                                                                std::string_view file_name) {
  if (is_typescript(request.language) || is_typescript_file(file_name)) {
    SW_TRY(Compiled compiled, compile_typescript(request.code, file_name));
    if (compiled.code != JsValue::exception() || !compiled.reply) return compiled;
    // The parser of types has gaps of its own; what is plain JavaScript needs none.
    SW_TRY(compiled.code, compile_javascript(request.code, file_name));
    if (compiled.code != JsValue::exception()) return Compiled{.code = compiled.code, .reply = {}};
    SW_CHECK_OK(drop_exception());
    return compiled;
  }
  SW_TRY(const JsValue code, compile_javascript(request.code, file_name));
  if (code != JsValue::exception() || request.code.size() > kGuessBytesMax)
    return Compiled{.code = code, .reply = {}};
  SW_TRY(const JsValue thrown, js_.take_exception());
  Owned problem(js_, thrown);
  SW_TRY(const Stripped stripped, strip_types(request.code, false));
  if (stripped.kind == Stripped::Kind::kUnsupported) {
    return Compiled{.code = JsValue::exception(), .reply = syntax_error(stripped, file_name)};
  }
  if (stripped.kind == Stripped::Kind::kJavaScript && stripped.text != request.code) {
    // If this fails too, it is for another reason than types, and that is the one to tell.
    SW_TRY(const JsValue again, compile_javascript(stripped.text, file_name));
    return Compiled{.code = again, .reply = {}};
  }
  // Of two parsers that refuse it, the one that came further understood what it is.
  SW_TRY(const GuestError as_javascript, describe(problem.get(), file_name));
  if (stripped.kind == Stripped::Kind::kInvalid &&
      stripped.line > as_javascript.line_number.value_or(0)) {
    return Compiled{.code = JsValue::exception(), .reply = syntax_error(stripped, file_name)};
  }
  SW_CHECK_OK(js_.throw_value(problem.release()));
  return Compiled{};
}

Result<JavaScriptGuest::Compiled> JavaScriptGuest::compile_typescript(std::string_view code,
                                                                      std::string_view file_name) {
  SW_TRY(const Stripped stripped, strip_types(code, false));
  if (stripped.kind != Stripped::Kind::kJavaScript) {
    return Compiled{.code = JsValue::exception(), .reply = syntax_error(stripped, file_name)};
  }
  SW_TRY(const JsValue compiled, compile_javascript(stripped.text, file_name));
  return Compiled{.code = compiled, .reply = {}};
}

Result<JsValue> JavaScriptGuest::compile_javascript(std::string_view code,
                                                    std::string_view file_name) {
  SW_TRY(const JsValue compiled, compile(code, file_name));
  if (compiled != JsValue::exception() || code.find("import") == std::string_view::npos)
    return compiled;
  return compile_with_imports(code, file_name);
}

Result<Stripped> JavaScriptGuest::strip_types(std::string_view code, bool is_module) {
  SW_TRY(const JsValue text, js_.new_string(code));
  const Owned source(js_, text);
  SW_TRY(auto answer, ask(Entry::kStripTypes, std::array{text, JsValue::boolean(is_module),
                                                         JsValue::boolean(!is_module)}));
  if (!answer) {
    SW_CHECK_OK(drop_exception());
    return Stripped{.kind = Stripped::Kind::kInvalid,
                    .text = "too deeply nested to remove its types",
                    .line = 0};
  }
  return parse_stripped(*answer);
}

Reply JavaScriptGuest::syntax_error(const Stripped& problem, std::string_view file_name) {
  Reply reply = error_reply("SyntaxError", problem.text);
  if (problem.line > 0) {
    reply.error->line_number = problem.line;
    reply.error->traceback.push_back(fmt::format("    at {}:{}", file_name, problem.line));
  }
  return reply;
}

Result<JsValue> JavaScriptGuest::compile(std::string_view code, std::string_view file_name) {
  const std::size_t bytes = code.size() + file_name.size() + 2;
  std::uint32_t address = code_buffer_;
  if (bytes > kCodeBufferBytes) {
    SW_TRY(address, js_.allocate(bytes));
  }
  const auto to = memory().range(address, bytes);
  if (address == 0 || !to) {
    SW_CHECK_OK(js_.throw_out_of_memory());
    return JsValue::exception();
  }
  const auto name = to->subspan(code.size() + 1);
  std::ranges::copy(as_bytes(code), to->begin());
  (*to)[code.size()] = std::byte{0};
  std::ranges::copy(as_bytes(file_name), name.begin());
  name[file_name.size()] = std::byte{0};
  SW_TRY(const JsValue compiled,
         js_.compile(address, code.size(), address + static_cast<std::uint32_t>(code.size()) + 1,
                     kAsyncFlag | kCompileOnlyFlag));
  if (address != code_buffer_) SW_CHECK_OK(js_.deallocate(address));
  return compiled;
}

Result<JsValue> JavaScriptGuest::compile_with_imports(std::string_view code,
                                                      std::string_view file_name) {
  SW_TRY(const JsValue thrown, js_.take_exception());
  Owned problem(js_, thrown);
  SW_TRY(const JsValue text, js_.new_string(code));
  const Owned source(js_, text);
  SW_TRY(const auto rewritten, ask(Entry::kRewriteImports, std::array{text}));
  if (rewritten && !rewritten->empty()) return compile(*rewritten, file_name);
  SW_CHECK_OK(js_.throw_value(problem.release()));
  return JsValue::exception();
}

}  // namespace sw::engine::javascript
