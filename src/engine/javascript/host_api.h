// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the driver can ask of the host: the functions of its `host` object. The driver hides them
// from user code, but user code is hostile: every argument is checked.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/javascript/guest_text.h"
#include "engine/javascript/quickjs.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/errno.h"

namespace sw::engine::javascript {

class JavaScriptGuest;

/// The arguments of a call. Missing ones are undefined.
class Arguments {
 public:
  Arguments(QuickJs& js, std::uint32_t address, std::uint32_t count)
      : js_(js), address_(address), count_(count) {}

  JsValue operator[](std::uint32_t index) const;
  /// 0 for what is not a number.
  double number(std::uint32_t index) const;
  /// Cut to the range of its type; NaN is 0.
  std::int64_t integer(std::uint32_t index) const;
  bool boolean(std::uint32_t index) const { return (*this)[index].as_bool(); }
  /// In the guest's memory.
  Result<GuestText> text(std::uint32_t index) const;
  /// Its first bytes, on the host: more than any name or path has.
  Result<std::string> short_text(std::uint32_t index) const;
  /// The bytes that three arguments name: an ArrayBuffer, an offset, a length. Empty when they lie
  /// outside.
  Result<std::span<std::byte>> bytes(std::uint32_t index) const;

 private:
  QuickJs& js_;
  std::uint32_t address_;
  std::uint32_t count_;
};

/// Answers with a value whose reference is given away, or JsValue::exception() after throwing.
using HostFunction = Result<JsValue> (*)(JavaScriptGuest& guest, const Arguments& arguments);

struct HostEntry {
  std::string_view name;
  HostFunction function;
};

std::span<const HostEntry> run_functions();  ///< output, clocks, environment, exit
/// What the engine knows about values; bytes, text, digests
std::span<const HostEntry> value_functions();
std::span<const HostEntry> file_functions();

/// At bake: the object with all of them.
Result<JsValue> make_host_object(QuickJs& js);

/// The import behind them: the name is a number, in two characters. Returns a box, or 0 when it
/// threw.
Result<std::uint32_t> call_host_function(JavaScriptGuest& guest, std::uint32_t name,
                                         std::uint32_t count, std::uint32_t arguments);

/// How the driver is told of a failure: a negative WASI number.
inline JsValue status(wasi::Errno error) { return JsValue::number(-static_cast<double>(error)); }

}  // namespace sw::engine::javascript
