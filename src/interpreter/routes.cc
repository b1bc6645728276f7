// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/routes.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "runtime/messages.h"
#include "sandbox_workers/runtime/answers.h"

namespace sw::interpreter {

using runtime::ErrorBody;
using runtime::Request;
using runtime::Response;

namespace {

namespace json = boost::json;

/// The answer to an Error of Contexts.
ErrorBody body_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kLimitExceeded: return runtime::validation_failed(error.message);
    case ErrorCode::kNotFound: return runtime::validation_failed(error.message, 404);
    default: return runtime::error_body(error);
  }
}

Response success() { return runtime::json_text_response(200, R"({"success":true})"); }

/// The parts of a path, percent-decoded; none if a part is empty.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view raw = path.substr(0, path.find('/'));
    path.remove_prefix(raw.size());
    if (raw.empty()) return {};
    parts.push_back(runtime::percent_decoded(raw));
  }
  return parts;
}

/// A member that is a non-empty string, if it is there.
ValueOr<std::optional<std::string>, ErrorBody> text_of(const json::object& body, std::string_view name) {
  const json::value* const given = body.if_contains(name);
  if (!given) return std::optional<std::string>();
  if (!given->is_string() || given->get_string().empty()) {
    return runtime::validation_failed(fmt::format("{} must be a non-empty string", name));
  }
  return std::optional<std::string>(given->get_string());
}

/// The one string member that a body must have.
ValueOr<std::string, ErrorBody> only_text_of(const Request& request, std::string_view name) {
  SW_TRY(const json::object body, runtime::read_object(request));
  SW_TRY(auto text, text_of(body, name));
  if (!text) return runtime::validation_failed(fmt::format("{} is required", name));
  return *std::move(text);
}

}  // namespace

Response Routes::fetch(const Request& request) {
  const auto parts = parts_of(request.path);
  Answer answer = not_found();
  if (request.path == "/") {
    answer = request.method == "DELETE" ? destroy() : only("DELETE");
  } else if (const auto made = contexts_.ensure_metadata(); !made.ok()) {
    answer = runtime::error_body(made.error());
  } else if (!parts.empty() && parts.front() == "contexts") {
    answer = route(request, {parts.begin() + 1, parts.end()});
  }
  if (auto* error = std::get_if<ErrorBody>(&answer)) return runtime::error_response(*error, contexts_.now_ms());
  return std::get<Response>(std::move(answer));
}

Routes::Answer Routes::route(const Request& request, const std::vector<std::string>& parts) {
  if (!parts.empty()) return with_context(request, parts);
  if (request.method == "POST") return create(request);
  if (request.method == "GET") return list();
  return only("GET, POST");
}

Routes::Answer Routes::with_context(const Request& request, const std::vector<std::string>& parts) {
  const std::string& id = parts[0];
  const std::string& method = request.method;
  const std::string_view what = parts.size() == 1 ? std::string_view() : parts[1];
  const bool is_checkpoint = what == "checkpoints" && parts.size() == 3;
  const bool is_known =
      parts.size() == 1 || is_checkpoint ||
      (parts.size() == 2 && (what == "fork" || what == "undo" || what == "restore" || what == "checkpoints"));
  if (!is_known) return not_found();

  if (const auto row = contexts_.find(id); !row.ok()) return runtime::error_body(row.error());
  else if (!*row) return runtime::context_not_found(id);
  if (what.empty()) {
    if (method == "GET") return get(id);
    return method == "DELETE" ? remove(id) : only("GET, DELETE");
  }
  if (is_checkpoint) return method == "DELETE" ? remove_checkpoint(id, parts[2]) : only("DELETE");
  if (what == "checkpoints" && method == "GET") return list_checkpoints(id);
  if (method != "POST") return only(what == "checkpoints" ? "GET, POST" : "POST");
  if (what == "fork") return fork(request, id);
  if (what == "undo") return undo(request, id);
  return what == "restore" ? restore_checkpoint(request, id) : add_checkpoint(request, id);
}

// --- contexts

Routes::Answer Routes::destroy() {
  if (const auto done = server_.destroy(); !done.ok()) return runtime::error_body(done.error());
  return success();
}

