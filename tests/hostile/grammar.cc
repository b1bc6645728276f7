// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "hostile/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "cases/case_file.h"
#include "hostile/holes.h"
#include "sandbox_workers/base/files.h"

namespace sw::hostile {

namespace {

constexpr std::string_view kOpen = "«";
constexpr std::string_view kClose = "»";
constexpr std::string_view kHeading = "=== ";
// Beyond these only rules without further rules are taken, and then nothing at all.
constexpr int kDepthMax = 7;
constexpr std::size_t kBytesMax = 200'000;
// One in so many programs has an ending that is known beforehand.
constexpr std::uint64_t kKnownShare = 8;

Error bad(std::string_view what, std::string_view where) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: '{}'", what, where), 0};
}

/// Blanks at the end of `text`, if its last line has nothing else.
std::string indentation(std::string_view text) {
  const std::size_t begin = text.find_last_of('\n') + 1;
  const std::string_view line = text.substr(begin);
  return line.find_first_not_of(' ') == std::string_view::npos ? std::string(line) : std::string();
}

void append_indented(std::string& to, std::string_view text) {
  const std::string indent = indentation(to);
  for (const char c : text) {
    to += c;
    if (c == '\n') to += indent;
  }
}

}  // namespace

/// One program in the making.
class Grammar::Expansion {
 public:
  Expansion(const Grammar& grammar, Dice& dice, Program& program)
      : grammar_(grammar), dice_(dice), program_(program) {}

  std::string expand(const Rule& rule, int depth) {
    program_.files = program_.files || rule.files;
    program_.lingers = program_.lingers || rule.lingers;
    std::string text;
    for (const Piece& piece : rule.pieces) {
      if (piece.is_hole) append_indented(text, fill(piece.text, depth));
      else text += piece.text;
    }
    bytes_ += text.size();
    return text;
  }

  const Rule& choose(std::string_view kind, int depth) {
    const std::vector<Rule>& rules = grammar_.rules_.find(kind)->second;
    const bool only_leaves =
        (depth > kDepthMax || bytes_ > kBytesMax) && std::ranges::any_of(rules, &Rule::is_leaf);
    std::uint64_t total = 0;
    for (const Rule& rule : rules) total += only_leaves && !rule.is_leaf ? 0 : rule.weight;
    std::uint64_t drawn = dice_.below(total);
    for (const Rule& rule : rules) {
      const std::uint64_t weight = only_leaves && !rule.is_leaf ? 0 : rule.weight;
      if (drawn < weight) return rule;
      drawn -= weight;
    }
    return rules.back();
  }

 private:
  std::string fill(std::string_view hole, int depth) {
    if (grammar_.rules_.contains(hole)) {
      // Far too deep: kinds without leaves end here.
      if (depth > 3 * kDepthMax) return "1";
      return expand(choose(hole, depth + 1), depth + 1);
    }
    if (hole == "mutated" || hole == "garbage") {
      program_.files = program_.lingers = true;  // it may be anything
      return hole == "garbage" ? garbage(dice_) : mutated(dice_, grammar_.cells_);
    }
    if (hole == "code") {
      const auto code = static_cast<std::int32_t>(dice_.below(256));
      if (program_.known) program_.known->code = code;
      return std::to_string(code);
    }
    return fill_hole(dice_, hole).value_or("");
  }

  const Grammar& grammar_;
  Dice& dice_;
  Program& program_;
  std::size_t bytes_ = 0;
};

Program Grammar::draw(Dice& dice) const {
  Program program;
  Expansion expansion(*this, dice, program);
  const bool is_known = dice.one_in(kKnownShare);
  const Rule& rule = expansion.choose(is_known ? "known" : "program", 0);
  if (is_known) {
    program.known = Known{.ending = rule.words.at(0),
                          .error = rule.words.size() > 1 ? rule.words.at(1) : "",
                          .code = 0};
  }
  program.code = expansion.expand(rule, 0);
  return program;
}

Result<void> Grammar::add(std::string_view heading, std::string_view body) {
  std::istringstream words{std::string(heading)};
  std::string kind;
  words >> kind;
  Rule rule;
  for (std::string word; words >> word;) {
    if (word == "files") rule.files = true;
    else if (word == "lingers") rule.lingers = true;
    else if (std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; }))
      rule.weight = std::stoul(word);
    else if (kind == "known") rule.words.push_back(word);
    else kind += ' ' + word;
  }
  if (kind == "known" && rule.words.empty()) return bad("no ending", heading);
  while (!body.empty()) {
    const std::size_t open = std::min(body.find(kOpen), body.size());
    rule.pieces.push_back({.text = std::string(body.substr(0, open)), .is_hole = false});
    body.remove_prefix(open);
    if (body.empty()) break;
    const std::size_t close = body.find(kClose);
    if (close == std::string_view::npos) return bad("a hole without its end", body);
    rule.pieces.push_back(
        {.text = std::string(body.substr(kOpen.size(), close - kOpen.size())), .is_hole = true});
    body.remove_prefix(close + kClose.size());
  }
  rules_[kind].push_back(std::move(rule));
  return {};
}

void Grammar::find_leaves() {
  for (auto& [kind, rules] : rules_) {
    for (Rule& rule : rules) {
      rule.is_leaf = std::ranges::none_of(rule.pieces, [&](const Piece& piece) {
        return piece.is_hole && rules_.contains(piece.text);
      });
    }
  }
}

Result<Grammar> Grammar::read(const std::filesystem::path& file,
                              const std::filesystem::path& cases) {
  Grammar grammar;
  SW_TRY(const std::string text, read_text_file(file));
  std::string_view rest = text;
  for (std::size_t at = rest.find("\n" + std::string(kHeading)); at != std::string_view::npos;) {
    rest.remove_prefix(at + 1 + kHeading.size());
    at = rest.find("\n" + std::string(kHeading));
    const std::string_view section = rest.substr(0, at);
    const std::size_t line = section.find('\n');
    if (line == std::string_view::npos) return bad("a heading without a body", section);
    std::string_view body = section.substr(line + 1);
    while (body.ends_with('\n')) body.remove_suffix(1);
    SW_CHECK_OK(grammar.add(section.substr(0, line), body));
  }
  grammar.find_leaves();
  for (const auto& [kind, rules] : grammar.rules_) {
    for (const Rule& rule : rules) {
      for (const Piece& piece : rule.pieces) {
        if (piece.is_hole && !grammar.rules_.contains(piece.text) && !is_hole(piece.text)) {
          return bad("nothing fills this hole", piece.text);
        }
      }
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(cases)) {
    SW_TRY(const cases::CaseFile found, cases::read_case(entry.path()));
    for (const cases::Step& step : found.steps) {
      if (!step.run.body.empty()) grammar.cells_.push_back(step.run.body);
    }
  }
  std::ranges::sort(grammar.cells_);  // the folder's own order differs from machine to machine
  return grammar;
}

}  // namespace sw::hostile
