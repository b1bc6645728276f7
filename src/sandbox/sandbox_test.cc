// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::chrono::hours kTtl{24};
const Error kGone{ErrorCode::kUnreachable, "gone", 0};
constexpr object::Time kStart{std::chrono::milliseconds(1'700'000'000'123)};

/// An answer as a client sees it.
struct Reply {
  int status = 0;
  json::value body;
  const json::value& at(const char* pointer) const { return body.at_pointer(pointer); }
  std::string text(const char* pointer) const { return std::string(at(pointer).as_string()); }
  std::int64_t number(const char* pointer) const { return at(pointer).to_number<std::int64_t>(); }
  /// "404 CONTEXT_NOT_FOUND Code context 'x' not found"
  std::string refusal() const {
    return fmt::format("{} {} {}", status, text("/code"), text("/message"));
  }
};

struct SandboxTest : ::testing::Test {
  std::shared_ptr<FakeWorker> javascript = std::make_shared<FakeWorker>("javascript");
  std::shared_ptr<FakeWorker> python = std::make_shared<FakeWorker>("python");
  std::shared_ptr<FakeWorker> ruby = std::make_shared<FakeWorker>("ruby", false);
  object::ManualClock clock{kStart};
  executor::GuestPool guests{{.stack_bytes = std::size_t{1} << 20}};
  SandboxParts parts{.bindings = {{"JAVASCRIPT", javascript}, {"PYTHON", python}, {"RUBY", ruby}},
                     .clock = clock,
                     .guests = guests};
  protocol::Bindings& bindings = parts.bindings;
  SandboxOptions& options = parts.options;
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  const storage::ObjectName name = object_name("demo").value();
  std::unique_ptr<storage::ObjectStorage> object = storage->open(name, Sandbox::schema()).value();
  std::optional<Sandbox> sandbox_;

  Sandbox& sandbox() {
    if (!sandbox_) sandbox_.emplace(*object, parts);
    return *sandbox_;
  }
  /// A new sandbox over the same storage.
  void restart() {
    sandbox_.reset();
    object = storage->open(name, Sandbox::schema()).value();
  }
  Reply request(std::string method, std::string path, const std::string& body = {}) {
    const protocol::Response response = sandbox().fetch({.method = std::move(method),
                                                         .path = std::move(path),
                                                         .headers = {{"x-sandbox-id", "demo"}},
                                                         .body = body});
    EXPECT_EQ(protocol::find_header(response.headers, "cache-control"), "no-store");
    return {.status = response.status, .body = json::parse(response.body)};
  }
  Reply post(std::string path, const json::value& body) {
    return request("POST", std::move(path), json::serialize(body));
  }
  Reply get(std::string path) { return request("GET", std::move(path)); }
  Reply remove(std::string path) { return request("DELETE", std::move(path)); }
  Reply files(const json::value& body) { return post("/files", body); }
  Reply write(const char* path, const char* content) {
    return files({{"op", "write"}, {"path", path}, {"content", content}});
  }
  std::string read(const char* path) {
    const Reply reply = files({{"op", "read"}, {"path", path}});
    return reply.status == 200 ? reply.text("/content") : reply.text("/code");
  }
  std::string create(const char* binding) {
    return post("/contexts", {{"binding", binding}}).text("/id");
  }
  Reply execute(const char* binding, const char* code = "1") {
    return post("/execute", {{"binding", binding}, {"code", code}});
  }
  std::vector<std::string> context_ids() {
    std::vector<std::string> ids;
    const Reply reply = get("/contexts");
    for (const json::value& context : reply.at("/contexts").as_array()) {
      ids.emplace_back(context.at("id").as_string());
    }
    return ids;
  }
  std::size_t rows(storage::TableId table) {
    std::size_t count = 0;
    EXPECT_TRUE(object
                    ->read([&](storage::Reader& reader) {
                      count = 0;
                      return reader.scan_keys(
                          {.table = table, .from = {}, .to = {}}, storage::Order::kAscending,
                          [&](std::string_view, std::size_t) -> Result<storage::Scan> {
                            ++count;
                            return storage::Scan::kContinue;
                          });
                    })
                    .ok());
    return count;
  }
  std::optional<object::Time> alarm() {
    std::optional<object::Time> time;
    EXPECT_TRUE(object
                    ->read([&](storage::Reader& reader) -> Result<void> {
                      SW_TRY(time, reader.alarm());
                      return {};
                    })
                    .ok());
    return time;
  }
  static void fail_run(Workspace& files, protocol::ExecuteResponse& response) {
    ASSERT_TRUE(files.write("by-the-run", "x", FileEncoding::kUtf8, 0).ok());
    response.outcome.error =
        GuestError{.name = "Error", .message = "oops", .traceback = {}, .line_number = {}};
  }
};

// --- contexts

TEST_F(SandboxTest, AnUnknownBindingIsRefused) {
  EXPECT_EQ(post("/contexts", {{"binding", "NOPE"}}).refusal(),
            "400 VALIDATION_FAILED Unknown binding 'NOPE'");
  EXPECT_EQ(post("/contexts", {{"binding", "has-dash"}}).refusal(),
            "400 VALIDATION_FAILED Unknown binding 'has-dash'");
}

TEST_F(SandboxTest, WhatIsNoRuntimeWorkerIsRefused) {
  python->self.protocol = 2;
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}}).refusal(),
            "400 VALIDATION_FAILED Binding 'PYTHON' speaks interpreter protocol 2; this caller "
            "supports 1");
  python->unreachable = kGone;
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}}).refusal(),
            "400 VALIDATION_FAILED Binding 'PYTHON' is not a sandbox-workers runtime Worker");
}

