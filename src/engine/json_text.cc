// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <iterator>
#include <utility>
#include <vector>

namespace sw::engine {

namespace {

namespace json = boost::json;

/// Prints what the parser calls back with. A value of a DOM would lose digits.
class Printer {
 public:
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  using Code = json::error_code;
  using Text = json::string_view;

  explicit Printer(std::size_t bytes) { out_.reserve(bytes); }
  std::string take() { return std::move(out_); }

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_array_begin(Code&) {
    open('[');
    return true;
  }
  bool on_array_end(std::size_t, Code&) {
    close(']');
    return true;
  }
  bool on_object_begin(Code&) {
    open('{');
    return true;
  }
  bool on_object_end(std::size_t, Code& failed) {
    const std::size_t first_key = levels_.back();
    close('}');
    if (keys_differ(first_key)) return true;
    failed = json::error::syntax;
    return false;
  }
  bool on_key_part(Text part, std::size_t, Code&) {
    put_key_part(part);
    return true;
  }
  bool on_key(Text last, std::size_t, Code&) {
    put_key_part(last);
    in_text_ = false;
    keys_.back().size = out_.size() - keys_.back().begin;
    out_ += "\":";
    return true;
  }
  bool on_string_part(Text part, std::size_t, Code&) {
    put_string_part(part);
    return true;
  }
  bool on_string(Text last, std::size_t, Code&) {
    put_string_part(last);
    in_text_ = false;
    return put_scalar("\"");
  }
  bool on_number_part(Text part, Code&) { return put_scalar(part, false); }
  bool on_int64(std::int64_t, Text last, Code&) { return put_scalar(last); }
  bool on_uint64(std::uint64_t, Text last, Code&) { return put_scalar(last); }
  bool on_double(double, Text last, Code&) { return put_scalar(last); }
  bool on_bool(bool value, Code&) { return put_scalar(value ? "true" : "false"); }
  bool on_null(Code&) { return put_scalar("null"); }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }

 private:
  struct Key {  // a part of out_
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  // Each value is followed by a comma, which what closes the array or object takes back.
  void open(char bracket) {
    out_ += bracket;
    levels_.push_back(keys_.size());
  }
  void close(char bracket) {
    if (out_.back() == ',') out_.pop_back();
    out_ += bracket;
    levels_.pop_back();
    end_value();
  }
  void end_value() {
    if (!levels_.empty()) out_ += ',';
  }
  bool put_scalar(Text text, bool whole = true) {
    out_.append(text.data(), text.size());
    if (whole) end_value();
    return true;
  }
  void put_key_part(Text part) {
    if (!in_text_) {
      out_ += '"';
      keys_.push_back({.begin = out_.size()});
    }
    in_text_ = true;
    escape(part);
  }
  void put_string_part(Text part) {
    if (!in_text_) out_ += '"';
    in_text_ = true;
    escape(part);
  }
  void escape(Text text) {
    static constexpr std::string_view kNamed = "\b\f\n\r\t\"\\";
    static constexpr std::string_view kNames = "bfnrt\"\\";
    for (const char c : text) {
      if (const std::size_t at = kNamed.find(c); at != std::string_view::npos) {
        out_ += '\\';
        out_ += kNames[at];
      } else if (static_cast<unsigned char>(c) < 0x20) {
        fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(c));
      } else {
        out_ += c;
      }
    }
  }

  /// Forgets the keys of the object that ended.
  bool keys_differ(std::size_t first_key) {
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(first_key);
    const auto text = [this](const Key& key) {
      return std::string_view(out_).substr(key.begin, key.size);
    };
    std::ranges::sort(begin, keys_.end(), {}, text);
    const bool differ = std::ranges::adjacent_find(begin, keys_.end(), {}, text) == keys_.end();
    keys_.resize(first_key);
    return differ;
  }

  std::string out_;
  std::vector<Key> keys_;            // of the objects that are open
  std::vector<std::size_t> levels_;  // open arrays and objects: how many keys there were before
  bool in_text_ = false;             // the parts of a string or key follow each other
};

/// The number in the escape \uXXXX that begins at `at`; nullopt: there is none.
std::optional<unsigned> escaped_unit(std::string_view json, std::size_t at) {
  if (at + 6 > json.size() || json[at] != '\\' || json[at + 1] != 'u') return std::nullopt;
  unsigned unit = 0;
  const char* const digits = json.data() + at + 2;
  const auto end = std::from_chars(digits, digits + 4, unit, 16);
  return end.ec == std::errc() && end.ptr == digits + 4 ? std::optional(unit) : std::nullopt;
}

}  // namespace

std::optional<std::string> normal_json(std::string_view text) {
  if (text.size() > kJsonBytesMax) return std::nullopt;
  std::string whole;
  if (text.find("\\u") != std::string_view::npos)
    text = whole = with_whole_surrogates(std::string(text));
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::basic_parser<Printer> parser(options, text.size());
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (error || used != text.size()) return std::nullopt;
  return parser.handler().take();
}

std::string with_whole_surrogates(std::string json) {
  // Only strings have backslashes. After each stands what it escapes, which may be a backslash,
  // too.
  std::size_t at = json.find('\\');
  while (at != std::string::npos) {
    const auto unit = escaped_unit(json, at);
    const bool is_surrogate = unit && *unit >= 0xD800 && *unit <= 0xDFFF;
    std::size_t length = unit ? 6 : 2;
    if (is_surrogate) {
      const auto second = escaped_unit(json, at + 6);
      const bool is_pair = *unit < 0xDC00 && second && *second >= 0xDC00 && *second <= 0xDFFF;
      if (is_pair) length = 12;
      else json.replace(at, length, "\\ufffd");
    }
    at = json.find('\\', at + length);
  }
  return json;
}

std::string with_escaped_line_ends(std::string json) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kEscapes = {
      {{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}}};
  if (std::ranges::none_of(kEscapes, [&](const auto& escape) {
        return json.find(escape.first) != std::string::npos;
      })) {
    return json;
  }
  std::string escaped;
  escaped.reserve(json.size());
  for (std::string_view rest = json; !rest.empty();) {
    const auto* const found = std::ranges::find_if(
        kEscapes, [&](const auto& escape) { return rest.starts_with(escape.first); });
    if (found == kEscapes.end()) {
      escaped += rest.front();
      rest.remove_prefix(1);
    } else {
      escaped += found->second;
      rest.remove_prefix(found->first.size());
    }
  }
  return escaped;
}

}  // namespace sw::engine
