// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/binding.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "sandbox/names.h"

namespace sw::sandbox {

namespace json = boost::json;

Answer<Binding> Binding::find(const runtime::Bindings& bindings, std::string_view name) {
  const auto found = bindings.find(name);
  if (!is_identifier(name) || found == bindings.end() || !found->second) {
    return refusal(fmt::format("Unknown binding '{}'", name));
  }
  return Binding(found->first, found->second);
}

Answer<BindingInfo> Binding::probe() const {
  const auto no_worker = [&] {
    return refusal(fmt::format("Binding '{}' is not a sandbox-workers runtime Worker", name_));
  };
  const auto response = worker_->fetch({.method = "GET", .path = "/interpreter"});
  if (!response.ok()) return no_worker();
  json::error_code failed;
  const json::value value = json::parse(response->body, failed);
  if (failed || !value.is_object()) return no_worker();
  const json::object& object = value.as_object();
  const json::value* const language = object.if_contains("language");
  const json::value* const engine = object.if_contains("engine");
  const json::value* const contexts = object.if_contains("contexts");
  const json::value* const protocol = object.if_contains("protocol");
  const bool right = language && language->is_string() && engine && engine->is_string() && contexts &&
                     contexts->is_bool() && (!protocol || protocol->is_number());
  if (!right) return no_worker();
  if (protocol && protocol->to_number<double>() != runtime::kProtocolVersion) {
    return refusal(fmt::format("Binding '{}' speaks interpreter protocol {}; this caller supports {}", name_,
                               json::serialize(*protocol), runtime::kProtocolVersion));
  }
  return BindingInfo{.language = json::value_to<std::string>(*language),
                     .engine = json::value_to<std::string>(*engine),
                     .contexts = contexts->as_bool()};
}

Answer<runtime::Response> Binding::request(std::string method, std::string path, std::string body,
                                           std::stop_token cancel) const {
  runtime::Request request{
      .method = std::move(method), .path = std::move(path), .body = std::move(body), .cancel = std::move(cancel)};
  if (!request.body.empty()) request.headers = {{"content-type", "application/json"}};
  auto response = worker_->fetch(request);
  if (response.ok()) return *std::move(response);
  Error error = std::move(response).error();
  return Failure{
      .body = runtime::internal_error(fmt::format("Binding '{}' failed: {}", name_, error.message), 502),
      .cause = std::move(error)};
}

}  // namespace sw::sandbox
