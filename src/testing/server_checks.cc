// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
// Contexts behind a runtime Worker, used as a Sandbox uses them. Each check has a context of its
// own.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <variant>

#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/protocol/worker.h"
#include "sandbox_workers/workspace/workspace.h"
#include "testing/checks.h"
#include "wasi/tree_state.h"

namespace sw::testing {

namespace {

using engine::Engine;
using protocol::ExecuteResponse;

constexpr std::chrono::milliseconds kEndlessFor{100};
constexpr char kContent[] = "content";
constexpr char kFailed[] = "failed";
constexpr char kFolder[] = "/workspace/conformance";

/// The same engine as another build of it.
class AnotherBuild final : public Engine {
 public:
  explicit AnotherBuild(std::shared_ptr<Engine> engine)
      : engine_(std::move(engine)), info_(engine_->info()) {
    info_.build += "-another";
  }
  const engine::EngineInfo& info() const override { return info_; }
  Result<Outcome> run(const Run& request, RunEvents& output) override {
    return engine_->run(request, output);
  }
  bool has_sessions() const override { return engine_->has_sessions(); }
  Result<std::unique_ptr<engine::SessionInstance>> boot() override { return engine_->boot(); }
  Result<std::unique_ptr<engine::SessionInstance>> restore(
      engine::SnapshotSource& source) override {
    return engine_->restore(source);
  }
  Result<void> on_guest_thread(const std::function<void()>& body) override {
    return engine_->on_guest_thread(body);
  }

 private:
  std::shared_ptr<Engine> engine_;
  engine::EngineInfo info_;
};

/// A Sandbox as small as can be: files, and one Interpreter behind a Worker that can be replaced.
class Client {
 public:
  Client(Checks& checks, std::shared_ptr<TestState> state, std::string key)
      : checks_(checks),
        state_(std::move(state)),
        key_(std::move(key)),
        workspace_(wasi::TreeLimits{}, 0) {}

  /// Drops the Worker, if there is one, and makes one over the same state.
  Result<void> restart(const std::shared_ptr<Engine>& engine) {
    worker_.reset();
    engine_ = engine;
    SW_TRY(worker_, serve(engine, state_));
    return {};
  }

  Workspace& workspace() { return workspace_; }

  protocol::Response request(std::string method, std::string_view path, std::string body = {}) {
    return worker_->fetch({.method = std::move(method),
                           .path = fmt::format("/interpreters/{}{}", key_, path),
                           .headers = {{"content-type", "application/json"}},
                           .body = std::move(body)});
  }
  Result<void> expect_status(std::string method, std::string_view path, int status,
                             std::string body = {}) {
    const std::string what = fmt::format("{} {}", method, path);
    const protocol::Response response = request(std::move(method), path, std::move(body));
    if (response.status == status) return {};
    return violated(fmt::format("{} answers {} instead of {}: {}", what, response.status, status,
                                response.body));
  }
  Result<void> create(const std::string& id) {
    return expect_status("POST", "/contexts", 201,
                         boost::json::serialize(boost::json::object{{"id", id}}));
  }

  Result<ExecuteResponse> execute(const std::string& id, std::string_view code,
                                  std::chrono::nanoseconds wall_max = RunLimits{}.wall_max,
                                  AfterError after_error = AfterError::kKeep) {
    protocol::ExecuteArgs args;
    args.run.context = id;
    args.run.code = code;
    args.run.limits.wall_max = wall_max;
    args.run.on_error = after_error;
    args.run.files = workspace_.for_run();
    return execute(std::move(args), wall_max);
  }
  /// Its exit handlers run.
  Result<ExecuteResponse> end(const std::string& id) {
    protocol::ExecuteArgs args;
    args.run.context = id;
    args.run.ends_context = true;
    args.run.files = workspace_.for_run();
    return execute(std::move(args), RunLimits{}.wall_max);
  }
  Result<ExecuteResponse> expect_value(const std::string& id, std::string_view code,
                                       const std::optional<std::string>& text = std::nullopt) {
    SW_TRY(ExecuteResponse response, execute(id, code));
    SW_CHECK_OK(testing::expect_value(response.outcome, text));
    return response;
  }

