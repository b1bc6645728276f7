// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What the engine knows about values but JavaScript cannot ask; conversions of bytes and text;
// digests.

#include <openssl/evp.h>

#include <array>
#include <memory>

#include "base/pieces.h"
#include "engine/javascript/guest.h"
#include "engine/javascript/host_api.h"
#include "wasi/random.h"

namespace sw::engine::javascript {

namespace {

Result<JsValue> class_id(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::int32_t id,
         guest.instance().call(guest.js().exports().class_id, arguments[0].bits));
  return JsValue::number(id);
}

Result<bool> answer_is_proxy(JavaScriptGuest& guest, JsValue value) {
  if (!value.is(JsValue::kObject)) return false;
  SW_TRY(const std::int32_t answer,
         guest.instance().call(guest.js().exports().is_proxy, value.bits));
  return answer != 0;
}

Result<JsValue> is_proxy(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const bool answer, answer_is_proxy(guest, arguments[0]));
  return JsValue::boolean(answer);
}

/// One of a proxy's two objects; null for a revoked proxy.
Result<JsValue> proxy_part(
    JavaScriptGuest& guest, JsValue proxy,
    const wasm::Function<std::uint64_t(std::uint32_t, std::uint64_t)>& part) {
  SW_TRY(const bool is_a_proxy, answer_is_proxy(guest, proxy));
  if (!is_a_proxy) return JsValue::of(JsValue::kNull);
  SW_TRY(const std::uint64_t bits,
         guest.instance().call(part, guest.js().anchors().context, proxy.bits));
  if (JsValue{bits} != JsValue::exception()) return JsValue{bits};
  SW_TRY(const JsValue problem, guest.js().take_exception());
  SW_CHECK_OK(guest.js().free(problem));
  return JsValue::of(JsValue::kNull);
}

Result<JsValue> proxy_target(JavaScriptGuest& guest, const Arguments& arguments) {
  return proxy_part(guest, arguments[0], guest.js().exports().proxy_target);
}

Result<JsValue> proxy_handler(JavaScriptGuest& guest, const Arguments& arguments) {
  return proxy_part(guest, arguments[0], guest.js().exports().proxy_handler);
}

Result<JsValue> promise_state(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const auto state, guest.js().promise_state(arguments[0]));
  return JsValue::number(static_cast<double>(state));
}

Result<JsValue> promise_result(JavaScriptGuest& guest, const Arguments& arguments) {
  return guest.js().promise_result(arguments[0]);
}

Result<JsValue> memory_size(JavaScriptGuest& guest, const Arguments&) {
  return JsValue::number(static_cast<double>(guest.js().memory().size()));
}

Result<JsValue> memory_used(JavaScriptGuest& guest, const Arguments&) {
  SW_TRY(const std::uint32_t bytes, guest.instance().call(guest.js().exports().allocated_size));
  return JsValue::number(bytes);
}

/// Runs a script of the sandbox's files in global scope and answers with its value.
Result<JsValue> eval_script(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const GuestText code, arguments.text(0));
  SW_TRY(const GuestText file, arguments.text(1));
  return guest.js().compile(code.address(), code.view().size(), file.address(), 0);
}

// --- bytes and text

Result<JsValue> utf8_encode(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(GuestText text, arguments.text(0));
  SW_CHECK_OK(text.replace_lone_surrogates());
  return guest.js().new_array_buffer(as_bytes(text.view()));
}

Result<JsValue> utf8_decode(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const auto bytes, arguments.bytes(0));
  return new_valid_string(guest.js(), bytes);
}

Result<JsValue> utf8_valid(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const auto bytes, arguments.bytes(0));
  bool valid = true;
  SW_CHECK_OK(in_pieces(guest.js().cancellation(), as_text(bytes),
                        [&](std::string_view piece) -> Result<bool> {
                          valid = !first_invalid_utf8(piece);
                          return valid;
                        }));
  return JsValue::boolean(valid);
}

Result<JsValue> random_fill(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const auto bytes, arguments.bytes(0));
  SW_TRY(const wasi::Errno filled, wasi::fill_random(bytes, guest.js().cancellation()));
  if (filled != wasi::Errno::kSuccess) {
    return Error{ErrorCode::kUnavailable, "cannot get random bytes from the kernel", 0};
  }
  return JsValue::undefined();
}

/// undefined for an algorithm that OpenSSL does not know.
Result<JsValue> digest(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string name, arguments.short_text(0));
  SW_TRY(const auto bytes, arguments.bytes(1));
  const EVP_MD* const algorithm = EVP_get_digestbyname(name.c_str());
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(),
                                                                      &EVP_MD_CTX_free);
  if (algorithm == nullptr || !state || EVP_DigestInit_ex(state.get(), algorithm, nullptr) != 1) {
    return JsValue::undefined();
  }
  bool good = true;
  SW_CHECK_OK(in_pieces(guest.js().cancellation(), bytes, [&](std::span<std::byte> piece) {
    good = good && EVP_DigestUpdate(state.get(), piece.data(), piece.size()) == 1;
  }));
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned int size = 0;
  if (!good || EVP_DigestFinal_ex(state.get(), out.data(), &size) != 1) return JsValue::undefined();
  return guest.js().new_array_buffer(std::as_bytes(std::span(out).first(size)));
}

constexpr std::array kValueFunctions = {
    HostEntry{"classId", class_id},           HostEntry{"isProxy", is_proxy},
    HostEntry{"proxyTarget", proxy_target},   HostEntry{"proxyHandler", proxy_handler},
    HostEntry{"promiseState", promise_state}, HostEntry{"promiseResult", promise_result},
    HostEntry{"memorySize", memory_size},     HostEntry{"memoryUsed", memory_used},
    HostEntry{"evalScript", eval_script},     HostEntry{"utf8Encode", utf8_encode},
    HostEntry{"utf8Decode", utf8_decode},     HostEntry{"utf8Valid", utf8_valid},
    HostEntry{"randomFill", random_fill},     HostEntry{"digest", digest},
};

}  // namespace

std::span<const HostEntry> value_functions() { return kValueFunctions; }

}  // namespace sw::engine::javascript
