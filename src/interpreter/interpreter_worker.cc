// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/interpreter/interpreter_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <future>
#include <thread>

#include "engine/result_json.h"
#include "interpreter/execution_request.h"
#include "interpreter/interpreter_object.h"
#include "interpreter/run_slots.h"
#include "object/host.h"
#include "sandbox_workers/runtime/answers.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::interpreter {

using runtime::Answer;
using runtime::ErrorBody;
using runtime::ExecuteArgs;
using runtime::ExecuteResponse;
using runtime::Request;
using runtime::Response;

namespace json = boost::json;

namespace {

constexpr std::string_view kInterpreters = "/interpreters/";
// As many as may wait for one Interpreter.
constexpr std::size_t kWaitingRunsMax = 1000;

/// The class of the objects that are Interpreters of a language; each language has its own.
std::string class_of(std::string_view language) {
  std::string name = "interpreter_";
  for (const char c : language) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    // What a class's name cannot hold is written by its code, so that no two languages share a class.
    name += allowed ? std::string(1, c) : fmt::format("_{:02x}_", static_cast<unsigned char>(c));
  }
  return name;
}

}  // namespace

// --- the Interpreters of one Worker

class InterpreterRuntime {
 public:
  InterpreterRuntime(std::shared_ptr<engine::Engine> engine, const RuntimeOptions& options)
      : options_(options),
        own_clock_(options.clock ? nullptr : object::make_system_clock()),
        parts_{.engine = std::move(engine),
               .pool = options.residency ? options.residency : std::make_shared<ResidencyPool>(),
               .clock = options.clock ? options.clock : own_clock_.get(),
               .options = {.contexts = {.contexts_max = options.contexts_max,
                                        .idle_ttl = options.idle_ttl,
                                        .snapshots = {.history_max = options.undo_max}},
                           .workspace_limits = options.workspace_limits}},
        class_(class_of(parts_.engine->info().language)),
        runs_at_once_(options.runs_at_once != 0 ? options.runs_at_once
                                                : std::max(1U, std::thread::hardware_concurrency())),
        slots_(runs_at_once_, kWaitingRunsMax) {}

  Result<void> open() {
    storage::Storage* storage = options_.storage;
    if (!storage) {
      SW_TRY(own_storage_, open_own_storage());
      storage = own_storage_.get();
    }
    host_ = std::make_unique<object::ObjectHost>(
        *storage, *parts_.clock,
        object::HostOptions{.threads = 1, .storage_threads = 2, .blocking_threads = runs_at_once_});
    host_->add_class(class_, {{}, [this](object::ObjectContext& context) {
                                return std::make_unique<InterpreterObject>(context, parts_);
                              }});
    host_->start_alarms();
    return {};
  }

  const std::shared_ptr<engine::Engine>& engine() const { return parts_.engine; }
  const engine::EngineInfo& info() const { return parts_.engine->info(); }
  const engine::RunLimits& limits() const { return options_.limits; }
  bool has_contexts() const { return options_.contexts && parts_.engine->has_sessions(); }
  std::int64_t now_ms() { return parts_.clock->now().time_since_epoch().count(); }

  /// Why there is no such Interpreter; nullopt: there is, or can be.
  std::optional<ErrorBody> refuse(std::string_view key) const {
    if (!runtime::is_interpreter_key(key)) return runtime::validation_failed("Invalid interpreter key");
    if (!parts_.engine->has_sessions()) {
      return runtime::validation_failed(fmt::format("Code contexts are not supported for {}", info().language));
    }
    if (!options_.contexts) {
      return runtime::validation_failed("Code contexts are not supported: this Worker has no Interpreters");
    }
    return std::nullopt;
  }

  /// A place for a run outside all contexts.
  Result<RunSlots::Slot> take_slot(const std::stop_token& cancel) { return slots_.take(cancel); }

  /// What `serve` does with an Interpreter. The token is requested when the caller cancels, or the host shuts
  /// down.
  using Work = std::function<Result<void>(InterpreterServer&, const std::stop_token&)>;

  /// Does something with an Interpreter when its turn has come, and waits until it is done.
  Result<void> serve(std::string_view key, const std::stop_token& cancel, const Work& work) {
    auto done = std::make_shared<std::promise<Result<void>>>();  // shared with the reply, which may end last
    auto outcome = done->get_future();
    const auto call = host_->send(
        {.class_name = class_, .id = std::string(key)},
        [&work](object::Object& object) {
          std::stop_source stop;
          std::function<Result<void>(InterpreterServer&)> body =
              [&work, token = stop.get_token()](InterpreterServer& server) { return work(server, token); };
          std::function<void()> on_cancel = [stop]() mutable { stop.request_stop(); };
          return static_cast<InterpreterObject&>(object).serve(std::move(body), std::move(on_cancel));
        },
        [done](Result<void> reply) { done->set_value(std::move(reply)); });
    const std::stop_callback on_cancel(cancel, [&call] { call->cancel(); });
    return outcome.get();
  }

 private:
  Result<std::unique_ptr<storage::Storage>> open_own_storage() {
    if (options_.storage_folder.empty()) return storage::open_memory_storage(memory_);
    return storage::open_sqlite_storage(options_.storage_folder, {});
  }

  const RuntimeOptions options_;
  const std::unique_ptr<object::Clock> own_clock_;
  const ObjectParts parts_;
  const std::string class_;
  const std::size_t runs_at_once_;
  RunSlots slots_;
  storage::MemoryDisk memory_;
  std::unique_ptr<storage::Storage> own_storage_;
  std::unique_ptr<object::ObjectHost> host_;  // last: its objects use all of the above
};

