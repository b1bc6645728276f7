// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Sandboxes and Interpreters whose rows in the storage were changed. Whatever is asked of them is
// answered, and what they make of their rows is the same each time they are read.

#include <array>
#include <numeric>

#include "fuzz/fuzz.h"
#include "fuzz/requests.h"
#include "fuzz/rows.h"
#include "interpreter/fake_engine.h"
#include "protocol/interpreter_routes.h"
#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "storage/memory/memory_storage.h"

namespace sw::fuzz {
namespace {

constexpr int kChangesMax = 10;
constexpr int kRequestsMax = 6;
constexpr storage::TableId kTables = 64;

/// An object of the storage, which somebody may change meanwhile.
class Stored {
 public:
  Stored(const storage::ObjectName& name, const storage::Schema& schema)
      : storage_(storage::open_memory_storage(disk_)),
        object_(storage_->open(name, schema).value()) {}

  storage::ObjectStorage& object() { return *object_; }

  std::vector<Row> rows() {
    std::array<storage::TableId, kTables> tables = {};
    std::iota(tables.begin(), tables.end(), storage::TableId{0});
    return rows_of(*object_, tables);
  }

  void put(const std::vector<Row>& rows, std::optional<storage::Time> alarm) {
    const auto written = object_->transact([&](storage::Transaction& transaction) -> Result<void> {
      for (const Row& row : rows) {
        if (row.value.empty()) SW_CHECK_OK(transaction.erase(row.table, row.key));
        else SW_CHECK_OK(transaction.put(row.table, row.key, row.value));
      }
      return transaction.set_alarm(alarm);
    });
    require(written.ok(), "rows are written");
  }

 private:
  storage::MemoryDisk disk_;
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<storage::ObjectStorage> object_;
};

/// Of a row that is JSON, one value is another.
void change_json(Bytes& row, Choices& choices) {
  static const json::value kValues[] = {nullptr,
                                        true,
                                        0,
                                        -1,
                                        INT64_MAX,
                                        INT64_MIN,
                                        UINT64_MAX,
                                        1e308,
                                        0.5,
                                        "",
                                        "../..",
                                        "a/b",
                                        "/workspace/a",
                                        "\xff",
                                        {1, 2},
                                        json::object{{"a", "b"}}};
  json::error_code failed;
  json::value value = json::parse(as_text(row), failed);
  if (failed || !value.is_object() || value.as_object().empty()) return;
  json::object& object = value.as_object();
  const auto member = object.begin() + choices.below(object.size());
  if (choices.below(8) == 7) object.erase(member);
  else member->value() = kValues[choices.below(std::size(kValues))];
  row = copy_of(as_bytes(json::serialize(value)));
}

/// Puts them into the storage as somebody left them.
void put_changed(Stored& stored, std::vector<Row> rows, Choices& choices) {
  std::optional<storage::Time> alarm = kStart + std::chrono::hours(1);
  for (std::size_t i = 1 + choices.below(kChangesMax); i > 0 && !rows.empty(); --i) {
    Row& row = rows[choices.below(rows.size())];
    switch (choices.below(6)) {
      case 0: row.value.clear(); break;
      case 1: rows.push_back({row.table, choices.text(12) + "x", row.value}); break;
      case 2:
        alarm = storage::Time(
            std::chrono::milliseconds(static_cast<std::int64_t>(choices.any_number())));
        break;
      case 3: change(row.value, choices); break;
      default: change_json(row.value, choices);
    }
  }
  stored.put(rows, alarm);
}

protocol::Request post(std::string path, std::string body) {
  return {.method = "POST",
          .path = std::move(path),
          .headers = {{"content-type", "application/json"}},
          .body = std::move(body)};
}

protocol::Response ask(sandbox::Sandbox& one, const protocol::Request& request) {
  return one.fetch(request);
}
protocol::Response ask(interpreter::InterpreterServer& one, const protocol::Request& request) {
  return protocol::serve_interpreter(one, request, one.now_ms());
}

/// The same each time.
template <class Server>
std::string all_of(Server& server, std::initializer_list<protocol::Request> questions) {
  std::string all;
  for (const protocol::Request& question : questions) {
    const protocol::Response response = ask(server, question);
    check_answered(question, response);
    all += std::to_string(response.status) + " " + response.body + "\n";
  }
  return all;
}

void use_sandbox(Choices& choices) {
  Stored stored(sandbox::object_name("demo").value(), sandbox::Sandbox::schema());
  object::ManualClock clock(kStart);
  const protocol::Bindings bindings{
      {"JAVASCRIPT", std::make_shared<sandbox::FakeWorker>("javascript")}};
  const auto open = [&](auto& one) {
    one.emplace(stored.object(), bindings, clock, sandbox::SandboxOptions{});
  };
  std::optional<sandbox::Sandbox> one;
  open(one);
  all_of(*one, {post("/env", R"({"envVars":{"A":"1"}})"),
                post("/contexts", R"({"binding":"JAVASCRIPT","id":"a"})"),
                post("/files", R"({"op":"write","path":"a","content":"text"})"),
                post("/files", R"({"op":"mkdir","path":"b/c","recursive":true})"),
                post("/files", R"({"op":"write","path":"b/d","content":"more"})"),
                post("/execute", R"({"contextId":"a","code":"1"})")});
  put_changed(stored, stored.rows(), choices);
  const auto look = [&] {
    open(one);
    return all_of(*one, {{.path = "/contexts"},
                         post("/files", R"({"op":"list","path":"/workspace","recursive":true})"),
                         post("/files", R"({"op":"read","path":"a"})"),
                         {.path = "/"}});
  };
  look();  // may move the alarm
  const std::string first = look();
  require(look() == first, "the same is read again:", first);
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    const protocol::Request request = any_request(choices);
    check_answered(request, one->fetch(request));
  }
  (void)one->alarm();
  const std::string last = look();
  require(look() == last, "the same is read again:", last);
}

/// An Interpreter that can be closed and opened again.
struct Interpreter {
  bool open() {
    server.reset();
    auto opened = interpreter::InterpreterServer::open(engine, stored.object(), pool, clock, {});
    if (!opened.ok()) return false;
    server = *std::move(opened);
    return true;
  }
  std::string look() {
    return all_of(*server, {{.path = "/contexts"}, {.path = "/contexts/a/checkpoints"}});
  }

