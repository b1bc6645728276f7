// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/host_api.h"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <cmath>

#include "base/pieces.h"
#include "engine/javascript/guest.h"

namespace sw::engine::javascript {

namespace {

namespace json = boost::json;

// --- output

wasi::Stream stream_of(const Arguments& arguments) {
  return arguments.number(0) == 2 ? wasi::Stream::kStderr : wasi::Stream::kStdout;
}

Result<JsValue> write_text(JavaScriptGuest& guest, const Arguments& arguments,
                           std::string_view ending) {
  SW_TRY(GuestText text, arguments.text(1));
  SW_CHECK_OK(text.replace_lone_surrogates());
  std::string_view rest = text.view();
  wasi::Errno written = wasi::Errno::kSuccess;
  do {
    SW_CHECK_OK(look_at_stop(guest.js().cancellation()));
    // Of our own: a sink may hand it to the kernel.
    std::string block(rest.substr(0, whole_utf8_sequences(rest, kPieceBytes)));
    rest.remove_prefix(block.size());
    if (rest.empty()) block += ending;
    SW_TRY(written, guest.wasi().write_output(stream_of(arguments), as_bytes(block)));
  } while (!rest.empty() && written == wasi::Errno::kSuccess);
  return status(written);
}

Result<JsValue> print(JavaScriptGuest& guest, const Arguments& arguments) {
  return write_text(guest, arguments, "\n");
}

Result<JsValue> write(JavaScriptGuest& guest, const Arguments& arguments) {
  return write_text(guest, arguments, "");
}

Result<JsValue> write_bytes(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const auto bytes, arguments.bytes(1));
  wasi::Errno written = wasi::Errno::kSuccess;
  SW_CHECK_OK(
      in_pieces(guest.js().cancellation(), bytes, [&](std::span<std::byte> piece) -> Result<bool> {
        const Bytes block(piece.begin(), piece.end());  // a sink may hand them to the kernel
        SW_TRY(written, guest.wasi().write_output(stream_of(arguments), block));
        return written == wasi::Errno::kSuccess;
      }));
  return status(written);
}

// --- clocks and the event loop

double milliseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

Result<JsValue> now(JavaScriptGuest& guest, const Arguments&) {
  return JsValue::number(milliseconds(guest.wasi().monotonic_ns()));
}

Result<JsValue> start(JavaScriptGuest& guest, const Arguments&) {
  return JsValue::number(milliseconds(guest.start_ns()));
}

Result<JsValue> arm(JavaScriptGuest& guest, const Arguments& arguments) {
  guest.arm(static_cast<std::uint32_t>(arguments.integer(0)));
  return JsValue::undefined();
}

// --- what the run was given

Result<JsValue> environment(JavaScriptGuest& guest, const Arguments&) {
  json::object object;
  for (const auto& [name, value] : guest.env()) object[name] = value;
  return guest.js().new_string(json::serialize(object));
}

Result<JsValue> argument_list(JavaScriptGuest& guest, const Arguments&) {
  json::array array;
  array.emplace_back("/usr/bin/javascript");
  for (const std::string& argument : guest.args()) array.emplace_back(argument);
  return guest.js().new_string(json::serialize(array));
}

Result<JsValue> file_name(JavaScriptGuest& guest, const Arguments&) {
  return guest.js().new_string(guest.file_name());
}

Result<JsValue> cwd(JavaScriptGuest& guest, const Arguments&) {
  return guest.js().new_string(guest.cwd());
}

Result<JsValue> chdir(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, arguments.short_text(0));
  return status(guest.change_directory(path));
}

// --- the end

Result<JsValue> exit(JavaScriptGuest& guest, const Arguments& arguments) {
  return guest.exit(static_cast<std::int32_t>(arguments.integer(0)));
}

Result<JsValue> set_exit_code(JavaScriptGuest& guest, const Arguments& arguments) {
  guest.set_exit_code(static_cast<std::int32_t>(arguments.integer(0)));
  return JsValue::undefined();
}