TEST_F(SandboxTest, AContextIsMadeListedAndAnnouncedOnce) {
  const Reply made = post("/contexts", {{"binding", "JAVASCRIPT"}, {"cwd", "src/../lib"}});
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.text("/binding"), "JAVASCRIPT");
  EXPECT_EQ(made.text("/language"), "javascript");
  EXPECT_EQ(made.text("/cwd"), "/workspace/lib");
  EXPECT_EQ(made.text("/createdAt"), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(made.text("/lastUsed"), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(made.body.as_object().size(), 6u);
  EXPECT_THAT(made.text("/id"), SizeIs(36));
  EXPECT_THAT(context_ids(), ElementsAre(made.text("/id")));
  ASSERT_EQ(javascript->interpreters.size(), 1u);
  const auto& [key, interpreter] = *javascript->interpreters.begin();
  EXPECT_THAT(key, AllOf(SizeIs(64), Not(HasSubstr("demo"))));
  EXPECT_THAT(interpreter.executions, ElementsAre(Pair(made.text("/id"), 0)));
  restart();
  EXPECT_THAT(context_ids(), ElementsAre(made.text("/id")));
}

TEST_F(SandboxTest, ContextsAreValidated) {
  const auto refusal = [&](const json::value& body) { return post("/contexts", body).refusal(); };
  EXPECT_EQ(refusal(json::object()), "400 VALIDATION_FAILED binding is required");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"id", std::string(129, 'x')}, {"cwd", ""}}),
            "400 VALIDATION_FAILED id must be a non-empty string of at most 128 characters");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"cwd", ""}}),
            "400 VALIDATION_FAILED cwd must be a non-empty string");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"cwd", "/etc"}}),
            "400 VALIDATION_FAILED Path escapes /workspace: /etc");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"envVars", 1}}),
            "400 VALIDATION_FAILED envVars must be an object");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"envVars", {{"a-b", "x"}}}}),
            "400 VALIDATION_FAILED Invalid envVars key: a-b");
  EXPECT_EQ(refusal({{"binding", "PYTHON"}, {"envVars", {{"A", nullptr}}}}),
            "400 VALIDATION_FAILED envVars values must be strings");
}

TEST_F(SandboxTest, ThereAreAtMostEightContextsOverAllBindings) {
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(post("/contexts", {{"binding", i % 2 ? "PYTHON" : "JAVASCRIPT"}}).status, 201);
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}}).refusal(),
            "400 VALIDATION_FAILED Cannot create more than 8 code contexts");
}

TEST_F(SandboxTest, TheDefaultContextOfABindingIsItsOldest) {
  const std::string id = execute("PYTHON").text("/context/id");
  EXPECT_EQ(execute("PYTHON").text("/context/id"), id);
  EXPECT_THAT(context_ids(), SizeIs(1));
  create("PYTHON");
  EXPECT_EQ(execute("PYTHON").text("/context/id"), id);
  const std::string explicit_one = create("JAVASCRIPT");
  EXPECT_EQ(execute("JAVASCRIPT").text("/context/id"), explicit_one);
  remove("/contexts/" + id);
  EXPECT_NE(execute("PYTHON").text("/context/id"), id);
}

TEST_F(SandboxTest, ABindingWithoutContextsRunsTheCodeOnce) {
  ASSERT_EQ(post("/env", {{"envVars", {{"A", "sandbox"}, {"B", "sandbox"}}}}).status, 200);
  EXPECT_EQ(post("/contexts", {{"binding", "RUBY"}}).refusal(),
            "400 VALIDATION_FAILED Code contexts are not supported by binding 'RUBY' (ruby)");
  const Reply reply =
      post("/execute",
           {{"binding", "RUBY"}, {"code", "1"}, {"envVars", {{"B", nullptr}, {"C", "call"}}}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.body.as_object().contains("context"));
  EXPECT_FALSE(reply.body.as_object().contains("executionCount"));
  EXPECT_EQ(reply.text("/logs/stdout/0"), "ran once");
  EXPECT_EQ(ruby->runs_once.back().code, "1");
  EXPECT_THAT(ruby->runs_once.back().env, ElementsAre(Pair("A", "sandbox"), Pair("C", "call")));
}

TEST_F(SandboxTest, DeletingAContextLeavesTheFilesAndAsksItsWorkerOnce) {
  ASSERT_EQ(write("f", "text").status, 200);
  const std::string id = create("PYTHON");
  EXPECT_EQ(remove("/contexts/" + id).status, 200);
  EXPECT_EQ(python->calls.back(), "end " + id);
  EXPECT_EQ(remove("/contexts/" + id).refusal(),
            "404 CONTEXT_NOT_FOUND Code context '" + id + "' not found");
  EXPECT_EQ(read("f"), "text");
}

TEST_F(SandboxTest, AContextCanBeDeletedWhoseWorkerIsGone) {
  const std::string id = create("PYTHON");
  python->unreachable = kGone;
  EXPECT_EQ(remove("/contexts/" + id).status, 200);
  EXPECT_THAT(context_ids(), IsEmpty());
}

TEST_F(SandboxTest, ACallerMayNameAContext) {
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", "my context"}}).text("/id"),
            "my context");
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", "my context"}}).refusal(),
            "400 VALIDATION_FAILED Code context 'my context' already exists");
  EXPECT_EQ(post("/execute", {{"contextId", "my context"}, {"code", "1"}}).status, 200);
  EXPECT_EQ(remove("/contexts/my%20context").status, 200);
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", std::string(129, 'x')}}).status, 400);
}

TEST_F(SandboxTest, ANameLeftBehindAtTheInterpreterIsTakenOver) {
  post("/contexts", {{"binding", "PYTHON"}, {"id", "mine"}});
  EXPECT_EQ(post("/execute", {{"contextId", "mine"}, {"code", "1"}}).status, 200);
  python->unreachable = kGone;
  remove("/contexts/mine");
  python->unreachable.reset();
  EXPECT_EQ(post("/contexts", {{"binding", "PYTHON"}, {"id", "mine"}}).status, 201);
  EXPECT_EQ(python->interpreters.begin()->second.executions["mine"], 0u)
      << "the old memory is still there";
}

