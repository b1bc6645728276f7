// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/worker.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <utility>

#include "engine/result_json.h"
#include "executor/slot_events.h"
#include "interpreter/execution_request.h"
#include "protocol/interpreter_routes.h"
#include "protocol/messages.h"
#include "sandbox_workers/protocol/answers.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::interpreter {

using protocol::Request;
using protocol::Response;

namespace {

namespace json = boost::json;

constexpr std::string_view kInterpreters = "/interpreters/";

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

ContextsOptions contexts_options(const RuntimeWorkerOptions& options) {
  return {.contexts_max = options.contexts_max,
          .idle_ttl = options.idle_ttl,
          .snapshots = {.history = options.history}};
}

}  // namespace

Worker::Worker(std::shared_ptr<engine::Engine> engine, RuntimeWorkerOptions options,
               const WorkerParts& parts)
    : engine_(std::move(engine)),
      options_(std::move(options)),
      parts_(parts),
      class_name_(class_of(engine_->info().language)) {
  // Interpreters may outlive the Worker in the host's memory.
  parts_.objects.add_class(
      class_name_,
      {Contexts::schema(),
       [engine = engine_, parts, contexts = contexts_options(options_)](
           storage::ObjectStorage& storage) -> Result<std::unique_ptr<object::Object>> {
         SW_TRY(auto opened,
                Interpreter::open(engine, storage, parts.residency, parts.clock, contexts));
         return std::unique_ptr<object::Object>(std::move(opened));
       }});
}

Result<protocol::WorkerInfo> Worker::info() {
  const engine::EngineInfo& info = engine_->info();
  return protocol::WorkerInfo{.language = info.language,
                              .engine = info.engine_name,
                              .contexts = options_.contexts && engine_->has_sessions()};
}

Result<Outcome> Worker::run(const Run& run, RunEvents& events) {
  const auto began = std::chrono::steady_clock::now();
  Result<Outcome> outcome = engine_->run(run, events);
  if (!outcome.ok()) outcome = engine::engine_error_outcome(outcome.error());
  const bool files_go_back = run.on_error.value_or(AfterError::kKeep) != AfterError::kKeep;
  if (outcome->cut_off || (is_error(outcome->ending) && files_go_back)) outcome->files.reset();
  if (outcome->usage.wall.count() == 0) {
    outcome->usage.wall = std::chrono::steady_clock::now() - began;
  }
  return outcome;
}

Result<void> Worker::check_key(std::string_view key) const {
  if (!protocol::is_interpreter_key(key)) return protocol::refusal("Invalid interpreter key");
  if (!engine_->has_sessions()) {
    return protocol::refusal(
        fmt::format("Code contexts are not supported for {}", engine_->info().language));
  }
  if (options_.contexts) return {};
  return protocol::refusal("Code contexts are not supported: this Worker has no Interpreters");
}

Result<std::shared_ptr<protocol::Interpreter>> Worker::interpreter(std::string_view key) {
  SW_CHECK_OK(check_key(key));
  SW_TRY(std::shared_ptr<protocol::Interpreter> interpreter,
         parts_.objects.get<Interpreter>(object_of(key)));
  const auto& extend = options_.extensions.extend_interpreter;
  return extend ? extend(std::move(interpreter)) : std::move(interpreter);
}

// --- over HTTP

namespace {

Response describe(const protocol::WorkerInfo& info) {
  return protocol::json_response(200, json::object{{"language", info.language},
                                                   {"engine", info.engine},
                                                   {"contexts", info.contexts},
                                                   {"protocol", info.protocol}});
}

}  // namespace

Result<Response> Worker::run_once(const Request& http) {
  SW_TRY(Run request, read_execution_request(http, engine_->info()));
  request.limits = options_.limits;
  request.cancel = http.cancel;
  RunOutput printed;
  Result<Outcome> outcome = Error{};
  SW_CHECK_OK(
      parts_.guests.run({.memory_bytes = request.limits.memory_bytes_max, .cancel = http.cancel},
                        [&](executor::GuestPool::Slot& slot) {
                          executor::SlotEvents events(printed, slot);
                          outcome = run(request, events);
                        }));
  if (!outcome.ok()) return std::move(outcome).error();
  outcome->out = std::move(printed.out);
  outcome->err = std::move(printed.err);
  const engine::EngineInfo& info = engine_->info();
  return protocol::json_text_response(
      200, engine::execution_result_json(info.language, info.engine_name, request, *outcome));
}

