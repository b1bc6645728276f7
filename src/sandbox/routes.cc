// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The sandbox as a server sees it: every route of the protocol, from the request to the response.

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <charconv>

#include "engine/result_json.h"
#include "protocol/messages.h"
#include "sandbox/file_routes.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"

namespace sw::sandbox {

namespace json = boost::json;

namespace {

constexpr std::size_t kFilesBodyBytesMax = 2'097'152;

json::object context_object(const ContextRecord& record) {
  return {{"id", record.id},
          {"binding", record.binding},
          {"language", record.language},
          {"cwd", record.cwd},
          {"createdAt", protocol::iso_time(record.created_ms)},
          {"lastUsed", protocol::iso_time(record.last_used_ms)}};
}

json::object context_details(const ContextRecord& record) {
  json::object object = context_object(record);
  object["engine"] = record.engine;
  object["executions"] = record.executions;
  object["snapshot"] =
      record.snapshot ? json::value(protocol::to_json(*record.snapshot)) : json::value(nullptr);
  return object;
}

json::object success() { return {{"success", true}}; }

/// A string that is not empty; `message` refuses anything else.
Result<std::string> required_text(const json::object& object, std::string_view key,
                                  const char* message) {
  const json::value* const value = object.if_contains(key);
  if (!value || !value->is_string() || value->as_string().empty())
    return protocol::refusal(message);
  return std::string(value->as_string());
}

/// The same, or nothing at all.
Result<std::optional<std::string>> optional_text(const json::object& object, std::string_view key,
                                                 const char* message) {
  if (!object.contains(key)) return std::optional<std::string>();
  SW_TRY(std::string text, required_text(object, key, message));
  return std::optional<std::string>(std::move(text));
}

/// Whether files go back as well.
Result<VersionOptions> version_options(const json::object& object) {
  const json::value* const files = object.if_contains("files");
  if (files && !files->is_bool()) return protocol::refusal("files must be true or false");
  return VersionOptions{.files = files && files->get_bool()};
}

void add_files(json::object& answer, const VersionFiles& files, const VersionOptions& options) {
  if (files.step) answer["step"] = *files.step;
  if (options.files) {
    answer["filesRestored"] = files.restored;
  } else if (files.known) {
    answer["filesDiffer"] = json::value_from(files.differ);
    answer["filesDifferCount"] = files.differ_count;
  }
}

/// envVars, where null unsets; not there means none.
Result<EnvChanges> env_field(const json::object& object, bool null_allowed) {
  EnvChanges changes;
  const json::value* const value = object.if_contains("envVars");
  if (!value) return changes;
  if (!value->is_object()) return protocol::refusal("envVars must be an object");
  for (const auto& [name, text] : value->as_object()) {
    if (!is_identifier(name))
      return protocol::refusal(fmt::format("Invalid envVars key: {}", std::string_view(name)));
    if (text.is_string()) changes.emplace(name, std::string(text.as_string()));
    else if (text.is_null() && null_allowed) changes.emplace(name, std::nullopt);
    else return protocol::refusal("envVars values must be strings");
  }
  return changes;
}

/// A name that `find` knows, or nothing at all.
template <class T>
Result<std::optional<T>> named_choice(const json::object& object, std::string_view key,
                                      std::optional<T> (*find)(std::string_view),
                                      const char* message) {
  const json::value* const value = object.if_contains(key);
  if (!value) return std::optional<T>();
  std::optional<T> found;
  if (value->is_string()) found = find(value->get_string());
  if (!found) return protocol::refusal(message);
  return found;
}

}  // namespace

/// What came, taken apart.
class Routes {
 public:
  Routes(Sandbox& sandbox, const protocol::Request& request)
      : sandbox_(sandbox), request_(request) {}

  protocol::Response answer() {
    auto response = dispatch();
    return response.ok() ? *std::move(response)
                         : protocol::error_response(response.error(), sandbox_.now_ms());
  }

 private:
  using Handled = Result<protocol::Response>;

  Handled dispatch() {
    const auto id = protocol::find_header(request_.headers, "x-sandbox-id").value_or("");
    if (const auto checked = check_sandbox_id(id); !checked.ok())
      return protocol::refusal(checked.error().message);
    if (is("DELETE", "/")) return destroy();
    SW_CHECK_OK(sandbox_.check_loads());
    if (is("GET", "/")) return info();
    if (is("POST", "/execute")) return execute();
    if (is("POST", "/contexts")) return create_context();
    if (is("GET", "/contexts")) return list_contexts();
    if (is("POST", "/env")) return set_env();
    if (is("POST", "/files")) return files();
    constexpr std::string_view kContexts = "/contexts/";
    if (request_.path.starts_with(kContexts))
      return of_context(request_.path.substr(kContexts.size()));
    return not_found();
  }