// --- runs and files

TEST_F(SandboxTest, TheFirstRunGetsAllFilesAndTheManifestHoldsNoContents) {
  ASSERT_EQ(write("a", "hi").status, 200);
  ASSERT_EQ(write("b", "b").status, 200);
  execute("PYTHON");
  EXPECT_THAT(python->asked_for, ElementsAre(ElementsAre("/workspace/a", "/workspace/b")));
  EXPECT_THAT(python->runs.back().run.files->manifest.files,
              Contains(Pair("/workspace/a", "683af69a9f4e3ad4")));
  EXPECT_EQ(python->runs.back().run.files->manifest.limits->file_bytes_max, 1048576u);
}

TEST_F(SandboxTest, OnlyWhatChangedIsAskedForAgain) {
  ASSERT_EQ(write("a", "1").status, 200);
  ASSERT_EQ(write("b", "1").status, 200);
  execute("PYTHON");
  execute("PYTHON");
  EXPECT_THAT(python->asked_for, SizeIs(1)) << "nothing had changed";
  ASSERT_EQ(write("b", "2").status, 200);
  execute("PYTHON");
  EXPECT_THAT(python->asked_for.back(), ElementsAre("/workspace/b"));
  EXPECT_THAT(python->asked_for, SizeIs(2));
}

TEST_F(SandboxTest, AMirrorThatWasLostIsFilledAgain) {
  ASSERT_EQ(write("a", "1").status, 200);
  execute("PYTHON");
  python->interpreters.begin()->second.mirrors.clear();
  EXPECT_EQ(execute("PYTHON").status, 200);
  EXPECT_THAT(python->asked_for,
              ElementsAre(ElementsAre("/workspace/a"), ElementsAre("/workspace/a")));
}

TEST_F(SandboxTest, WhatTheInterpreterRefusesIsPassedOn) {
  const std::string id = create("PYTHON");
  python->refuse = Error{ErrorCode::kBadReply, "Sandbox did not provide 1 workspace file(s)", 0};
  EXPECT_EQ(execute("PYTHON").refusal(),
            "500 INTERNAL_ERROR Sandbox did not provide 1 workspace file(s)");
  EXPECT_THAT(context_ids(), ElementsAre(id));
}

TEST_F(SandboxTest, WhatARunWroteCanBeReadAndSurvives) {
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("made", "by the run", FileEncoding::kUtf8, 5'000'000'000).ok());
  };
  EXPECT_EQ(execute("PYTHON").status, 200);
  EXPECT_EQ(read("made"), "by the run");
  const Reply list = files({{"op", "list"}, {"path", "/workspace"}});
  EXPECT_EQ(list.text("/files/0/absolutePath"), "/workspace/made");
  EXPECT_EQ(list.text("/files/0/modifiedAt"), "1970-01-01T00:00:05.000Z");
  restart();
  EXPECT_EQ(read("made"), "by the run");
}

TEST_F(SandboxTest, AnErrorOfTheCodeKeepsTheFilesThatItsInterpreterKept) {
  python->during_run = fail_run;
  const Reply reply = execute("PYTHON");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.text("/error/message"), "oops");
  EXPECT_TRUE(reply.at("/results").as_array().empty());
  EXPECT_EQ(reply.number("/executionCount"), 1);
  EXPECT_EQ(read("by-the-run"), "x");
  restart();
  EXPECT_EQ(read("by-the-run"), "x");
}

TEST_F(SandboxTest, ARunSaysWhatBecomesOfItAfterAnError) {
  python->during_run = fail_run;
  const auto after_error = [&](json::object body) {
    body.emplace("binding", "PYTHON");
    body.emplace("code", "1");
    EXPECT_EQ(post("/execute", body).status, 200);
    return *python->runs.back().run.on_error;
  };
  using enum AfterError;
  EXPECT_EQ(after_error({}), kKeep);
  EXPECT_EQ(after_error({{"onError", "rollback"}}), kRollback);
  EXPECT_EQ(after_error({{"profile", "compat"}}), kFilesBack);
  EXPECT_EQ(after_error({{"profile", "compat"}, {"onError", "keep"}}), kKeep);
  options.profile = protocol::kCompatProfile;
  restart();
  EXPECT_EQ(after_error({}), kFilesBack);
  EXPECT_EQ(after_error({{"profile", "standard"}}), kKeep);
  EXPECT_EQ(after_error({{"onError", "rollback"}}), kRollback);
}

TEST_F(SandboxTest, FilesThatTheInterpreterPutBackAreAsTheyWere) {
  ASSERT_EQ(write("f", "before").status, 200);
  python->during_run = fail_run;
  EXPECT_EQ(
      post("/execute", {{"binding", "PYTHON"}, {"code", "1"}, {"onError", "rollback"}}).status,
      200);
  EXPECT_EQ(files({{"op", "list"}, {"path", "."}}).number("/count"), 1);
  EXPECT_EQ(read("f"), "before");
}