Routes::Answer Routes::create(const Request& request) {
  SW_TRY(const json::object fields, runtime::read_object(request));
  const json::value* const id = fields.if_contains("id");
  if (!id || !id->is_string()) {
    return runtime::validation_failed("id must be a non-empty string of at most 128 characters");
  }
  SW_TRY(const auto given, text_of(fields, "cwd"));
  const std::string folder = given.value_or("/workspace");
  const auto cwd = Workspace::normalize(folder);
  if (!cwd.ok()) return runtime::validation_failed(fmt::format("Path escapes /workspace: {}", folder));
  const auto row = contexts_.create(id->get_string(), *cwd);
  if (!row.ok()) return body_of(row.error());
  return runtime::json_text_response(
      201, json::serialize(json::object{
               {"id", id->get_string()}, {"cwd", row->cwd}, {"createdAt", runtime::iso_time(row->created_ms)}}));
}

Result<std::string> Routes::context_json(const std::string& id, const ContextRow& row) {
  SW_TRY(const auto snapshot, contexts_.snapshot_info(id, row));
  return json::serialize(
      json::object{{"id", id},
                   {"cwd", row.cwd},
                   {"createdAt", runtime::iso_time(row.created_ms)},
                   {"lastUsed", runtime::iso_time(row.last_used_ms)},
                   {"executions", row.executions},
                   {"resident", server_.tenant_.has(id)},
                   {"snapshot", snapshot ? json::value(runtime::to_json(*snapshot)) : json::value()}});
}

Routes::Answer Routes::context_answer(int status, const std::string& id, const Result<ContextRow>& row) {
  if (!row.ok()) return body_of(row.error());
  auto text = context_json(id, *row);
  if (!text.ok()) return runtime::error_body(text.error());
  return runtime::json_text_response(status, *std::move(text));
}

Routes::Answer Routes::list() {
  const auto rows = contexts_.list();
  if (!rows.ok()) return runtime::error_body(rows.error());
  std::string text;
  for (const auto& [id, row] : *rows) {
    const auto one = context_json(id, row);
    if (!one.ok()) return runtime::error_body(one.error());
    if (!text.empty()) text += ',';
    text += *one;
  }
  return runtime::json_text_response(200, fmt::format(R"({{"contexts":[{}]}})", text));
}

Routes::Answer Routes::get(const std::string& id) {
  const auto row = contexts_.find(id);
  if (!row.ok()) return runtime::error_body(row.error());
  return context_answer(200, id, **row);
}

Routes::Answer Routes::remove(const std::string& id) {
  server_.tenant_.drop(id);
  if (const auto done = contexts_.remove(id); !done.ok()) return runtime::error_body(done.error());
  return success();
}

// --- versions

Routes::Answer Routes::forgotten(const std::string& id, const Result<ContextRow>& row) {
  if (row.ok()) server_.tenant_.drop(id);
  return context_answer(200, id, row);
}

Routes::Answer Routes::fork(const Request& request, const std::string& id) {
  SW_TRY(const std::string new_id, only_text_of(request, "id"));
  return context_answer(201, new_id, contexts_.fork(id, new_id));
}

Routes::Answer Routes::undo(const Request& request, const std::string& id) {
  SW_TRY(const json::object body, runtime::read_object(request));
  const json::value* const given = body.if_contains("runs");
  boost::system::error_code error;
  const auto runs = given ? given->to_number<std::uint32_t>(error) : 1U;
  if (error || runs == 0) return runtime::validation_failed("runs must be a whole number from 1 on");
  return forgotten(id, contexts_.undo(id, runs));
}

namespace {

json::object checkpoint_object(const snapshot::CheckpointInfo& checkpoint) {
  return {{"name", checkpoint.label}, {"takenAt", checkpoint.time_ms}};
}

}  // namespace

Routes::Answer Routes::list_checkpoints(const std::string& id) {
  const auto known = contexts_.checkpoints(id);
  if (!known.ok()) return body_of(known.error());
  json::array list;
  for (const snapshot::CheckpointInfo& checkpoint : *known) list.push_back(checkpoint_object(checkpoint));
  return runtime::json_text_response(200, json::serialize(json::object{{"checkpoints", std::move(list)}}));
}

Routes::Answer Routes::add_checkpoint(const Request& request, const std::string& id) {
  SW_TRY(const std::string name, only_text_of(request, "name"));
  const auto added = contexts_.add_checkpoint(id, name);
  if (!added.ok()) return body_of(added.error());
  return runtime::json_text_response(201, json::serialize(checkpoint_object(*added)));
}

Routes::Answer Routes::remove_checkpoint(const std::string& id, const std::string& name) {
  if (const auto done = contexts_.remove_checkpoint(id, name); !done.ok()) return body_of(done.error());
  return success();
}

Routes::Answer Routes::restore_checkpoint(const Request& request, const std::string& id) {
  SW_TRY(const std::string name, only_text_of(request, "name"));
  return forgotten(id, contexts_.restore_checkpoint(id, name));
}

}  // namespace sw::interpreter