Result<std::shared_ptr<InterpreterRuntime>> make_runtime(std::shared_ptr<engine::Engine> engine,
                                                         const RuntimeOptions& options) {
  auto runtime = std::make_shared<InterpreterRuntime>(std::move(engine), options);
  SW_CHECK_OK(runtime->open());
  return runtime;
}

Result<std::shared_ptr<runtime::Worker>> define_interpreter_runtime(std::shared_ptr<engine::Engine> engine,
                                                                    const RuntimeOptions& options) {
  SW_TRY(auto worker, make_worker<InterpreterWorker>(std::move(engine), options));
  return std::shared_ptr<runtime::Worker>(std::move(worker));
}

// --- the Worker

namespace {

Response describe(const InterpreterRuntime& runtime) {
  const engine::EngineInfo& info = runtime.info();
  return runtime::json_text_response(200, json::serialize(json::object{{"language", info.language},
                                                                       {"engine", info.engine_name},
                                                                       {"contexts", runtime.has_contexts()},
                                                                       {"protocol", runtime::kProtocolVersion}}));
}

/// Runs code in a guest of its own.
Response run_once(InterpreterRuntime& runtime, const Request& http) {
  auto read = read_execution_request(http, runtime.info());
  if (!read.ok()) return runtime::error_response(read.error(), runtime.now_ms());
  const auto slot = runtime.take_slot(http.cancel);
  if (!slot.ok()) return runtime::error_response(runtime::error_body(slot.error()), runtime.now_ms());
  engine::RunRequest& request = *read;
  request.limits = runtime.limits();
  request.cancel = http.cancel;
  wasi::BufferSink printed;
  Result<engine::Outcome> outcome = Error{ErrorCode::kInternal, "the engine did not run", 0};
  const auto began = std::chrono::steady_clock::now();
  const auto on_thread =
      runtime.engine()->on_guest_thread([&] { outcome = runtime.engine()->run(request, printed); });
  if (!on_thread.ok()) outcome = on_thread.error();
  if (!outcome.ok()) outcome = engine::engine_error_outcome(outcome.error());
  if (outcome->usage.wall.count() == 0) outcome->usage.wall = std::chrono::steady_clock::now() - began;
  return runtime::json_text_response(
      200, engine::execution_result_json(runtime.info(), request, *outcome, printed.out, printed.err));
}

/// A request to an Interpreter, as it sees it.
Response forward(InterpreterRuntime& runtime, const Request& http) {
  const std::string_view rest = std::string_view(http.path).substr(kInterpreters.size());
  const std::string_view key = rest.substr(0, rest.find('/'));
  const auto now = [&] { return runtime.now_ms(); };
  if (key.empty()) return runtime::not_found_response(now());
  if (auto refusal = runtime.refuse(key)) return runtime::error_response(*refusal, now());
  Request inner = http;
  inner.path = key.size() == rest.size() ? "/" : rest.substr(key.size());
  Response response;
  const auto served = runtime.serve(key, http.cancel,
                                    [&](InterpreterServer& server, const std::stop_token& cancel) -> Result<void> {
                                      inner.cancel = cancel;
                                      response = server.fetch(inner);
                                      return {};
                                    });
  return served.ok() ? response : runtime::error_response(runtime::error_body(served.error()), now());
}

}  // namespace

InterpreterWorker::InterpreterWorker(std::shared_ptr<InterpreterRuntime> runtime) : runtime_(std::move(runtime)) {}
InterpreterWorker::~InterpreterWorker() = default;

const std::shared_ptr<engine::Engine>& InterpreterWorker::engine() const { return runtime_->engine(); }

std::optional<Response> InterpreterWorker::route(const Request& /*request*/) { return std::nullopt; }

Result<Response> InterpreterWorker::fetch(const Request& request) {
  InterpreterRuntime& runtime = *runtime_;
  if (request.path == "/interpreter") {
    if (request.method == "GET" || request.method == "HEAD") return describe(runtime);
    return runtime::method_not_allowed_response("GET", runtime.now_ms());
  }
  if (request.path.starts_with(kInterpreters)) return forward(runtime, request);
  if (request.path == "/execute") {
    if (request.method == "POST") return run_once(runtime, request);
    return runtime::method_not_allowed_response("POST", runtime.now_ms());
  }
  if (auto response = route(request)) return *std::move(response);
  return runtime::not_found_response(runtime.now_ms());
}

Result<Answer<ExecuteResponse>> InterpreterWorker::execute_in_context(std::string_view key,
                                                                      const ExecuteArgs& args,
                                                                      const runtime::GetFiles& get_files,
                                                                      wasi::OutputSink& output) {
  // Moving an Answer into a Result makes g++ 12 warn of what is not so; it is built in place.
  Result<Answer<ExecuteResponse>> answer = Answer<ExecuteResponse>();
  if (auto refusal = runtime_->refuse(key)) {
    *answer = *std::move(refusal);
    return answer;
  }
  const auto served = runtime_->serve(
      key, args.cancel, [&](InterpreterServer& server, const std::stop_token& cancel) -> Result<void> {
        return runtime_->engine()->on_guest_thread(
            [&] { *answer = server.execute_in_context(args, get_files, output, cancel); });
      });
  if (!served.ok()) *answer = runtime::error_body(served.error());
  return answer;
}

}  // namespace sw::interpreter