TEST_F(SandboxTest, AnAnswerHasWhatTheProtocolSays) {
  python->during_run = [](Workspace&, protocol::ExecuteResponse& response) {
    response.outcome.cwd = "/workspace/d";
    response.outcome.context->state = ContextState::kRestored;
    response.outcome.context->note = "why";
    response.outcome.context->snapshot_ms = 1.5;
    response.snapshot = protocol::SnapshotInfo{.build = "b", .pages = 2, .bytes = 8192};
  };
  const Reply reply = execute("PYTHON", "1 + 1");
  EXPECT_EQ(reply.text("/code"), "1 + 1");
  EXPECT_EQ(reply.text("/language"), "python");
  EXPECT_EQ(reply.text("/engine"), "Fake");
  EXPECT_EQ(reply.at("/logs"), json::value({{"stdout", {"ran"}}, {"stderr", json::array()}}));
  EXPECT_EQ(reply.at("/results"), json::value(json::array{{{"text", "1 + 1"}}}));
  EXPECT_EQ(reply.number("/executionCount"), 1);
  EXPECT_EQ(reply.text("/context/cwd"), "/workspace/d");
  EXPECT_EQ(reply.number("/context/executions"), 1);
  EXPECT_EQ(reply.text("/context/state"), "restored");
  EXPECT_EQ(reply.text("/context/note"), "why");
  EXPECT_EQ(reply.at("/context/snapshotMs").to_number<double>(), 1.5);
  EXPECT_EQ(reply.number("/context/expiresAt"), (kStart + kTtl).time_since_epoch().count());
  EXPECT_FALSE(reply.at("/context").as_object().contains("snapshot"));
  EXPECT_EQ(get("/").text("/contexts/0/snapshot/build"), "b");
  EXPECT_EQ(get("/").text("/contexts/0/cwd"), "/workspace/d");
}

TEST_F(SandboxTest, AContextThatTheInterpreterLostLeavesTheList) {
  const std::string id = create("PYTHON");
  python->interpreters.clear();
  EXPECT_EQ(execute("PYTHON").refusal(),
            "404 CONTEXT_NOT_FOUND Code context '" + id + "' not found");
  EXPECT_THAT(context_ids(), IsEmpty());
  restart();
  EXPECT_THAT(context_ids(), IsEmpty());
}

TEST_F(SandboxTest, ARunIsValidatedInOrder) {
  const auto refusal = [&](const json::value& body) { return post("/execute", body).refusal(); };
  EXPECT_EQ(refusal({{"cwd", "/workspace"}}),
            "400 VALIDATION_FAILED cwd is a context property; pass it to createCodeContext");
  EXPECT_EQ(refusal({{"code", "  "}, {"envVars", 1}}),
            "400 VALIDATION_FAILED Non-empty code is required");
  EXPECT_EQ(refusal({{"code", std::string(65537, 'x')}}),
            "413 VALIDATION_FAILED Code exceeds 64 KiB");
  EXPECT_EQ(refusal({{"code", "1"}, {"envVars", 1}, {"contextId", 1}}),
            "400 VALIDATION_FAILED envVars must be an object");
  EXPECT_EQ(refusal({{"code", "1"}, {"envVars", {{"1A", "x"}}}}),
            "400 VALIDATION_FAILED Invalid envVars key: 1A");
  EXPECT_EQ(refusal({{"code", "1"}, {"contextId", ""}}),
            "400 VALIDATION_FAILED contextId must be a non-empty string");
  EXPECT_EQ(refusal({{"code", "1"}, {"binding", 1}}),
            "400 VALIDATION_FAILED binding must be a non-empty string");
  EXPECT_EQ(refusal({{"code", "1"}, {"onError", "undo"}}),
            "400 VALIDATION_FAILED onError must be 'keep' or 'rollback'");
  EXPECT_EQ(refusal({{"code", "1"}, {"onError", nullptr}}),
            "400 VALIDATION_FAILED onError must be 'keep' or 'rollback'");
  EXPECT_EQ(refusal({{"code", "1"}, {"profile", 1}}),
            "400 VALIDATION_FAILED profile must be 'standard' or 'compat'");
  EXPECT_EQ(refusal({{"code", "1"}}), "400 VALIDATION_FAILED Pass a context or a binding");
  EXPECT_EQ(refusal({{"code", "1"}, {"contextId", "nope"}}),
            "404 CONTEXT_NOT_FOUND Code context 'nope' not found");
  EXPECT_EQ(refusal({{"code", "1"}, {"binding", "NOPE"}}),
            "400 VALIDATION_FAILED Unknown binding 'NOPE'");
}

TEST_F(SandboxTest, AContextWinsOverABinding) {
  const std::string id = create("PYTHON");
  const Reply reply = post("/execute", {{"contextId", id}, {"binding", "NOPE"}, {"code", "1"}});
  EXPECT_EQ(reply.text("/context/id"), id);
}

TEST_F(SandboxTest, AWorkerThatCannotBeReachedIs502) {
  create("PYTHON");
  python->unreachable = Error{ErrorCode::kUnreachable, "connection lost", 0};
  EXPECT_EQ(execute("PYTHON").refusal(),
            "502 INTERNAL_ERROR Binding 'PYTHON' failed: connection lost");
}

TEST_F(SandboxTest, ADiffWithPathsThatCannotBeChangesNothing) {
  ASSERT_EQ(write("f", "before").status, 200);
  create("PYTHON");
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("f", "after", FileEncoding::kUtf8, 0).ok());
  };
  python->after_run = [](protocol::ExecuteResponse& response) {
    response.outcome.files->files.push_back({.path = "/etc/passwd", .data = {}});
  };
  EXPECT_THAT(execute("PYTHON").refusal(),
              HasSubstr("500 INTERNAL_ERROR the Interpreter returned an invalid workspace"));
  EXPECT_EQ(read("f"), "before");
}

TEST_F(SandboxTest, EnvironmentsAreLaidOverOneAnother) {
  ASSERT_EQ(
      post("/env", {{"envVars", {{"A", "sandbox-a"}, {"B", "sandbox-b"}, {"C", "sandbox-c"}}}})
          .status,
      200);
  const std::string id =
      post("/contexts", {{"binding", "PYTHON"}, {"envVars", {{"B", "context-b"}}}}).text("/id");
  const auto env_of = [&](const json::value& call) {
    post("/execute", {{"contextId", id}, {"code", "1"}, {"envVars", call}});
    return python->runs.back().run.env;
  };
  EXPECT_THAT(env_of({{"C", nullptr}, {"D", "call-d"}}),
              ElementsAre(Pair("A", "sandbox-a"), Pair("B", "context-b"), Pair("D", "call-d")));
  ASSERT_EQ(post("/env", {{"envVars", {{"A", nullptr}}}}).status, 200);
  EXPECT_THAT(env_of(json::object()), ElementsAre(Pair("B", "context-b"), Pair("C", "sandbox-c")));
  restart();
  EXPECT_EQ(get("/").at("/envVars"), json::value({{"B", "sandbox-b"}, {"C", "sandbox-c"}}));
  EXPECT_EQ(post("/env", json::object()).refusal(), "400 VALIDATION_FAILED envVars is required");
}

