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
#include "runtime/interpreter_routes.h"
#include "runtime/messages.h"
#include "sandbox_workers/runtime/answers.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::interpreter {

using runtime::Checkpoint;
using runtime::ContextInfo;
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
    // What a class's name cannot hold is written by its code, so that no two languages share a
    // class.
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
        runs_at_once_(options.runs_at_once != 0
                          ? options.runs_at_once
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
  const RunLimits& limits() const { return options_.limits; }
  bool has_contexts() const { return options_.contexts && parts_.engine->has_sessions(); }
  std::int64_t now_ms() { return parts_.clock->now().time_since_epoch().count(); }

  /// Why there is no such Interpreter; nothing: there is, or can be.
  Result<void> check_key(std::string_view key) const {
    if (!runtime::is_interpreter_key(key)) return runtime::refusal("Invalid interpreter key");
    if (!parts_.engine->has_sessions()) {
      return runtime::refusal(
          fmt::format("Code contexts are not supported for {}", info().language));
    }
    if (!options_.contexts)
      return runtime::refusal("Code contexts are not supported: this Worker has no Interpreters");
    return {};
  }

  /// A place for a run outside all contexts.
  Result<RunSlots::Slot> take_slot(const std::stop_token& cancel) { return slots_.take(cancel); }

  /// What `serve` does with an Interpreter. The token is requested when the caller cancels, or the
  /// host shuts down.
  using Work = std::function<Result<void>(InterpreterServer&, const std::stop_token&)>;

  /// Does something with an Interpreter when its turn has come, and waits until it is done.
  Result<void> serve(std::string_view key, const std::stop_token& cancel, const Work& work) {
    // shared with the reply, which may end last
    auto done = std::make_shared<std::promise<Result<void>>>();
    auto outcome = done->get_future();
    const auto call = host_->send(
        {.class_name = class_, .id = std::string(key)},
        [&work](object::Object& object) {
          std::stop_source stop;
          std::function<Result<void>(InterpreterServer&)> body =
              [&work, token = stop.get_token()](InterpreterServer& server) {
                return work(server, token);
              };
          std::function<void()> on_cancel = [stop]() mutable { stop.request_stop(); };
          return static_cast<InterpreterObject&>(object).serve(std::move(body),
                                                               std::move(on_cancel));
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

Result<std::shared_ptr<InterpreterWorker>> define_interpreter_runtime(
    std::shared_ptr<engine::Engine> engine, const RuntimeOptions& options) {
  return make_worker<InterpreterWorker>(std::move(engine), options);
}

namespace {

/// An Interpreter as its callers have it: each call waits for its turn in the mailbox.
class QueuedInterpreter final : public runtime::Interpreter {
 public:
  QueuedInterpreter(InterpreterRuntime& runtime, std::string_view key)
      : runtime_(runtime), key_(key) {}

  Result<ContextInfo> create(std::string_view id, std::string_view cwd) override {
    return ask([&](InterpreterServer& server) { return server.create(id, cwd); });
  }
  Result<std::vector<ContextInfo>> contexts() override {
    return ask([&](InterpreterServer& server) { return server.contexts(); });
  }
  Result<ContextInfo> context(std::string_view id) override {
    return ask([&](InterpreterServer& server) { return server.context(id); });
  }
  Result<void> remove(std::string_view id) override {
    return ask([&](InterpreterServer& server) { return server.remove(id); });
  }
  Result<void> destroy() override {
    return ask([&](InterpreterServer& server) { return server.destroy(); });
  }
  Result<ContextInfo> fork(std::string_view id, std::string_view new_id) override {
    return ask([&](InterpreterServer& server) { return server.fork(id, new_id); });
  }
  Result<ContextInfo> undo(std::string_view id, std::uint32_t runs) override {
    return ask([&](InterpreterServer& server) { return server.undo(id, runs); });
  }
  Result<Checkpoint> add_checkpoint(std::string_view id, std::string_view name) override {
    return ask([&](InterpreterServer& server) { return server.add_checkpoint(id, name); });
  }
  Result<std::vector<Checkpoint>> checkpoints(std::string_view id) override {
    return ask([&](InterpreterServer& server) { return server.checkpoints(id); });
  }
  Result<void> remove_checkpoint(std::string_view id, std::string_view name) override {
    return ask([&](InterpreterServer& server) { return server.remove_checkpoint(id, name); });
  }
  Result<ContextInfo> restore_checkpoint(std::string_view id, std::string_view name) override {
    return ask([&](InterpreterServer& server) { return server.restore_checkpoint(id, name); });
  }

  Result<ExecuteResponse> execute(ExecuteArgs args, const runtime::GetFiles& get_files,
                                  RunEvents& output) override {
    Result<ExecuteResponse> answer = not_asked();
    const std::stop_token callers = std::move(args.cancel);
    SW_CHECK_OK(runtime_.serve(
        key_, callers, [&](InterpreterServer& server, const std::stop_token& cancel) {
          args.cancel = cancel;  // the caller's, and that of the host when it shuts down
          return runtime_.engine()->on_guest_thread(
              [&] { answer = server.execute(std::move(args), get_files, output); });
        }));
    return answer;
  }

 private:
  static Error not_asked() {
    return Error{ErrorCode::kInternal, "the Interpreter was not asked", 0};
  }

  template <class Question>
  std::invoke_result_t<Question, InterpreterServer&> ask(const Question& question) {
    std::invoke_result_t<Question, InterpreterServer&> answer = not_asked();
    SW_CHECK_OK(runtime_.serve(
        key_, {}, [&](InterpreterServer& server, const std::stop_token&) -> Result<void> {
          answer = question(server);
          return {};
        }));
    return answer;
  }

  InterpreterRuntime& runtime_;
  const std::string key_;
};

// --- over HTTP

Response describe(const runtime::WorkerInfo& info) {
  return runtime::json_response(200, json::object{{"language", info.language},
                                                  {"engine", info.engine},
                                                  {"contexts", info.contexts},
                                                  {"protocol", info.protocol}});
}

Result<Response> run_once(InterpreterWorker& worker, InterpreterRuntime& runtime,
                          const Request& http) {
  SW_TRY(Run request, read_execution_request(http, runtime.info()));
  request.limits = runtime.limits();
  request.cancel = http.cancel;
  RunOutput printed;
  SW_TRY(const Outcome outcome, worker.run(request, printed));
  return runtime::json_text_response(
      200,
      engine::execution_result_json(runtime.info(), request, outcome, printed.out, printed.err));
}

/// A request to an Interpreter, as it sees it.
Result<Response> forward(InterpreterRuntime& runtime, const Request& http) {
  const std::string_view rest = std::string_view(http.path).substr(kInterpreters.size());
  const std::string_view key = rest.substr(0, rest.find('/'));
  if (key.empty()) return runtime::not_found_response(runtime.now_ms());
  SW_CHECK_OK(runtime.check_key(key));
  Request inner = http;
  inner.path = key.size() == rest.size() ? "/" : rest.substr(key.size());
  Response response;
  SW_CHECK_OK(runtime.serve(
      key, http.cancel, [&](InterpreterServer& server, const std::stop_token&) -> Result<void> {
        response = runtime::serve_interpreter(server, inner, runtime.now_ms());
        return {};
      }));
  return response;
}

}  // namespace

// --- the Worker

InterpreterWorker::InterpreterWorker(std::shared_ptr<InterpreterRuntime> runtime)
    : runtime_(std::move(runtime)) {}
InterpreterWorker::~InterpreterWorker() = default;

const std::shared_ptr<engine::Engine>& InterpreterWorker::engine() const {
  return runtime_->engine();
}

std::optional<Response> InterpreterWorker::route(const Request& /*request*/) {
  return std::nullopt;
}

Result<runtime::WorkerInfo> InterpreterWorker::info() {
  const engine::EngineInfo& info = runtime_->info();
  return runtime::WorkerInfo{
      .language = info.language, .engine = info.engine_name, .contexts = runtime_->has_contexts()};
}

Result<Outcome> InterpreterWorker::run(const Run& request, RunEvents& output) {
  SW_TRY(const auto slot, runtime_->take_slot(request.cancel));
  Result<Outcome> outcome = Error{ErrorCode::kInternal, "the engine did not run", 0};
  const auto began = std::chrono::steady_clock::now();
  const auto on_thread =
      runtime_->engine()->on_guest_thread([&] { outcome = engine()->run(request, output); });
  if (!on_thread.ok()) outcome = on_thread.error();
  if (!outcome.ok()) outcome = engine::engine_error_outcome(outcome.error());
  if (outcome->usage.wall.count() == 0)
    outcome->usage.wall = std::chrono::steady_clock::now() - began;
  return outcome;
}

Result<std::unique_ptr<runtime::Interpreter>> InterpreterWorker::interpreter(std::string_view key) {
  SW_CHECK_OK(runtime_->check_key(key));
  return std::unique_ptr<runtime::Interpreter>(std::make_unique<QueuedInterpreter>(*runtime_, key));
}

Response InterpreterWorker::fetch(const Request& request) {
  const std::int64_t now = runtime_->now_ms();
  const auto answered = [&](const Result<Response>& response) {
    return response.ok() ? *response : runtime::error_response(response.error(), now);
  };
  if (request.path == "/interpreter") {
    if (request.method == "GET" || request.method == "HEAD") return describe(*info());
    return runtime::method_not_allowed_response("GET", now);
  }
  if (request.path.starts_with(kInterpreters)) return answered(forward(*runtime_, request));
  if (request.path == "/execute") {
    if (request.method == "POST") return answered(run_once(*this, *runtime_, request));
    return runtime::method_not_allowed_response("POST", now);
  }
  if (auto response = route(request)) return *std::move(response);
  return runtime::not_found_response(now);
}

}  // namespace sw::interpreter
