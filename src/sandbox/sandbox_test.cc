// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "sandbox/names.h"
#include "sandbox/sandbox_fixture.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

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