// --- what a crash between two commits leaves

TEST_F(SandboxTest, TheInterpreterIsToldWhichRunIsTheLastThatIsKnown) {
  create("PYTHON");
  execute("PYTHON");
  EXPECT_EQ(python->runs.back().executions_known, 0u);
  execute("PYTHON");
  EXPECT_EQ(python->runs.back().executions_known, 1u);
  // The Interpreter has stored a run; we have not, because the storage failed.
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("lost", "x", FileEncoding::kUtf8, 0).ok());
  };
  EXPECT_THAT(execute("PYTHON").refusal(),
              AllOf(StartsWith("503 INTERNAL_ERROR"), HasSubstr("disk full")));
  disk.fail_commits(std::nullopt);
  python->during_run = nullptr;
  EXPECT_EQ(read("lost"), "FILE_NOT_FOUND");
  EXPECT_EQ(execute("PYTHON").number("/executionCount"), 3);
  EXPECT_EQ(python->runs.back().executions_known, 2u) << "so that it takes back the third";
}

TEST_F(SandboxTest, FilesAndCountsAreStoredTogether) {
  python->during_run = [](Workspace& files, protocol::ExecuteResponse& response) {
    ASSERT_TRUE(files.write("n", response.outcome.cwd, FileEncoding::kUtf8, 0).ok());
  };
  execute("PYTHON");
  const auto state = [&] {
    return std::pair(rows(0x20), get("/").number("/contexts/0/executions"));
  };
  EXPECT_EQ(state(), std::pair(std::size_t{1}, std::int64_t{1}));
  disk.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.write("m", "x", FileEncoding::kUtf8, 0).ok());
  };
  execute("PYTHON");
  disk.fail_commits(std::nullopt);
  EXPECT_EQ(state(), std::pair(std::size_t{1}, std::int64_t{1}));
}

// --- information, life and death

TEST_F(SandboxTest, InfoTellsEverything) {
  ASSERT_EQ(write("f", "abc").status, 200);
  execute("PYTHON");
  const Reply info = get("/");
  EXPECT_EQ(info.text("/id"), "demo");
  EXPECT_EQ(info.text("/createdAt"), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(info.at("/envVars"), json::value(json::object()));
  EXPECT_EQ(info.text("/contexts/0/binding"), "PYTHON");
  EXPECT_EQ(info.text("/contexts/0/language"), "python");
  EXPECT_EQ(info.text("/contexts/0/engine"), "Fake");
  EXPECT_EQ(info.number("/contexts/0/executions"), 1);
  EXPECT_TRUE(info.at("/contexts/0/snapshot").is_null());
  EXPECT_EQ(info.at("/workspace"), json::value({{"files", 1}, {"bytes", 3}}));
  EXPECT_TRUE(info.at("/fileApi").as_bool());
  EXPECT_EQ(info.number("/expiresAt"), (kStart + kTtl).time_since_epoch().count());
}

TEST_F(SandboxTest, WithoutATimeToLiveNothingExpires) {
  options.idle_ttl = std::chrono::milliseconds(0);
  EXPECT_TRUE(get("/").at("/expiresAt").is_null());
  EXPECT_FALSE(execute("PYTHON").at("/context").as_object().contains("expiresAt"));
  EXPECT_FALSE(alarm());
}

TEST_F(SandboxTest, DestroyingTellsEachBindingAndBeginsAnew) {
  create("PYTHON");
  create("JAVASCRIPT");
  ASSERT_EQ(write("f", "x").status, 200);
  EXPECT_EQ(remove("/").status, 200);
  for (const auto& worker : {python, javascript}) {
    EXPECT_EQ(worker->calls.back(), "destroy");
    EXPECT_THAT(worker->interpreters, IsEmpty());
  }
  EXPECT_FALSE(alarm());
  clock.advance(std::chrono::seconds(1));
  EXPECT_THAT(context_ids(), IsEmpty());
  EXPECT_EQ(read("f"), "FILE_NOT_FOUND");
  EXPECT_EQ(get("/").text("/createdAt"), "2023-11-14T22:13:21.123Z");
}

TEST_F(SandboxTest, DestroyingDoesNotNeedTheWorkers) {
  create("PYTHON");
  python->unreachable = kGone;
  bindings.erase("PYTHON");
  EXPECT_EQ(remove("/").status, 200);
  EXPECT_THAT(context_ids(), IsEmpty());
}

TEST_F(SandboxTest, UseMovesTheAlarmOnlyOnceInAWhile) {
  create("PYTHON");
  const std::int64_t first = execute("PYTHON").number("/context/expiresAt");
  clock.advance(kTtl / 20);
  EXPECT_EQ(execute("PYTHON").number("/context/expiresAt"), first);
  clock.advance(kTtl / 10);
  EXPECT_GT(execute("PYTHON").number("/context/expiresAt"), first);
}

TEST_F(SandboxTest, RefusedRequestsAreNoUse) {
  execute("PYTHON");
  const auto before = alarm();
  clock.advance(kTtl / 2);
  post("/execute", {{"code", "1"}});
  files({{"op", "read"}, {"path", "missing"}});
  python->refuse = Error{ErrorCode::kInternal, "no", 0};
  execute("PYTHON");
  EXPECT_EQ(alarm(), before);
  get("/");
  EXPECT_GT(alarm(), before);
}

TEST_F(SandboxTest, TheAlarmDestroysWhatNobodyUsed) {
  execute("PYTHON");
  clock.advance(kTtl - std::chrono::seconds(1));
  EXPECT_TRUE(sandbox().on_alarm(clock.now()).ok());
  EXPECT_THAT(get("/").at("/contexts").as_array(), SizeIs(1));
  clock.advance(kTtl);
  restart();
  EXPECT_TRUE(sandbox().on_alarm(clock.now()).ok());
  EXPECT_THAT(python->interpreters, IsEmpty());
  EXPECT_THAT(get("/").at("/contexts").as_array(), IsEmpty());
}

TEST_F(SandboxTest, ItsInterpretersAreCalledByARandomNameThatLastsAsLongAsItDoes) {
  const auto key = [&] {
    create("PYTHON");
    EXPECT_EQ(python->interpreters.size(), 1u);
    return python->interpreters.empty() ? "" : python->interpreters.begin()->first;
  };
  const std::string first = key();
  EXPECT_THAT(first, SizeIs(64));
  restart();
  EXPECT_EQ(key(), first);
  EXPECT_EQ(remove("/").status, 200);
  EXPECT_NE(key(), first);
}

TEST_F(SandboxTest, ASandboxOfAnEarlierVersionFindsItsInterpreters) {
  create("PYTHON");
  ASSERT_TRUE(
      object->transact([](storage::Transaction& t) { return t.erase(0x01, "interpreters"); }).ok());
  restart();
  python->interpreters.clear();
  create("PYTHON");
  EXPECT_EQ(python->interpreters.begin()->first, old_interpreter_key(name));
}

TEST_F(SandboxTest, AnyRequestButDestroyingBringsASandboxIntoBeing) {
  EXPECT_EQ(remove("/").status, 200);
  EXPECT_EQ(rows(0x01), 0u);
  EXPECT_EQ(get("/nowhere").refusal(), "404 VALIDATION_FAILED Not found");
  EXPECT_EQ(rows(0x01), 2u);
}

TEST_F(SandboxTest, TheIdIsCheckedFirst) {
  const auto status = [&](protocol::Headers headers) {
    return sandbox().fetch({.method = "GET", .path = "/", .headers = std::move(headers)}).status;
  };
  EXPECT_EQ(status({}), 400);
  EXPECT_EQ(status({{"x-sandbox-id", "a b"}}), 400);
  EXPECT_EQ(status({{"X-Sandbox-Id", "demo"}}), 200);
}

// --- files over requests

TEST_F(SandboxTest, AnEmptyFolderOfAGuestReachesTheOtherLanguage) {
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.make_directory("empty", Depth::kOne, 0).ok());
  };
  execute("PYTHON");
  execute("JAVASCRIPT");
  EXPECT_THAT(javascript->runs.back().run.files->manifest.dirs, ElementsAre("/workspace/empty"));
  const Reply list = files({{"op", "list"}, {"path", "/workspace"}});
  EXPECT_EQ(list.text("/files/0/type"), "directory");
  EXPECT_EQ(list.text("/files/0/mode"), "drwxr-xr-x");
  EXPECT_EQ(list.at("/files/0/permissions"),
            json::value({{"readable", true}, {"writable", true}, {"executable", true}}));
}

