// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// An engine gives an outcome for a program. This one needs no Wasm, and keeps nothing between runs.
#include "calc.h"

#include <charconv>

namespace calc {
namespace {

using Number = sw::Result<long>;

sw::Error problem(std::string what) { return {sw::ErrorCode::kInvalidArgument, std::move(what)}; }

struct Parser {
  std::string_view rest;  // of the program
  const std::vector<std::pair<std::string, std::string>>& env;

  Number program() {
    SW_TRY(const long value, operation(0, 0));
    take_one_of("");  // passes over spaces
    return rest.empty() ? Number(value) : problem("unexpected '" + std::string(rest) + "'");
  }
  Number operation(std::size_t level, int depth) {
    static constexpr const char* kSigns[] = {"+-", "*/"};
    if (level == 2) return atom(depth);
    SW_TRY(long value, operation(level + 1, depth));
    while (const char sign = take_one_of(kSigns[level])) {
      SW_TRY(const long right, operation(level + 1, depth));
      SW_TRY(value, apply(value, sign, right));
    }
    return value;
  }
  Number atom(int depth) {
    if (depth > 100) return problem("nested too deeply");
    if (const char sign = take_one_of("-("); sign != 0) {
      SW_TRY(const long value, sign == '-' ? atom(depth + 1) : operation(0, depth + 1));
      if (sign == '-') return apply(0, '-', value);
      return take_one_of(")") != 0 ? Number(value) : problem("')' is missing");
    }
    const std::size_t end = std::min(rest.find_first_of(" \t\r\n+-*/()"), rest.size());
    const std::string word(std::exchange(rest, rest.substr(end)).substr(0, end));
    if (!word.starts_with("env.")) return parse(word);
    for (const auto& [name, value] : env) {
      if (name == word.substr(4)) return parse(value);
    }
    return problem("undefined: " + word);
  }
  char take_one_of(std::string_view signs) {  // 0: the next sign is none of these
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    if (rest.empty() || signs.find(rest.front()) == std::string_view::npos) return 0;
    return std::exchange(rest, rest.substr(1)).front();
  }
  static Number parse(const std::string& text) {
    long number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    return error == std::errc() && end == last ? Number(number)
                                               : problem("'" + text + "' is not a number");
  }
  static Number apply(__int128 left, char sign, long right) {
    if (sign == '/' && right == 0) return problem("division by zero");
    left = sign == '+'   ? left + right
           : sign == '-' ? left - right
           : sign == '*' ? left * right
                         : left / right;
    return left == static_cast<long>(left) ? Number(static_cast<long>(left))
                                           : problem("the result is too large");
  }
};

}  // namespace

sw::Result<sw::Outcome> Calc::run(const sw::Run& request, sw::RunEvents& /*output*/) {
  const Number value = Parser{request.code, request.env}.program();
  sw::Outcome outcome;
  if (value.ok()) outcome.value = {.text = std::to_string(*value)};
  else outcome.error = {.name = "SyntaxError", .message = value.error().message};
  if (!value.ok()) outcome.ending = sw::Ending::kGuestError;
  return outcome;
}

}  // namespace calc