constexpr std::array kRunFunctions = {
    HostEntry{"print", print},
    HostEntry{"write", write},
    HostEntry{"writeBytes", write_bytes},
    HostEntry{"now", now},
    HostEntry{"start", start},
    HostEntry{"arm", arm},
    HostEntry{"environment", environment},
    HostEntry{"argumentList", argument_list},
    HostEntry{"fileName", file_name},
    HostEntry{"cwd", cwd},
    HostEntry{"chdir", chdir},
    HostEntry{"exit", exit},
    HostEntry{"setExitCode", set_exit_code},
};

// --- dispatch

const std::vector<HostEntry>& all_functions() {
  static const std::vector<HostEntry> all = [] {
    std::vector<HostEntry> list;
    for (const auto part : {run_functions(), value_functions(), file_functions()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

// Two letters, so that the name has no NUL and looking it up costs a subtraction.
constexpr char kFirstLetter = '0';
constexpr std::size_t kLetters = 64;

std::string name_of(std::size_t index) {
  return {static_cast<char>(kFirstLetter + index / kLetters),
          static_cast<char>(kFirstLetter + index % kLetters)};
}

}  // namespace

std::span<const HostEntry> run_functions() { return kRunFunctions; }

JsValue Arguments::operator[](std::uint32_t index) const {
  if (index >= count_) return JsValue::undefined();
  const auto box = js_.memory().load<std::uint32_t>(address_ + 4 * index);
  return box ? js_.unbox(*box) : JsValue::undefined();
}

double Arguments::number(std::uint32_t index) const {
  const JsValue value = (*this)[index];
  return value.is_number() ? value.as_number() : 0;
}

std::int64_t Arguments::integer(std::uint32_t index) const {
  const double value = number(index);
  if (std::isnan(value)) return 0;
  constexpr double kLimit = 9007199254740991;  // beyond, a double has no units
  return static_cast<std::int64_t>(std::fmin(std::fmax(value, -kLimit), kLimit));
}

Result<GuestText> Arguments::text(std::uint32_t index) const {
  return GuestText::of(js_, (*this)[index]);
}

Result<std::string> Arguments::short_text(std::uint32_t index) const {
  return js_.to_text((*this)[index], wasi::kPathBytesMax + 1);
}

Result<std::span<std::byte>> Arguments::bytes(std::uint32_t index) const {
  SW_TRY(const std::span<std::byte> all, js_.array_buffer((*this)[index]));
  const double offset = number(index + 1);
  const double length = number(index + 2);
  if (!(offset >= 0 && length >= 0 && offset + length <= static_cast<double>(all.size())))
    return std::span<std::byte>();
  return all.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

Result<JsValue> make_host_object(QuickJs& js) {
  SW_TRY(const JsValue object, js.new_object());
  for (std::size_t i = 0; i < all_functions().size(); ++i) {
    SW_TRY(const JsValue function, js.new_host_function(name_of(i)));
    SW_CHECK_OK(js.set(object, all_functions()[i].name, function));
  }
  return object;
}

Result<std::uint32_t> call_host_function(JavaScriptGuest& guest, std::uint32_t name,
                                         std::uint32_t count, std::uint32_t arguments) {
  const auto letters = guest.js().memory().load<std::array<char, 2>>(name);
  const std::size_t index =
      letters ? static_cast<std::size_t>((*letters)[0] - kFirstLetter) * kLetters +
                    static_cast<std::size_t>((*letters)[1] - kFirstLetter)
              : SIZE_MAX;
  if (index >= all_functions().size())
    return Error{ErrorCode::kCorrupt, "the guest called an unknown host function", 0};
  auto result = all_functions()[index].function(guest, Arguments(guest.js(), arguments, count));
  if (!result.ok()) return std::move(result).error();
  if (*result == JsValue::exception()) return std::uint32_t{0};
  return guest.js().box(*result);
}

}  // namespace sw::engine::javascript