TEST_F(SandboxTest, EachOperationAnswersAsTheProtocolSays) {
  const Reply written = files({{"op", "write"}, {"path", "a.JSON"}, {"content", 5}});
  EXPECT_EQ(written.at(""), json::value({{"success", true},
                                         {"path", "/workspace/a.JSON"},
                                         {"timestamp", "2023-11-14T22:13:20.123Z"}}));
  EXPECT_EQ(files({{"op", "read"}, {"path", "/workspace/a.JSON"}}).at(""),
            json::value({{"success", true},
                         {"path", "/workspace/a.JSON"},
                         {"content", "5"},
                         {"encoding", "utf-8"},
                         {"isBinary", false},
                         {"mimeType", "application/json"},
                         {"size", 1},
                         {"timestamp", "2023-11-14T22:13:20.123Z"}}));
  EXPECT_EQ(files({{"op", "mkdir"}, {"path", "d/e"}, {"recursive", 1}}).at("/recursive"),
            json::value(true));
  EXPECT_EQ(files({{"op", "move"}, {"path", "a.JSON"}, {"newPath", "d/b"}}).text("/newPath"),
            "/workspace/d/b");
  EXPECT_TRUE(files({{"op", "exists"}, {"path", "d/b"}}).at("/exists").as_bool());
  EXPECT_FALSE(files({{"op", "exists"}, {"path", "d/b/c"}}).at("/exists").as_bool());
  EXPECT_EQ(files({{"op", "delete"}, {"path", "d"}}).text("/code"), "IS_DIRECTORY");
  EXPECT_EQ(files({{"op", "delete"}, {"path", "d"}, {"recursive", true}}).status, 200);
  EXPECT_EQ(files({{"op", "delete"}, {"path", "d"}, {"force", true}}).status, 200);
}

TEST_F(SandboxTest, ListsLeaveOutWhatIsHidden) {
  files({{"op", "mkdir"}, {"path", ".git/objects"}, {"recursive", true}});
  ASSERT_EQ(write("a.txt", "abc").status, 200);
  const Reply list = files({{"op", "list"}, {"path", "."}, {"recursive", true}});
  EXPECT_EQ(list.text("/path"), "/workspace");
  EXPECT_EQ(list.number("/count"), 1);
  EXPECT_EQ(list.at("/files/0"),
            json::value({{"name", "a.txt"},
                         {"absolutePath", "/workspace/a.txt"},
                         {"relativePath", "a.txt"},
                         {"type", "file"},
                         {"size", 3},
                         {"modifiedAt", "2023-11-14T22:13:20.123Z"},
                         {"mode", "-rw-r--r--"},
                         {"permissions",
                          {{"readable", true}, {"writable", true}, {"executable", false}}}}));
  EXPECT_EQ(files({{"op", "list"}, {"path", "."}, {"recursive", true}, {"includeHidden", true}})
                .number("/count"),
            3);
  EXPECT_EQ(files({{"op", "list"}, {"path", ".git"}}).text("/files/0/relativePath"), "objects");
}

