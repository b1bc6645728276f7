// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "protocol/interpreter_routes.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/messages.h"
#include "sandbox_workers/protocol/answers.h"
#include "sandbox_workers/workspace/workspace.h"

namespace sw::protocol {

namespace {

namespace json = boost::json;

Response success() { return json_text_response(200, R"({"success":true})"); }

Result<Response> success(const Result<void>& done) {
  if (!done.ok()) return done.error();
  return success();
}

/// The parts of a path, percent-decoded; none if a part is empty.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view raw = path.substr(0, path.find('/'));
    path.remove_prefix(raw.size());
    if (raw.empty()) return {};
    parts.push_back(percent_decoded(raw));
  }
  return parts;
}

/// A member that is a non-empty string, if it is there.
Result<std::optional<std::string>> text_of(const json::object& body, std::string_view name) {
  const json::value* const given = body.if_contains(name);
  if (!given) return std::optional<std::string>();
  if (!given->is_string() || given->get_string().empty()) {
    return refusal(fmt::format("{} must be a non-empty string", name));
  }
  return std::optional<std::string>(given->get_string());
}

/// The one string member that a body must have.
Result<std::string> only_text_of(const Request& request, std::string_view name) {
  SW_TRY(const json::object body, read_object(request));
  SW_TRY(auto text, text_of(body, name));
  if (!text) return refusal(fmt::format("{} is required", name));
  return *std::move(text);
}

json::object to_json(const ContextInfo& context) {
  return {{"id", context.id},
          {"cwd", context.cwd},
          {"createdAt", iso_time(context.created_ms)},
          {"lastUsed", iso_time(context.last_used_ms)},
          {"executions", context.executions},
          {"resident", context.resident},
          {"step", context.step ? json::value(*context.step) : json::value()},
          {"snapshot",
           context.snapshot ? json::value(protocol::to_json(*context.snapshot)) : json::value()}};
}

json::object to_json(const Checkpoint& checkpoint) {
  return {{"name", checkpoint.name}, {"takenAt", checkpoint.taken_at_ms}};
}

/// One request, taken apart.
class Routes {
 public:
  Routes(Interpreter& interpreter, const Request& request, std::int64_t now_ms)
      : interpreter_(interpreter), request_(request), now_ms_(now_ms) {}

  Response answer() {
    auto response = route();
    return response.ok() ? *std::move(response) : error_response(response.error(), now_ms_);
  }

 private:
  using Handled = Result<Response>;

  Handled route() {
    if (request_.path == "/") {
      return request_.method == "DELETE" ? success(interpreter_.destroy()) : only("DELETE");
    }
    const std::vector<std::string> parts = parts_of(request_.path);
    if (parts.empty() || parts.front() != "contexts") return not_found();
    if (parts.size() > 1) return of_context(parts[1], {parts.begin() + 2, parts.end()});
    if (request_.method == "POST") return create();
    if (request_.method == "GET") return list();
    return only("GET, POST");
  }

  Handled of_context(const std::string& id, const std::vector<std::string>& rest) {
    const std::string& method = request_.method;
    const std::string_view what = rest.empty() ? std::string_view() : rest[0];
    const bool is_checkpoint = what == "checkpoints" && rest.size() == 2;
    const bool is_known =
        rest.empty() || is_checkpoint ||
        (rest.size() == 1 && (what == "fork" || what == "undo" || what == "restore" ||
                              what == "checkpoints" || what == "history"));
    if (!is_known) return not_found();
    SW_TRY(const ContextInfo context, interpreter_.context(id));
    if (what.empty()) {
      if (method == "GET") return json_response(200, to_json(context));
      return method == "DELETE" ? success(interpreter_.remove(id)) : only("GET, DELETE");
    }
    if (is_checkpoint) {
      return method == "DELETE" ? success(interpreter_.remove_checkpoint(id, rest[1]))
                                : only("DELETE");
    }
    if (what == "history") {
      if (method == "GET") return history(id);
      return method == "DELETE" ? success(interpreter_.forget_history(id)) : only("GET, DELETE");
    }
    if (what == "checkpoints" && method == "GET") return list_checkpoints(id);
    if (method != "POST") return only(what == "checkpoints" ? "GET, POST" : "POST");
    if (what == "fork") return fork(id);
    if (what == "undo") return undo(id);
    return what == "restore" ? restore(id) : add_checkpoint(id);
  }