  Handled of_context(std::string_view rest) {
    const std::size_t slash = rest.find('/');
    const std::string id = protocol::percent_decoded(rest.substr(0, slash));
    const std::string_view what = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
    const std::string& method = request_.method;
    if (id.empty()) return not_found();
    if (method == "DELETE" && slash == std::string_view::npos) {
      NoOutput nobody_reads;
      return done(sandbox_.delete_context(id, nobody_reads));
    }
    if (method == "POST" && what == "fork") return fork(id);
    if (method == "POST" && what == "undo") return undo(id);
    if (method == "POST" && what == "restore") return restore(id);
    if (method == "POST" && what == "checkpoints") return add_checkpoint(id);
    if (method == "GET" && what == "history") return history(id);
    if (method == "GET" && what == "checkpoints") {
      return checkpoints(id);
    }
    constexpr std::string_view kOne = "checkpoints/";
    if (method == "DELETE" && what.starts_with(kOne) && what.size() > kOne.size()) {
      return done(
          sandbox_.remove_checkpoint(id, protocol::percent_decoded(what.substr(kOne.size()))));
    }
    return not_found();
  }

  bool is(std::string_view method, std::string_view path) const {
    return request_.method == method && request_.path == path;
  }

  static Error not_found() { return Error{ErrorCode::kNotFound, "Not found", 0}; }

  static Handled done(const Result<void>& outcome) {
    if (!outcome.ok()) return outcome.error();
    return protocol::json_response(200, success());
  }

  static Handled done(const Result<VersionFiles>& outcome, const VersionOptions& options) {
    if (!outcome.ok()) return outcome.error();
    json::object answer = success();
    add_files(answer, *outcome, options);
    return protocol::json_response(200, answer);
  }

  Result<json::object> body(std::size_t bytes_max = protocol::kBodyBytesMax) const {
    return protocol::read_object(request_, bytes_max);
  }

  Handled destroy() {
    NoOutput nobody_reads;
    return done(sandbox_.destroy(nobody_reads));
  }

  Handled info() {
    SW_TRY(const SandboxInfo info, sandbox_.info());
    json::array contexts;
    for (const ContextRecord& record : info.contexts) contexts.push_back(context_details(record));
    json::object env;
    for (const auto& [name, value] : info.record.env) env[name] = value;
    return protocol::json_response(
        200, json::object{{"id", info.id},
                          {"createdAt", protocol::iso_time(info.record.created_ms)},
                          {"lastUsed", protocol::iso_time(info.record.last_used_ms)},
                          {"envVars", std::move(env)},
                          {"contexts", std::move(contexts)},
                          {"workspace", {{"files", info.files}, {"bytes", info.bytes}}},
                          {"fileApi", info.file_api},
                          {"expiresAt", info.expires_at_ms ? json::value(*info.expires_at_ms)
                                                           : json::value(nullptr)}});
  }

  Handled create_context() {
    SW_TRY(const json::object object, body());
    NewContext wanted;
    SW_TRY(wanted.binding, required_text(object, "binding", "binding is required"));
    SW_TRY(wanted.id,
           optional_text(object, "id", "id must be a non-empty string of at most 128 characters"));
    if (wanted.id) SW_CHECK_OK(protocol::check_context_id(*wanted.id));
    SW_TRY(const auto cwd, optional_text(object, "cwd", "cwd must be a non-empty string"));
    if (cwd) {
      const auto path = Workspace::normalize(*cwd);
      if (!path.ok()) return protocol::refusal(path.error().message);
      wanted.cwd = *path;
    }
    SW_TRY(const EnvChanges env, env_field(object, false));
    apply(wanted.env, env);
    SW_TRY(const ContextRecord record, sandbox_.create_context(wanted));
    return protocol::json_response(201, context_object(record));
  }

  Handled list_contexts() {
    SW_TRY(const auto records, sandbox_.contexts());
    json::array contexts;
    for (const ContextRecord& record : records) contexts.push_back(context_object(record));
    return protocol::json_response(200, json::object{{"contexts", std::move(contexts)}});
  }

