// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox_object.h"

#include <functional>
#include <future>
#include <stop_token>

#include "sandbox/names.h"
#include "sandbox_workers/runtime/answers.h"

namespace sw::sandbox {

object::Task<Result<void>> SandboxObject::use(std::function<void(Sandbox&)> body,
                                              std::function<void()> on_cancel) {
  object::StorageWork work =
      [this, body = std::move(body)](storage::ObjectStorage& storage) -> Result<void> {
    if (!sandbox_) sandbox_.emplace(storage, common_->bindings, common_->clock, common_->options);
    body(*sandbox_);
    return {};
  };
  Result<void> outcome = co_await context_.run_with_storage(std::move(work), std::move(on_cancel));
  co_return outcome;
}

object::Task<Result<void>> SandboxObject::on_alarm(object::Time /*scheduled*/) {
  // shared with the work, which runs on another thread
  const auto answered = std::make_shared<Result<void>>();
  std::function<void(Sandbox&)> body = [answered](Sandbox& sandbox) {
    *answered = sandbox.alarm();
  };
  std::function<void()> on_cancel;
  Result<void> outcome = co_await use(std::move(body), std::move(on_cancel));
  if (!outcome.ok()) co_return outcome;
  co_return *answered;
}

namespace {

object::ObjectClass sandbox_class(std::shared_ptr<const SandboxObject::Common> common) {
  return {.schema = Sandbox::schema(),
          .make = [common = std::move(common)](object::ObjectContext& context) {
            return std::make_unique<SandboxObject>(context, common);
          }};
}

/// The answer to a request, as far as it has come.
struct Exchange {
  explicit Exchange(runtime::Request asked)
      : request(std::move(asked)), passed_on(request.cancel, [this] { stop.request_stop(); }) {
    // Whoever cancels the call and whoever cancels the request end the same run.
    request.cancel = stop.get_token();
  }

  std::stop_source stop;
  runtime::Request request;
  runtime::Response response;
  std::stop_callback<std::function<void()>> passed_on;
};

/// Of a request that was answered at once.
class Answered final : public object::Call {
 public:
  void cancel() override {}
};

}  // namespace

Sandboxes::Sandboxes(storage::Storage& storage, object::Clock& clock, runtime::Bindings bindings,
                     const SandboxOptions& options, object::HostOptions host_options)
    : clock_(clock), host_(storage, clock, std::move(host_options)) {
  host_.add_class("sandbox", sandbox_class(std::make_shared<const SandboxObject::Common>(
                                 SandboxObject::Common{std::move(bindings), clock, options})));
}

std::shared_ptr<object::Call> Sandboxes::send(runtime::Request request,
                                              std::function<void(runtime::Response)> reply) {
  const auto now_ms = [this] { return clock_.now().time_since_epoch().count(); };
  const auto name = object_name(runtime::find_header(request.headers, "x-sandbox-id").value_or(""));
  if (!name.ok()) {
    reply(runtime::error_response(name.error(), now_ms()));
    return std::make_shared<Answered>();
  }
  // shared by the message and its reply
  const auto exchange = std::make_shared<Exchange>(std::move(request));
  object::Message message = [exchange](object::Object& object) {
    std::function<void(Sandbox&)> body = [exchange](Sandbox& sandbox) {
      exchange->response = sandbox.fetch(exchange->request);
    };
    std::function<void()> on_cancel = [exchange] { exchange->stop.request_stop(); };
    return static_cast<SandboxObject&>(object).use(std::move(body), std::move(on_cancel));
  };
  return host_.send(*name, std::move(message),
                    [exchange, now_ms, reply = std::move(reply)](const Result<void>& outcome) {
                      if (outcome.ok()) return reply(std::move(exchange->response));
                      reply(runtime::error_response(outcome.error(), now_ms()));
                    });
}

runtime::Response Sandboxes::fetch(runtime::Request request) {
  // shared with the reply
  const auto promise = std::make_shared<std::promise<runtime::Response>>();
  send(std::move(request),
       [promise](runtime::Response response) { promise->set_value(std::move(response)); });
  return promise->get_future().get();
}

Result<void> Sandboxes::use(std::string_view id, std::function<void(Sandbox&)> body) {
  SW_TRY(const storage::ObjectName name, object_name(id));
  return host_.ask(name, [body = std::move(body)](object::Object& object) {
    return static_cast<SandboxObject&>(object).use(body, {});
  });
}

}  // namespace sw::sandbox
