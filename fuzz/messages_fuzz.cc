// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The JSON that servers of the protocol read, and the records that they keep. What is read is
// written and read again as the same.

#include <boost/json.hpp>

#include "fuzz/fuzz.h"
#include "interpreter/context_row.h"
#include "interpreter/execution_request.h"
#include "protocol/messages.h"
#include "sandbox/names.h"
#include "sandbox/records.h"
#include "snapshot/pack.h"

namespace sw::fuzz {
namespace {

namespace json = boost::json;

constexpr std::int64_t kNow = 1'700'000'000'123;

void check_records(BytesView bytes) {
  if (const auto row = interpreter::decode_context_row(bytes); row.ok()) {
    const Bytes saved = interpreter::encode(*row);
    const auto again = interpreter::decode_context_row(saved);
    require(again.ok() && interpreter::encode(*again) == saved, "a context's row");
    (void)protocol::iso_time(row->created_ms);
  }
  if (const auto record = sandbox::decode_sandbox_record(bytes); record.ok()) {
    const Bytes saved = sandbox::encode(*record);
    const auto again = sandbox::decode_sandbox_record(saved);
    require(again.ok() && sandbox::encode(*again) == saved, "a sandbox's record");
    (void)protocol::iso_time(record->last_used_ms);
  }
  if (const auto record = sandbox::decode_context_record("id", bytes); record.ok()) {
    const Bytes saved = sandbox::encode(*record);
    const auto again = sandbox::decode_context_record("id", saved);
    require(again.ok() && sandbox::encode(*again) == saved, "a context's record");
  }
}

void check_answers(const std::string& text, int status) {
  const Error error = protocol::parse_error({.status = status, .headers = {}, .body = text});
  const Error again = protocol::parse_error(protocol::error_response(error, kNow));
  require(again.code == error.code, "an error comes back");
  json::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed) return;
  if (const auto snapshot = protocol::parse_snapshot(value)) {
    const auto back = protocol::parse_snapshot(protocol::to_json(*snapshot));
    require(back && protocol::to_json(*back) == protocol::to_json(*snapshot),
            "what is said of a snapshot");
  }
}

void check_requests(const std::string& text) {
  engine::EngineInfo info;
  info.language = "javascript";
  info.limits.request_bytes = 2000;
  info.limits.code_bytes = 1000;
  const protocol::Request request{.method = "POST",
                                  .path = "/execute",
                                  .headers = {{"Content-Type", "application/json"}},
                                  .body = text};
  const auto read = interpreter::read_execution_request(request, info);
  if (read.ok()) {
    require(text.size() <= 2000 && read->code.size() <= 1000, "limits hold");
    require(validate(*read).ok(), "what is let through is valid");
  } else {
    const int status = info_of(read.error().code).http_status;
    require(status >= 400 && status < 500, "it is the request's fault");
  }
  const auto object = protocol::read_object(
      {.method = "POST", .path = "/", .headers = {{"content-length", text}}, .body = text}, 100);
  require(!object.ok() || text.size() <= 100, "a body keeps to its limit");
}

void check_names(const std::string& text) {
  if (const auto id = snapshot::parse_pack_id(text)) {
    require(snapshot::parse_pack_id(to_string(*id)) == id, "the id of a pack");
  }
  if (sandbox::check_sandbox_id(text).ok())
    require(text.size() <= 63 && storage::check_name(*sandbox::object_name(text)).ok(),
            "a sandbox's id");
  if (protocol::is_interpreter_key(text))
    require(protocol::percent_encoded(text) == text, "a key needs no encoding");
}

}  // namespace

SW_FUZZ(messages) {
  Choices choices(input);
  const int status = 400 + static_cast<int>(choices.below(200));
  const std::string text = choices.rest_text();
  check_records(as_bytes(text));
  check_answers(text, status);
  check_requests(text);
  check_names(text);
}

}  // namespace sw::fuzz