TEST_F(SandboxTest, FileErrorsHaveCodeOperationErrnoAndThePathAsSent) {
  const Reply missing = files({{"op", "read"}, {"path", "./missing"}});
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.text("/code"), "FILE_NOT_FOUND");
  EXPECT_EQ(missing.text("/operation"), "file.read");
  EXPECT_EQ(missing.at("/context"),
            json::value({{"path", "./missing"}, {"operation", "file.read"}, {"errno", "ENOENT"}}));
  const Reply outside = files({{"op", "exists"}, {"path", "/etc/passwd"}});
  EXPECT_EQ(outside.refusal(), "403 PERMISSION_DENIED Path escapes /workspace: /etc/passwd");
  EXPECT_EQ(outside.text("/operation"), "file.stat");
  const Reply big = write("big", std::string(1'048'577, 'x').c_str());
  EXPECT_EQ(big.status, 413);
  EXPECT_EQ(big.text("/code"), "FILE_TOO_LARGE");
  EXPECT_EQ(big.number("/context/maxSize"), 1'048'576);
  EXPECT_EQ(big.number("/context/actualSize"), 1'048'577);
}

TEST_F(SandboxTest, FailuresOfMkdirAreFilesystemErrors) {
  files({{"op", "mkdir"}, {"path", "d"}});
  const Reply existing = files({{"op", "mkdir"}, {"path", "d"}});
  EXPECT_EQ(existing.status, 500);
  EXPECT_EQ(existing.text("/code"), "FILESYSTEM_ERROR");
  EXPECT_EQ(existing.text("/context/errno"), "EEXIST");
  EXPECT_EQ(files({{"op", "mkdir"}, {"path", "/etc"}}).text("/code"), "PERMISSION_DENIED");
}

TEST_F(SandboxTest, FileRequestsAreValidated) {
  const auto refusal = [&](const json::value& body) { return files(body).refusal(); };
  EXPECT_EQ(refusal({{"op", "chmod"}, {"path", "a"}}), "400 VALIDATION_FAILED Unknown op");
  EXPECT_EQ(refusal({{"op", "read"}, {"path", ""}}), "400 VALIDATION_FAILED path is required");
  EXPECT_EQ(refusal({{"op", "rename"}, {"path", "a"}}),
            "400 VALIDATION_FAILED newPath is required for rename");
  EXPECT_EQ(refusal({{"op", "read"}, {"path", "a"}, {"encoding", "utf8"}}),
            "400 VALIDATION_FAILED encoding must be utf-8 or base64");
  EXPECT_EQ(request("POST", "/files", "{").refusal(), "400 VALIDATION_FAILED Invalid JSON");
  EXPECT_EQ(request("POST", "/files", std::string(2'097'153, ' ')).refusal(),
            "413 VALIDATION_FAILED Request too large");
}

TEST_F(SandboxTest, FilesThatWereAllowedWhenTheyWereStoredCanStillBeRead) {
  options.files.file_bytes_max = 3'000'000;
  const std::string big(2'000'000, 'x');
  ASSERT_TRUE(sandbox()
                  .with_files(FileUse::kChange, "file.write", "big",
                              [&](Workspace& files, std::uint64_t now) {
                                return files.write("big", big, FileEncoding::kUtf8, now);
                              })
                  .ok());
  options = {};
  restart();
  EXPECT_EQ(read("big"), big);
  EXPECT_EQ(write("big2", std::string(1'048'577, 'x').c_str()).status, 413);
}

// --- no files at all

TEST_F(SandboxTest, DisabledTheFileApiIsRefusedBeforeAnythingElse) {
  options.file_api = false;
  const Reply reply = request("POST", "/files", "{ not JSON");
  EXPECT_EQ(
      reply.refusal(),
      "403 NOT_SUPPORTED The File API is disabled for this sandbox (SANDBOX_FILE_API=disabled)");
  EXPECT_EQ(reply.text("/context/feature"), "files");
}

TEST_F(SandboxTest, DisabledNothingOfFilesIsSentOrStored) {
  ASSERT_EQ(write("f", "kept").status, 200);
  const std::size_t stored = rows(0x20);
  options.file_api = false;
  restart();
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    files.set_disabled(false);  // a runtime that does not keep to it
    ASSERT_TRUE(files.write("by-the-run", "x", FileEncoding::kUtf8, 0).ok());
  };
  EXPECT_EQ(execute("PYTHON").number("/executionCount"), 1);
  EXPECT_EQ(execute("PYTHON").number("/executionCount"), 2);
  const WorkspaceManifest& manifest = python->runs.back().run.files->manifest;
  EXPECT_TRUE(manifest.disabled && manifest.dirs.empty() && manifest.files.empty() &&
              manifest.links.empty());
  EXPECT_THAT(python->asked_for, IsEmpty());
  EXPECT_FALSE(get("/").at("/fileApi").as_bool());
  EXPECT_EQ(get("/").at("/workspace"), json::value({{"files", 0}, {"bytes", 0}}));
  EXPECT_EQ(rows(0x20), stored);
  options.file_api = true;
  restart();
  EXPECT_EQ(read("f"), "kept");
}

// --- versions