  Handled execute() {
    SW_TRY(const json::object object, body());
    if (object.contains("cwd"))
      return protocol::refusal("cwd is a context property; pass it to createCodeContext");
    Run run;
    if (const json::value* code = object.if_contains("code"); code && code->is_string()) {
      run.code = std::string(code->as_string());
    }
    SW_CHECK_OK(protocol::check_code(run.code, sandbox_.parts_.options.code_bytes_max));
    SW_TRY(const EnvChanges env, env_field(object, true));
    for (const auto& [name, value] : env) {
      if (value) run.env.emplace_back(name, *value);
      else run.unset_env.push_back(name);
    }
    SW_TRY(const auto context,
           optional_text(object, "contextId", "contextId must be a non-empty string"));
    run.context = context.value_or("");
    SW_TRY(const auto binding,
           optional_text(object, "binding", "binding must be a non-empty string"));
    SW_TRY(const auto profile, named_choice(object, "profile", &protocol::find_profile,
                                            "profile must be 'standard' or 'compat'"));
    SW_TRY(run.on_error, named_choice(object, "onError", &protocol::parse_on_error,
                                      "onError must be 'keep' or 'rollback'"));
    if (!run.on_error && profile) run.on_error = profile->after_error;
    run.limits = sandbox_.parts_.options.run_limits;
    run.cancel = request_.cancel;
    RunOutput output;
    SW_TRY(Finished finished, sandbox_.run(run, binding.value_or(""), output));
    finished.outcome.out = std::move(output.out);
    finished.outcome.err = std::move(output.err);
    return protocol::json_text_response(
        200,
        engine::execution_result_json(finished.language, finished.engine, run, finished.outcome,
                                      {.expires_at_ms = finished.expires_at_ms, .files = {}}));
  }

  Handled set_env() {
    SW_TRY(const json::object object, body());
    if (!object.contains("envVars")) return protocol::refusal("envVars is required");
    SW_TRY(const EnvChanges changes, env_field(object, true));
    return done(sandbox_.set_env(changes));
  }

  Handled files() {
    SW_CHECK_OK(sandbox_.check_files());  // before the body is looked at
    SW_TRY(const json::object object, body(kFilesBodyBytesMax));
    SW_TRY(const json::object outcome, file_operation(sandbox_, object));
    json::object answer = success();
    for (const auto& [key, value] : outcome) answer[key] = value;
    answer["timestamp"] = protocol::iso_time(sandbox_.now_ms());
    return protocol::json_response(200, answer);
  }

  Handled fork(const std::string& id) {
    SW_TRY(const json::object object, optional_body());
    SW_TRY(const auto new_id,
           optional_text(object, "id", "id must be a non-empty string of at most 128 characters"));
    SW_TRY(const ContextVersion from, protocol::read_version(object));
    SW_TRY(const VersionOptions options, version_options(object));
    SW_TRY(const Fork made, sandbox_.fork(id, new_id, from, options));
    json::object answer = context_object(made.context);
    add_files(answer, made.files, options);
    return protocol::json_response(201, answer);
  }

  Handled undo(const std::string& id) {
    SW_TRY(const json::object object, optional_body());
    std::uint32_t runs = 1;
    if (const json::value* value = object.if_contains("runs")) {
      json::error_code failed;
      if (value->is_number()) runs = value->to_number<std::uint32_t>(failed);
      if (!value->is_number() || failed || runs == 0)
        return protocol::refusal("runs must be an integer of at least 1");
    }
    SW_TRY(const VersionOptions options, version_options(object));
    return done(sandbox_.undo(id, runs, options), options);
  }

  Handled checkpoints(const std::string& id) {
    SW_TRY(const auto known, sandbox_.checkpoints(id));
    json::array list;
    for (const protocol::Checkpoint& one : known)
      list.push_back({{"name", one.name}, {"takenAt", one.taken_at_ms}});
    return protocol::json_response(200, json::object{{"checkpoints", std::move(list)}});
  }

  Handled add_checkpoint(const std::string& id) {
    SW_TRY(const json::object object, body());
    SW_TRY(const std::string name,
           required_text(object, "name", "name must be a non-empty string"));
    return done(sandbox_.add_checkpoint(id, name));
  }

  Handled restore(const std::string& id) {
    SW_TRY(const json::object object, body());
    SW_TRY(const ContextVersion version, protocol::read_version(object));
    if (!version.step() && !version.checkpoint()) {
      return protocol::refusal("step or name is required");
    }
    SW_TRY(const VersionOptions options, version_options(object));
    return done(sandbox_.restore(id, version, options), options);
  }

  Handled history(const std::string& id) {
    SW_TRY(const auto known, sandbox_.history(id));
    json::array list;
    for (const protocol::HistoryEntry& entry : known) list.push_back(protocol::to_json(entry));
    return protocol::json_response(200, json::object{{"history", std::move(list)}});
  }

  Result<json::object> optional_body() const {
    if (request_.body.empty()) return json::object();
    return body();
  }

  Sandbox& sandbox_;
  const protocol::Request& request_;
};

protocol::Response Sandbox::fetch(const protocol::Request& request) {
  return Routes(*this, request).answer();
}

}  // namespace sw::sandbox