  Stored stored{{.class_name = "interpreter_fake", .id = "key"}, {}};
  object::ManualClock clock{kStart};
  std::shared_ptr<interpreter::FakeEngine> engine = std::make_shared<interpreter::FakeEngine>();
  std::shared_ptr<interpreter::ResidencyPool> pool = std::make_shared<interpreter::ResidencyPool>();
  std::unique_ptr<interpreter::InterpreterServer> server;
};

/// Of one with a context that has run twice, and a checkpoint.
std::vector<Row> interpreter_rows() {
  Interpreter one;
  require(one.open(), "it is opened");
  all_of(*one.server, {post("/contexts", R"({"id":"a"})")});
  RunOutput output;
  for (const char* code :
       {R"({"op":"inc"})", R"({"op":"write","path":"/workspace/a","content":"new"})"}) {
    protocol::ExecuteArgs args;
    args.context_id = "a";
    args.code = code;
    (void)one.server->execute(
        std::move(args), [](const auto&) { return std::vector<WorkspaceFile>(); }, output);
  }
  all_of(*one.server, {post("/contexts/a/checkpoints", R"({"name":"k"})")});
  return one.stored.rows();
}

void use_interpreter(Choices& choices) {
  static const std::vector<Row> good = interpreter_rows();
  Interpreter one;
  put_changed(one.stored, good, choices);
  if (!one.open()) return;
  const std::string first = one.look();
  require(one.open() && one.look() == first, "the same is read again:", first);
  Workspace files(kWorkspaceLimits, 0);
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    if (choices.coin()) {
      run_cell(*one.server, files, choices);
      continue;
    }
    const protocol::Request request = any_request(choices);
    check_answered(request, ask(*one.server, request));
  }
  (void)one.server->on_alarm();
}

}  // namespace

SW_FUZZ(rows) {
  Choices choices(input);
  if (choices.coin()) use_sandbox(choices);
  else use_interpreter(choices);
}

}  // namespace sw::fuzz