TEST_F(SandboxTest, AForkIsAContextOfItsOwn) {
  const std::string id =
      post("/contexts", {{"binding", "PYTHON"}, {"envVars", {{"A", "1"}}}}).text("/id");
  execute("PYTHON");
  const Reply fork = post("/contexts/" + id + "/fork", {{"id", "twin"}});
  EXPECT_EQ(fork.status, 201);
  EXPECT_EQ(fork.text("/id"), "twin");
  EXPECT_EQ(fork.text("/language"), "python");
  EXPECT_EQ(post("/execute", {{"contextId", "twin"}, {"code", "1"}}).number("/executionCount"), 2);
  EXPECT_THAT(python->runs.back().run.env, ElementsAre(Pair("A", "1")));
  EXPECT_THAT(request("POST", "/contexts/" + id + "/fork").text("/id"), SizeIs(36));
  EXPECT_EQ(post("/contexts/" + id + "/fork", {{"id", "twin"}}).status, 400);
  EXPECT_EQ(post("/contexts/nope/fork", json::object()).status, 404);
  // A binding can be gone when a sandbox is opened again.
  bindings.erase("PYTHON");
  EXPECT_EQ(post("/contexts/" + id + "/fork", {{"id", "x"}}).refusal(),
            "400 VALIDATION_FAILED Unknown binding 'PYTHON'");
  EXPECT_EQ(request("POST", "/contexts/" + id + "/fork").status, 400);
}

TEST_F(SandboxTest, VersionsAreTheInterpretersAffair) {
  const std::string id = create("PYTHON");
  const std::string path = "/contexts/" + id;
  execute("PYTHON");
  EXPECT_EQ(post(path + "/undo", {{"runs", 1}}).status, 200);
  EXPECT_EQ(python->calls.back(), "undo " + id + " 1");
  execute("PYTHON");
  EXPECT_EQ(python->runs.back().executions_known, 1u) << "what the Interpreter said after the undo";
  EXPECT_EQ(post(path + "/checkpoints", {{"name", "a b"}}).status, 200);
  EXPECT_EQ(get(path + "/checkpoints").text("/checkpoints/0/name"), "a");
  EXPECT_EQ(post(path + "/restore", {{"name", "a b"}}).status, 200);
  EXPECT_EQ(remove(path + "/checkpoints/a%20b").status, 200);
  EXPECT_THAT(python->calls, Contains("remove_checkpoint " + id + " a b"));
  EXPECT_EQ(post(path + "/undo", {{"runs", 0}}).status, 400);
  EXPECT_EQ(post(path + "/checkpoints", json::object()).status, 400);
  EXPECT_EQ(post("/contexts/nope/undo", {{"runs", 1}}).status, 404);
}

TEST_F(SandboxTest, AContextOfAnInterpreterThatRefusesIsAnsweredWithItsOwnWords) {
  const std::string path = "/contexts/" + create("PYTHON");
  python->interpreters.begin()->second.executions.clear();
  EXPECT_THAT(post(path + "/undo", {{"runs", 1}}).refusal(), StartsWith("404 CONTEXT_NOT_FOUND"));
}

// --- storage

TEST_F(SandboxTest, ADamagedRecordIsSaidAndDestroyingStillWorks) {
  create("PYTHON");
  ASSERT_TRUE(
      object
          ->transact([](storage::Transaction& t) { return t.put(0x01, "sandbox", as_bytes("{}")); })
          .ok());
  restart();
  EXPECT_THAT(get("/").refusal(), HasSubstr("502 INTERNAL_ERROR the sandbox's record is damaged"));
  EXPECT_EQ(remove("/").status, 200);
  EXPECT_THAT(python->interpreters, IsEmpty());
  EXPECT_EQ(get("/").status, 200);
}

TEST_F(SandboxTest, AContextWhoseStoredIdIsNoTextIsDamage) {
  create("PYTHON");
  const auto rename = [](storage::Transaction& t) -> Result<void> {
    std::string id;
    Bytes row;
    SW_CHECK_OK(t.scan({.table = 0x02, .from = {}, .to = {}}, storage::Order::kAscending,
                       [&](std::string_view key, BytesView value) -> Result<storage::Scan> {
                         id = key;
                         row.assign(value.begin(), value.end());
                         return storage::Scan::kStop;
                       }));
    SW_CHECK_OK(t.erase(0x02, id));
    return t.put(0x02, "\xff", row);
  };
  ASSERT_TRUE(object->transact(rename).ok());
  restart();
  EXPECT_EQ(get("/contexts").refusal(), "502 INTERNAL_ERROR the id of a context is damaged");
}

TEST_F(SandboxTest, WhatAnEarlierVersionKeptOfMemoryIsDroppedAndFilesStay) {
  const storage::ObjectName old = object_name("old").value();
  auto before = storage->open(old, {}).value();
  ASSERT_TRUE(before
                  ->transact([](storage::Transaction& t) -> Result<void> {
                    SW_CHECK_OK(t.put(0x01, "languages", as_bytes(R"(["python"])")));
                    SW_CHECK_OK(t.put(0x30, "py", as_bytes("row")));
                    SW_CHECK_OK(t.put(0x32, "pack", as_bytes("pages")));
                    return t.put(0x20, "d", as_bytes(R"({"type":3,"modified":0})"));
                  })
                  .ok());
  object = storage->open(old, Sandbox::schema()).value();
  EXPECT_EQ(files({{"op", "list"}, {"path", "."}}).text("/files/0/name"), "d");
  EXPECT_EQ(rows(0x30) + rows(0x32), 0u);
}

TEST(SandboxId, FollowsTheRules) {
  EXPECT_TRUE(check_sandbox_id("user-42.a_B").ok());
  EXPECT_TRUE(check_sandbox_id(std::string(63, 'x')).ok());
  EXPECT_TRUE(check_sandbox_id("www2").ok());
  for (const char* id : {"", "-a", "a-", "a b", "a/b", "ü", "www", "API", "Workers"}) {
    EXPECT_THAT(check_sandbox_id(id).error().message, StartsWith("Invalid sandbox id")) << id;
  }
  EXPECT_FALSE(check_sandbox_id(std::string(64, 'x')).ok());
}

}  // namespace
}  // namespace sw::sandbox
