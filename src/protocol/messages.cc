// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "protocol/messages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "sandbox_workers/base/utf8.h"

namespace sw::protocol {

namespace json = boost::json;

namespace {

constexpr std::size_t kContextIdBytesMax = 128;

}  // namespace

std::string iso_time(std::int64_t ms) {
  const std::int64_t rest = (ms % 1000 + 1000) % 1000;
  const std::int64_t seconds = ms / 1000 - (ms % 1000 < 0 ? 1 : 0);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                     rest);
}

Error refusal(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), 0};
}

Result<void> check_context_id(std::string_view id) {
  if (id.empty() || id.size() > kContextIdBytesMax) {
    return refusal("id must be a non-empty string of at most 128 characters");
  }
  if (id.find('\0') != std::string_view::npos)
    return refusal("id must not contain a NUL character");
  if (first_invalid_utf8(id)) return refusal("id must be UTF-8");
  return {};
}

Error context_not_found(std::string_view id) {
  return {.code = ErrorCode::kContextNotFound,
          .message = fmt::format("Code context '{}' not found", id),
          .context = {{"contextId", std::string(id)}}};
}

Response json_text_response(int status, std::string body) {
  return {.status = status,
          .headers = {{"content-type", "application/json"}, {"cache-control", "no-store"}},
          .body = std::move(body)};
}

Response json_response(int status, const json::value& body) {
  return json_text_response(status, json::serialize(body));
}

namespace {

/// Figures are sent as numbers.
bool is_figure(std::string_view key) { return key == "maxSize" || key == "actualSize"; }

json::value context_value(std::string_view key, const std::string& text) {
  std::uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (is_figure(key) && end.ec == std::errc() && end.ptr == text.data() + text.size())
    return number;
  return json::string(to_valid_utf8(text));
}

}  // namespace

Response error_response(const Error& error, std::int64_t now_ms) {
  const ErrorCodeInfo& info = info_of(error.code);
  json::object context;
  for (const auto& [key, text] : error.context) context[key] = context_value(key, text);
  json::object body = {{"code", info.protocol_name},
                       {"message", to_valid_utf8(error.message)},
                       {"context", std::move(context)},
                       {"httpStatus", info.http_status},
                       {"timestamp", iso_time(now_ms)}};
  const auto operation = error.context.find("operation");
  if (operation != error.context.end()) body["operation"] = operation->second;
  return json_response(info.http_status, body);
}

Error parse_error(const Response& response) {
  try {
    const json::value value = json::parse(response.body);
    const json::object& object = value.as_object();
    Error error{
        .code = find_error_code(json::value_to<std::string>(object.at("code")), response.status),
        .message = json::value_to<std::string>(object.at("message"))};
    if (const json::value* context = object.if_contains("context");
        context && context->is_object()) {
      for (const auto& [key, item] : context->as_object()) {
        const bool text = item.is_string();
        error.context.emplace(key, text ? std::string(item.as_string()) : json::serialize(item));
      }
    }
    return error;
  } catch (const std::exception&) {
    return {.code = ErrorCode::kUnreachable,
            .message = fmt::format("HTTP {}: {}", response.status, response.body.substr(0, 200))};
  }
}

Result<json::object> read_object(const Request& request, std::size_t bytes_max) {
  std::size_t announced = 0;
  if (const auto length = find_header(request.headers, "content-length")) {
    (void)std::from_chars(length->data(), length->data() + length->size(), announced);
  }
  if (announced > bytes_max || request.body.size() > bytes_max) {
    return Error{ErrorCode::kRequestTooLarge, "Request too large", 0};
  }
  json::error_code failed;
  json::value value = json::parse(request.body, failed);
  if (failed) return refusal("Invalid JSON");
  if (!value.is_object()) return refusal("Expected an object");
  return std::move(value.as_object());
}

Result<void> check_code(std::string_view code, std::size_t bytes_max) {
  if (code.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos) {
    return refusal("Non-empty code is required");
  }
  if (code.size() <= bytes_max) return {};
  return Error{ErrorCode::kRequestTooLarge, fmt::format("Code exceeds {} KiB", bytes_max / 1024),
               0};
}

std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint8_t byte = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto end = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
      if (end.ec == std::errc() && end.ptr == text.data() + i + 3) {
        plain += static_cast<char>(byte);
        i += 2;
        continue;
      }
    }
    plain += text[i];
  }
  return plain;
}

std::string percent_encoded(std::string_view text) {
  std::string coded;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) coded += c;
    else coded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return coded;
}

json::object to_json(const HistoryEntry& entry) {
  return {{"step", entry.step},
          {"takenAt", entry.taken_at_ms},
          {"code", entry.code},
          {"bytes", entry.bytes},
          {"files", json::value_from(entry.files)},
          {"filesChanged", entry.files_changed},
          {"current", entry.current},
          {"checkpoints", json::value_from(entry.checkpoints)}};
}

Result<ContextVersion> read_version(const json::object& body) {
  const json::value* const step = body.if_contains("step");
  const json::value* const name = body.if_contains("name");
  if (step && name) return refusal("step and name exclude each other");
  if (step) {
    boost::system::error_code failed;
    const auto number = step->is_number() ? step->to_number<std::uint64_t>(failed) : 0;
    if (failed || number == 0) return refusal("step must be an integer of at least 1");
    return ContextVersion(number);
  }
  if (!name) return ContextVersion();
  if (!name->is_string() || name->get_string().empty()) {
    return refusal("name must be a non-empty string");
  }
  return ContextVersion(std::string(name->get_string()));
}

json::object to_json(const SnapshotInfo& snapshot) {
  return {{"build", snapshot.build},         {"pages", snapshot.pages},
          {"bytes", snapshot.bytes},         {"storedBytes", snapshot.stored_bytes},
          {"takenAt", snapshot.taken_at_ms}, {"stale", snapshot.stale}};
}

std::optional<SnapshotInfo> parse_snapshot(const json::value& value) {
  try {
    const json::object& object = value.as_object();
    return SnapshotInfo{.build = json::value_to<std::string>(object.at("build")),
                        .pages = object.at("pages").to_number<std::uint64_t>(),
                        .bytes = object.at("bytes").to_number<std::uint64_t>(),
                        .stored_bytes = object.at("storedBytes").to_number<std::uint64_t>(),
                        .taken_at_ms = object.at("takenAt").to_number<std::int64_t>(),
                        .stale = object.at("stale").as_bool()};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace sw::protocol