 private:
  Result<ExecuteResponse> execute(protocol::ExecuteArgs args, std::chrono::nanoseconds wall_max) {
    RunOutput output;
    SW_TRY(const auto interpreter, worker_->interpreter(key_));
    Result<ExecuteResponse> response = Error{};
    SW_CHECK_OK(checks_.run_guest(
        *engine_, wall_max, [&] { response = interpreter->execute(std::move(args), output); }));
    if (!response.ok()) {
      return violated(fmt::format("the run is refused: {}: {}", code_name(response.error().code),
                                  response.error().message));
    }
    SW_CHECK_OK(workspace_.apply_diff(*response->outcome.files, 0));
    return response;
  }

  Checks& checks_;
  const std::shared_ptr<TestState> state_;  // shared with the Worker
  std::shared_ptr<Engine> engine_;          // shared with the Worker
  const std::string key_;
  Workspace workspace_;
  std::shared_ptr<interpreter::RuntimeWorker> worker_;
};

class ServerChecks {
 public:
  ServerChecks(Checks& checks, std::shared_ptr<Engine> engine, const ConformancePrograms& programs,
               Client& client)
      : checks_(checks), engine_(std::move(engine)), programs_(programs), client_(client) {}

  Result<void> run() {
    SW_CHECK_OK(run_first_context());
    SW_CHECK_OK(run_limits());
    SW_CHECK_OK(run_files());
    return run_last();
  }

 private:
  const DefineAndUse& stateful() const { return *programs_.stateful; }

  Result<void> run_first_context() {
    SW_CHECK_OK(
        checks_.check("a context is created under the id that is given", [&]() -> Result<void> {
          const auto response = client_.request("POST", "/contexts", R"({"id":"ctx-1"})");
          if (response.status != 201)
            return violated(fmt::format("{}: {}", response.status, response.body));
          boost::system::error_code error;
          const boost::json::value body = boost::json::parse(response.body, error);
          const auto* id = body.is_object() ? body.as_object().if_contains("id") : nullptr;
          if (id != nullptr && *id == "ctx-1") return {};
          return violated(fmt::format("the answer is {}", response.body));
        }));
    SW_CHECK_OK(checks_.check("a cell runs in a context", [&]() -> Result<void> {
      SW_TRY(const ExecuteResponse response, client_.expect_value("ctx-1", stateful().define));
      return response.outcome.context->executions == 1
                 ? Result<void>()
                 : violated("`executions` is not 1 after the first run");
    }));
    SW_CHECK_OK(checks_.check("the next cell finds what it left, and memory is saved",
                              [&] { return next_cell(); }));
    SW_CHECK_OK(
        checks_.check("a restarted server resumes from the saved memory", [&]() -> Result<void> {
          SW_CHECK_OK(client_.restart(engine_));
          SW_TRY(const auto response,
                 client_.expect_value("ctx-1", stateful().use, stateful().expect_text));
          return expect_state(response, ContextState::kRestored);
        }));
    SW_CHECK_OK(
        checks_.check("memory is saved even after an error in the code", [&]() -> Result<void> {
          SW_TRY(const ExecuteResponse response, client_.execute("ctx-1", programs_.error));
          SW_CHECK_OK(expect_error(response.outcome));
          if (!response.outcome.context->snapshot_ms || response.snapshot->stale)
            return violated("no snapshot was taken");
          SW_CHECK_OK(client_.expect_value("ctx-1", stateful().use, stateful().expect_text));
          return {};
        }));
    return checks_.check("a deleted context is gone", [&]() -> Result<void> {
      SW_CHECK_OK(client_.expect_status("DELETE", "/contexts/ctx-1", 200));
      return client_.expect_status("DELETE", "/contexts/ctx-1", 404);
    });
  }

  Result<void> next_cell() {
    SW_TRY(const auto response,
           client_.expect_value("ctx-1", stateful().use, stateful().expect_text));
    SW_CHECK_OK(expect_state(response, ContextState::kLive));
    if (!response.snapshot || !response.outcome.context->snapshot_ms)
      return violated("no snapshot was taken");
    if (response.snapshot->build != engine_->info().build) {
      return violated(fmt::format("the snapshot is of the build '{}'", response.snapshot->build));
    }
    if (response.snapshot->stale) return violated("the snapshot is called stale");
    return {};
  }

