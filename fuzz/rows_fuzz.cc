// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Sandboxes and Interpreters whose rows in the storage were changed. Whatever is asked of them is
// answered, and what they make of their rows is the same each time they are read.

#include <array>
#include <numeric>

#include "fuzz/fuzz.h"
#include "fuzz/requests.h"
#include "fuzz/rows.h"

namespace sw::fuzz {
namespace {

constexpr int kChangesMax = 10;
constexpr int kRequestsMax = 6;
constexpr storage::TableId kTables = 64;

std::vector<Row> all_rows(storage::ObjectStorage& object) {
  std::array<storage::TableId, kTables> tables = {};
  std::iota(tables.begin(), tables.end(), storage::TableId{0});
  return rows_of(object, tables);
}

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
void put_changed(storage::ObjectStorage& object, std::vector<Row> rows, Choices& choices) {
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
  const auto written = object.transact([&](storage::Transaction& transaction) -> Result<void> {
    for (const Row& row : rows) {
      if (row.value.empty()) SW_CHECK_OK(transaction.erase(row.table, row.key));
      else SW_CHECK_OK(transaction.put(row.table, row.key, row.value));
    }
    return transaction.set_alarm(alarm);
  });
  require(written.ok(), "rows are written");
}

protocol::Request post(std::string path, std::string body) {
  return {.method = "POST",
          .path = std::move(path),
          .headers = {{"content-type", "application/json"}},
          .body = std::move(body)};
}

/// The same each time.
template <class Server>
std::string all_of(Server& server, std::initializer_list<protocol::Request> questions) {
  std::string all;
  for (const protocol::Request& question : questions) {
    const protocol::Response response = server.fetch(question);
    check_answered(question, response);
    all += std::to_string(response.status) + " " + response.body + "\n";
  }
  return all;
}

void use_sandbox(Choices& choices) {
  AnySandbox sandbox;
  all_of(*sandbox.one, {post("/env", R"({"envVars":{"A":"1"}})"),
                        post("/contexts", R"({"binding":"JAVASCRIPT","id":"a"})"),
                        post("/files", R"({"op":"write","path":"a","content":"text"})"),
                        post("/files", R"({"op":"mkdir","path":"b/c","recursive":true})"),
                        post("/files", R"({"op":"write","path":"b/d","content":"more"})"),
                        post("/execute", R"({"contextId":"a","code":"1"})")});
  put_changed(*sandbox.object, all_rows(*sandbox.object), choices);
  const auto look = [&] {
    sandbox.open();
    return all_of(*sandbox.one,
                  {{.path = "/contexts"},
                   post("/files", R"({"op":"list","path":"/workspace","recursive":true})"),
                   post("/files", R"({"op":"read","path":"a"})"),
                   {.path = "/"}});
  };
  look();  // may move the alarm
  const std::string first = look();
  require(look() == first, "the same is read again:", first);
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    const protocol::Request request = any_request(choices);
    check_answered(request, sandbox.one->fetch(request));
  }
  (void)sandbox.one->on_alarm(kStart);
  const std::string last = look();
  require(look() == last, "the same is read again:", last);
}

std::string look(AnyInterpreter& interpreter) {
  return all_of(interpreter, {{.path = "/contexts"}, {.path = "/contexts/a/checkpoints"}});
}

/// Of one with a context that has run twice, and a checkpoint.
std::vector<Row> interpreter_rows() {
  AnyInterpreter interpreter;
  require(interpreter.open(), "it is opened");
  all_of(interpreter, {post("/contexts", R"({"id":"a"})")});
  RunOutput output;
  for (const char* code :
       {R"({"op":"inc"})", R"({"op":"write","path":"/workspace/a","content":"new"})"}) {
    protocol::ExecuteArgs args;
    args.run.context = "a";
    args.run.code = code;
    (void)interpreter.one->execute(std::move(args), output);
  }
  all_of(interpreter, {post("/contexts/a/checkpoints", R"({"name":"k"})")});
  return all_rows(*interpreter.object);
}

void use_interpreter(Choices& choices) {
  static const std::vector<Row> good = interpreter_rows();
  AnyInterpreter interpreter;
  put_changed(*interpreter.object, good, choices);
  if (!interpreter.open()) return;
  const std::string first = look(interpreter);
  require(interpreter.open() && look(interpreter) == first, "the same is read again:", first);
  Workspace files(kWorkspaceLimits, 0);
  for (int i = 0; i < kRequestsMax && !choices.empty(); ++i) {
    if (choices.coin()) {
      run_cell(*interpreter.one, files, choices);
      continue;
    }
    const protocol::Request request = any_request(choices);
    check_answered(request, interpreter.fetch(request));
  }
  (void)interpreter.one->on_alarm(kStart);
}

}  // namespace

SW_FUZZ(rows) {
  Choices choices(input);
  if (choices.coin()) use_sandbox(choices);
  else use_interpreter(choices);
}

}  // namespace sw::fuzz