/// A request to an Interpreter, as it sees it.
Result<Response> Worker::ask_interpreter(const Request& http) {
  const std::string_view rest = std::string_view(http.path).substr(kInterpreters.size());
  const std::string_view key = rest.substr(0, rest.find('/'));
  if (key.empty()) return protocol::not_found_response(now_ms());
  SW_TRY(const auto interpreter, this->interpreter(key));
  Request inner = http;
  inner.path = key.size() == rest.size() ? "/" : rest.substr(key.size());
  const UsualAnswer usual = [&](const Request& request) {
    return protocol::serve_interpreter(*interpreter, request, now_ms());
  };
  const auto& handle = options_.extensions.handle_interpreter;
  return handle ? handle(*interpreter, inner, usual) : usual(inner);
}

Response Worker::answer(const Request& request) {
  const auto answered = [&](const Result<Response>& response) {
    return response.ok() ? *response : protocol::error_response(response.error(), now_ms());
  };
  if (request.path == "/interpreter") {
    if (request.method == "GET" || request.method == "HEAD") return describe(*info());
    return protocol::method_not_allowed_response("GET", now_ms());
  }
  if (request.path.starts_with(kInterpreters)) return answered(ask_interpreter(request));
  if (request.path == "/execute") {
    if (request.method == "POST") return answered(run_once(request));
    return protocol::method_not_allowed_response("POST", now_ms());
  }
  return protocol::not_found_response(now_ms());
}

Response Worker::fetch(const Request& request) {
  const UsualAnswer usual = [this](const Request& asked) { return answer(asked); };
  const auto& handle = options_.extensions.handle;
  return handle ? handle(request, usual) : usual(request);
}

// --- a Worker by itself

namespace {

/// A Worker and all that it stands on.
class OwnedParts {
 public:
  OwnedParts(std::shared_ptr<engine::Engine> engine, RuntimeWorkerOptions options,
             std::unique_ptr<storage::Storage> storage)
      : guests_({.slots = options.runs_at_once}),
        residency_(options.residency),
        storage_(std::move(storage)),
        objects_(*storage_, *clock_, {}),
        worker_(
            std::move(engine), std::move(options),
            {.objects = objects_, .clock = *clock_, .guests = guests_, .residency = residency_}) {
    objects_.start_alarms();
  }

  RuntimeWorker* worker() { return &worker_; }

 private:
  const std::unique_ptr<object::Clock> clock_ = object::make_system_clock();
  executor::GuestPool guests_;
  ResidencyPool residency_;
  const std::unique_ptr<storage::Storage> storage_;
  object::ObjectHost objects_;
  Worker worker_;
};

/// Contexts in memory, which goes with the Worker.
struct InMemory {
  storage::MemoryDisk disk;
  std::shared_ptr<RuntimeWorker> worker = {};
};

}  // namespace

std::shared_ptr<RuntimeWorker> make_runtime_worker(std::shared_ptr<engine::Engine> engine,
                                                   RuntimeWorkerOptions options,
                                                   std::unique_ptr<storage::Storage> storage) {
  auto parts =
      std::make_shared<OwnedParts>(std::move(engine), std::move(options), std::move(storage));
  RuntimeWorker* const worker = parts->worker();
  return {std::move(parts), worker};
}

Result<std::shared_ptr<RuntimeWorker>> make_runtime_worker(std::shared_ptr<engine::Engine> engine,
                                                           RuntimeWorkerOptions options) {
  if (!options.storage_folder.empty()) {
    SW_TRY(auto storage, storage::open_sqlite_storage(options.storage_folder, {}));
    return make_runtime_worker(std::move(engine), std::move(options), std::move(storage));
  }
  auto in_memory = std::make_shared<InMemory>();
  in_memory->worker = make_runtime_worker(std::move(engine), std::move(options),
                                          storage::open_memory_storage(in_memory->disk));
  RuntimeWorker* const worker = in_memory->worker.get();
  return std::shared_ptr<RuntimeWorker>(std::move(in_memory), worker);
}

}  // namespace sw::interpreter