  Result<void> run_limits() {
    SW_CHECK_OK(checks_.check_with(
        "a run that met its limit is saved or lost as a whole, and the context continues",
        programs_.endless, [&](const std::string& endless) { return limited_run(endless); }));
    SW_CHECK_OK(checks_.check_with("a run that crashed is not saved, and the context continues",
                                   programs_.crash,
                                   [&](const std::string& crash) { return crashed_run(crash); }));
    return checks_.check("another build starts fresh and says so", [&]() -> Result<void> {
      SW_CHECK_OK(client_.create("build"));
      SW_TRY(const auto before, client_.expect_value("build", stateful().define));
      SW_CHECK_OK(client_.restart(std::make_shared<AnotherBuild>(engine_)));
      SW_TRY(const auto response, client_.expect_value("build", stateful().define));
      SW_CHECK_OK(expect_state(response, ContextState::kFresh));
      if (response.outcome.context->note.empty()) return violated("`note` does not say why");
      if (response.outcome.context->executions != before.outcome.context->executions + 1)
        return violated("`executions` did not continue");
      return client_.restart(engine_);
    });
  }

  /// Saved if the instance can go on.
  Result<void> limited_run(std::string_view endless) {
    SW_CHECK_OK(client_.create("limit"));
    SW_TRY(const auto defined, client_.expect_value("limit", stateful().define));
    SW_TRY(const ExecuteResponse limited, client_.execute("limit", endless, kEndlessFor));
    SW_CHECK_OK(expect_limit(limited.outcome));
    if (!limited.outcome.context->snapshot_ms) return lost("limit", defined, limited);
    if (limited.snapshot->stale) return violated("the snapshot is called stale");
    SW_CHECK_OK(client_.expect_value("limit", stateful().use, stateful().expect_text));
    return {};
  }

  Result<void> crashed_run(std::string_view crash) {
    SW_CHECK_OK(client_.create("crash"));
    SW_TRY(const auto defined, client_.expect_value("crash", stateful().define));
    SW_TRY(const ExecuteResponse crashed, client_.execute("crash", crash));
    SW_CHECK_OK(expect_error(crashed.outcome));
    if (crashed.outcome.context->snapshot_ms) return violated("a snapshot was taken");
    return lost("crash", defined, crashed);
  }

  /// The context goes on from the run before the one that was lost.
  Result<void> lost(const std::string& id, const ExecuteResponse& before,
                    const ExecuteResponse& lost) {
    if (!lost.snapshot || !before.snapshot ||
        lost.snapshot->taken_at_ms != before.snapshot->taken_at_ms) {
      return violated("the snapshot before it is gone");
    }
    SW_CHECK_OK(client_.expect_value(id, stateful().use, stateful().expect_text));
    return {};
  }

  Result<void> run_files() {
    SW_CHECK_OK(checks_.check_with("the current directory is kept", programs_.cwd,
                                   [&](const CwdProgram& program) { return cwd(program); }));
    SW_CHECK_OK(checks_.check_with("a written file is returned", programs_.files,
                                   [&](const FilesProgram& program) { return files(program); }));
    const std::optional<std::string> fail = programs_.files ? programs_.files->fail : std::nullopt;
    SW_CHECK_OK(
        checks_.check_with("what was written before an error is kept", fail,
                           [&](const std::string& program) { return kept_after_error(program); }));
    SW_CHECK_OK(
        checks_.check_with("a run that is rolled back leaves neither files nor memory", fail,
                           [&](const std::string& program) { return rolled_back(program); }));
    SW_CHECK_OK(checks_.check_with("nothing can be written in a sandbox without files",
                                   programs_.files,
                                   [&](const FilesProgram& program) { return disabled(program); }));
    return checks_.check_with("an open file stays open, or keeps memory from being saved",
                              programs_.open_file,
                              [&](const DefineAndUse& program) { return open_file(program); });
  }

  Result<void> cwd(const CwdProgram& program) {
    SW_CHECK_OK(client_.create("cwd"));
    SW_TRY(const auto entered, client_.expect_value("cwd", program.enter));
    if (entered.outcome.cwd != kFolder)
      return violated(fmt::format("`cwd` is '{}' after going there", entered.outcome.cwd));
    SW_CHECK_OK(client_.expect_value("cwd", program.show, program.expect_text));
    SW_CHECK_OK(client_.restart(engine_));
    SW_TRY(const auto shown, client_.expect_value("cwd", program.show, program.expect_text));
    return shown.outcome.cwd == kFolder ? Result<void>()
                                        : violated("`cwd` differs after a restart");
  }