  Handled create() {
    SW_TRY(const json::object fields, read_object(request_));
    const json::value* const id = fields.if_contains("id");
    SW_CHECK_OK(check_context_id(id && id->is_string() ? std::string_view(id->get_string()) : ""));
    SW_TRY(const auto cwd, text_of(fields, "cwd"));
    SW_TRY(const ContextInfo made,
           interpreter_.create(id->get_string(), cwd.value_or("/workspace")));
    return json_response(
        201,
        json::object{{"id", made.id}, {"cwd", made.cwd}, {"createdAt", iso_time(made.created_ms)}});
  }

  Handled list() {
    SW_TRY(const auto contexts, interpreter_.contexts());
    json::array list;
    for (const ContextInfo& context : contexts) list.push_back(to_json(context));
    return json_response(200, json::object{{"contexts", std::move(list)}});
  }

  Handled fork(const std::string& id) {
    SW_TRY(const json::object body, read_object(request_));
    SW_TRY(const auto new_id, text_of(body, "id"));
    if (!new_id) return refusal("id is required");
    SW_TRY(const ContextVersion from, read_version(body));
    return context_response(201, interpreter_.fork(id, *new_id, from));
  }

  Handled undo(const std::string& id) {
    SW_TRY(const json::object body, read_object(request_));
    const json::value* const given = body.if_contains("runs");
    boost::system::error_code error;
    const auto runs = given ? given->to_number<std::uint32_t>(error) : 1U;
    if (error || runs == 0) return refusal("runs must be an integer of at least 1");
    return context_response(200, interpreter_.undo(id, runs));
  }

  Handled list_checkpoints(const std::string& id) {
    SW_TRY(const auto known, interpreter_.checkpoints(id));
    json::array list;
    for (const Checkpoint& checkpoint : known) list.push_back(to_json(checkpoint));
    return json_response(200, json::object{{"checkpoints", std::move(list)}});
  }

  Handled add_checkpoint(const std::string& id) {
    SW_TRY(const std::string name, only_text_of(request_, "name"));
    SW_TRY(const Checkpoint added, interpreter_.add_checkpoint(id, name));
    return json_response(201, to_json(added));
  }

  Handled restore(const std::string& id) {
    SW_TRY(const json::object body, read_object(request_));
    SW_TRY(const ContextVersion version, read_version(body));
    if (!version.step() && !version.checkpoint()) return refusal("step or name is required");
    return context_response(200, interpreter_.restore(id, version));
  }

  Handled history(const std::string& id) {
    SW_TRY(const auto entries, interpreter_.history(id));
    json::array list;
    for (const HistoryEntry& entry : entries) list.push_back(protocol::to_json(entry));
    return json_response(200, json::object{{"history", std::move(list)}});
  }

  static Handled context_response(int status, const Result<ContextInfo>& context) {
    if (!context.ok()) return context.error();
    return json_response(status, to_json(*context));
  }

  Response not_found() const { return not_found_response(now_ms_); }
  Response only(std::string_view methods) const {
    return method_not_allowed_response(methods, now_ms_);
  }

  Interpreter& interpreter_;
  const Request& request_;
  const std::int64_t now_ms_;
};

}  // namespace

Response serve_interpreter(Interpreter& interpreter, const Request& request, std::int64_t now_ms) {
  return Routes(interpreter, request, now_ms).answer();
}

}  // namespace sw::protocol