  Result<void> files(const FilesProgram& program) {
    SW_CHECK_OK(client_.create("files"));
    SW_CHECK_OK(client_.expect_value("files", program.write));
    return expect_file(kContent);
  }

  Result<void> expect_file(std::string_view content) {
    const std::string& path = programs_.files->path;
    const auto file = client_.workspace().read_bytes(path);
    if (!file.ok()) return violated(fmt::format("{} is missing", path));
    if (as_text(file->data.bytes) == content) return {};
    return violated(fmt::format("{} has the content '{}'", path,
                                to_valid_utf8(as_text(file->data.bytes).substr(0, 100))));
  }

  Result<void> kept_after_error(const std::string& fail) {
    SW_TRY(const ExecuteResponse failed, client_.execute("files", fail));
    SW_CHECK_OK(expect_error(failed.outcome));
    return expect_file(kFailed);
  }

  Result<void> rolled_back(const std::string& fail) {
    SW_CHECK_OK(client_.expect_value("files", stateful().define));
    SW_CHECK_OK(client_.expect_value("files", programs_.files->write));
    SW_TRY(const ExecuteResponse failed,
           client_.execute("files", fail, RunLimits{}.wall_max, AfterError::kRollback));
    SW_CHECK_OK(expect_error(failed.outcome));
    SW_CHECK_OK(expect_file(kContent));
    SW_TRY(const auto next, client_.expect_value("files", stateful().use, stateful().expect_text));
    return expect_state(next, ContextState::kRestored);
  }

  Result<void> disabled(const FilesProgram& program) {
    SW_CHECK_OK(client_.create("disabled"));
    client_.workspace().set_disabled(true);
    const auto answer = client_.execute("disabled", program.write);
    client_.workspace().set_disabled(false);
    SW_TRY(const ExecuteResponse response, answer);
    if (!response.outcome.files->files.empty()) return violated("a file was written");
    return expect_error(response.outcome);
  }

  Result<void> open_file(const DefineAndUse& program) {
    SW_CHECK_OK(client_.create("open"));
    SW_CHECK_OK(client_.expect_value("open", program.define));
    SW_TRY(const auto used, client_.expect_value("open", program.use, program.expect_text));
    // An engine that cannot save open files says so, and then a restart may lose them.
    if (!used.outcome.context->snapshot_ms) {
      return !used.snapshot || used.snapshot->stale ? Result<void>()
                                                    : violated("nothing was saved or called stale");
    }
    SW_CHECK_OK(client_.restart(engine_));
    SW_CHECK_OK(client_.expect_value("open", program.use, program.expect_text));
    return {};
  }

  Result<void> run_last() {
    SW_CHECK_OK(checks_.check("a context ends without an error", [&]() -> Result<void> {
      SW_CHECK_OK(client_.create("end"));
      SW_CHECK_OK(client_.expect_value("end", stateful().define));
      SW_TRY(const ExecuteResponse ended, client_.end("end"));
      SW_CHECK_OK(expect_value(ended.outcome));
      return client_.expect_status("DELETE", "/contexts/end", 200);
    }));
    return checks_.check("deleting an interpreter deletes its contexts", [&]() -> Result<void> {
      SW_CHECK_OK(client_.create("ctx-2"));
      SW_CHECK_OK(client_.expect_status("DELETE", "/", 200));
      return client_.expect_status("DELETE", "/contexts/ctx-2", 404);
    });
  }

  static Result<void> expect_state(const ExecuteResponse& response, ContextState expected) {
    if (response.outcome.context->state == expected) return {};
    static constexpr const char* kNames[] = {"live", "restored", "fresh"};
    return violated(fmt::format("`state` is {} instead of {} ({})",
                                kNames[static_cast<int>(response.outcome.context->state)],
                                kNames[static_cast<int>(expected)],
                                response.outcome.context->note));
  }

  Checks& checks_;
  const std::shared_ptr<Engine> engine_;  // shared with the Workers
  const ConformancePrograms& programs_;
  Client& client_;
};

}  // namespace

Result<void> check_server(Checks& checks, const std::shared_ptr<Engine>& engine,
                          const ConformancePrograms& programs, const ConformanceOptions& options) {
  Client client(checks, options.state ? options.state : create_test_state(), options.key);
  SW_CHECK_OK(client.restart(engine));
  return ServerChecks(checks, engine, programs, client).run();
}

}  // namespace sw::testing
