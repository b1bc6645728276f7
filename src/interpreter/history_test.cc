// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The history of a context: what it says, and going back to its steps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "interpreter/interpreter_fixture.h"
#include "sandbox_workers/base/files.h"

namespace sw::interpreter {
namespace {

using protocol::HistoryEntry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HistoryTest : public InterpreterTest {
 protected:
  std::vector<HistoryEntry> history(const std::string& id = "c") {
    auto history = interpreter_->history(id);
    EXPECT_TRUE(history.ok());
    return history.ok() ? *history : std::vector<HistoryEntry>();
  }
  std::vector<std::uint64_t> steps(const std::string& id = "c") {
    std::vector<std::uint64_t> steps;
    for (const HistoryEntry& entry : history(id)) steps.push_back(entry.step);
    return steps;
  }
  /// The one step that is marked so.
  std::uint64_t current(const std::string& id = "c") {
    std::vector<std::uint64_t> marked;
    for (const HistoryEntry& entry : history(id)) {
      if (entry.current) marked.push_back(entry.step);
    }
    EXPECT_EQ(marked.size(), 1U);
    return marked.empty() ? 0 : marked.front();
  }
};

TEST_F(HistoryTest, SaysWhatEachStepWas) {
  EXPECT_THAT(history(), IsEmpty());
  run(kInc);
  clock_.advance(std::chrono::milliseconds(5));
  run(kWriteA);
  ASSERT_TRUE(interpreter_->add_checkpoint("c", "here").ok());
  run(kRead);
  const auto all = history();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].step, 1U);
  EXPECT_EQ(all[0].code, kInc);
  EXPECT_EQ(all[0].taken_at_ms, 1'700'000'000'000);
  EXPECT_GT(all[0].bytes, 0U);
  EXPECT_THAT(all[0].files, IsEmpty());
  EXPECT_FALSE(all[0].current);
  EXPECT_EQ(all[1].taken_at_ms, 1'700'000'000'005);
  EXPECT_THAT(all[1].files, ElementsAre("a"));
  EXPECT_EQ(all[1].files_changed, 1U);
  EXPECT_THAT(all[1].checkpoints, ElementsAre("here"));
  EXPECT_TRUE(all[2].current);
  EXPECT_THAT(interpreter_->history("absent").error().message, HasSubstr("'absent' not found"));
}

TEST_F(HistoryTest, IsTheSameInAnotherProcess) {
  for (int i = 0; i < 5; ++i) run(kInc);
  ASSERT_TRUE(interpreter_->restore("c", 2).ok());
  const std::string before = request("GET", "/contexts/c/history").body;
  restart();
  EXPECT_EQ(request("GET", "/contexts/c/history").body, before);
}

TEST_F(HistoryTest, AnyStepCanBeRestoredAndTheLaterOnesStay) {
  for (int i = 0; i < 5; ++i) run(kInc);
  ASSERT_TRUE(interpreter_->restore("c", 2).ok());
  EXPECT_EQ(current(), 2U);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(value(run(kInc)), "3");
  EXPECT_EQ(current(), 6U);
  ASSERT_TRUE(interpreter_->restore("c", 5).ok());
  EXPECT_EQ(value(run(kRead)), "5");
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST_F(HistoryTest, RestoringAndUndoingCanBeUndone) {
  for (int i = 0; i < 5; ++i) run(kInc);
  ASSERT_TRUE(interpreter_->restore("c", 2).ok());
  ASSERT_TRUE(interpreter_->undo("c", 1).ok());
  EXPECT_EQ(value(run(kRead)), "5");
  ASSERT_TRUE(interpreter_->undo("c", 3).ok());
  EXPECT_EQ(current(), 3U);
  ASSERT_TRUE(interpreter_->restore("c", 5).ok());
  EXPECT_EQ(value(run(kRead)), "5");
}

TEST_F(HistoryTest, AForkHasTheHistoryThatLedToIt) {
  for (int i = 0; i < 5; ++i) run(kInc);
  const auto forked = interpreter_->fork("c", "f", 3);
  ASSERT_TRUE(forked.ok()) << forked.error().message;
  EXPECT_EQ(forked->executions, 3U);
  EXPECT_THAT(steps("f"), ElementsAre(1, 2, 3));
  EXPECT_EQ(current("f"), 3U);
  EXPECT_EQ(run(kInc, "f").outcome.context->executions, 4U);
  EXPECT_THAT(steps("f"), ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(interpreter_->remove("c").ok());
  ASSERT_TRUE(interpreter_->restore("f", 1).ok());
  EXPECT_EQ(value(run(kRead, "f")), "1");
}

TEST_F(HistoryTest, AForkOfACheckpointGoesOnFromItsStep) {
  run(kInc);
  ASSERT_TRUE(interpreter_->add_checkpoint("c", "one").ok());
  run(kInc);
  const auto forked = interpreter_->fork("c", "f", "one");
  ASSERT_TRUE(forked.ok()) << forked.error().message;
  EXPECT_EQ(forked->executions, 1U);
  EXPECT_EQ(value(run(kInc, "f")), "2");
  EXPECT_EQ(interpreter_->fork("c", "g", "two").error().code, ErrorCode::kNotFound);
}

TEST_F(HistoryTest, OlderStepsThinOutAndThoseThatAreGoneAreNamed) {
  options_.snapshots.history = {.full = 3, .every = 5};
  restart();
  for (int i = 0; i < 16; ++i) run(kInc);
  run(kRead);
  EXPECT_THAT(steps(), ElementsAre(1, 5, 10, 15, 16, 17));
  const auto gone = interpreter_->restore("c", 7);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(gone.error().message,
            "Code context 'c': step 7 is not kept; those that are: 1, 5, 10, 15 to 17");
  EXPECT_THAT(interpreter_->undo("c", 9).error().message,
              HasSubstr("Steps that are kept: 1, 5, 10, 15 to 17"));
  ASSERT_TRUE(interpreter_->restore("c", 5).ok());
  EXPECT_EQ(value(run(kRead)), "5");
}

TEST_F(HistoryTest, ACheckpointIsNeverThinnedOut) {
  options_.snapshots.history = {.full = 1, .every = 0};
  restart();
  run(kInc);
  ASSERT_TRUE(interpreter_->add_checkpoint("c", "one").ok());
  for (int i = 0; i < 20; ++i) run(kInc);
  EXPECT_EQ(steps().front(), 1U);
  ASSERT_TRUE(interpreter_->restore("c", "one").ok());
  EXPECT_EQ(value(run(kRead)), "1");
}

TEST_F(HistoryTest, IsBoundedByWhatTheStepsWrote) {
  run(kInc);
  run(kInc);
  options_.snapshots.history = {.bytes_max = 2 * history().back().bytes + 50};
  restart();
  for (int i = 0; i < 40; ++i) run(kInc);
  EXPECT_LT(steps().size(), 20U);
  EXPECT_EQ(steps().back(), 42U);
}

TEST_F(HistoryTest, ARunWhoseAnswerWasLostIsNotInIt) {
  run_known(kInc, 0);
  run_known(kInc, 1);
  run_known(kRead, 1);
  EXPECT_THAT(steps(), ElementsAre(1, 2));
  EXPECT_EQ(history().back().code, kRead);
}

TEST_F(HistoryTest, OverHttp) {
  run(kInc);
  run(kInc);
  const auto listed = json(request("GET", "/contexts/c/history")).at("history").as_array();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].at("step"), 1);
  EXPECT_EQ(listed[0].at("code"), kInc);
  EXPECT_EQ(listed[0].at("filesChanged"), 0);
  EXPECT_TRUE(listed[1].at("current").as_bool());
  EXPECT_EQ(request("POST", "/contexts/c/restore", R"({"step":1})").status, 200);
  EXPECT_EQ(value(run(kRead)), "1");
  EXPECT_EQ(json(request("POST", "/contexts/c/fork", R"({"id":"f","step":2})")).at("executions"),
            2);
  EXPECT_EQ(request("POST", "/contexts/c/restore", R"({"step":9})").status, 404);
  EXPECT_EQ(message(request("POST", "/contexts/c/restore", "{}")), "step or name is required");
  for (const char* const step : {"0", "-1", "1.5", "\"1\"", "null"}) {
    EXPECT_EQ(
        message(request("POST", "/contexts/c/restore", std::string(R"({"step":)") + step + "}")),
        "step must be an integer of at least 1");
  }
  EXPECT_EQ(message(request("POST", "/contexts/c/restore", R"({"step":1,"name":"a"})")),
            "step and name exclude each other");
  EXPECT_EQ(message(request("POST", "/contexts/c/restore", R"({"name":""})")),
            "name must be a non-empty string");
  EXPECT_EQ(request("POST", "/contexts/c/history", "{}").status, 405);
  EXPECT_EQ(request("GET", "/contexts/absent/history").status, 404);
}

// Rows as they were before histories were stored: src/snapshot/old_history_test.cc tells what they
// hold.
TEST(OldInterpreter, GetsAHistoryWhenItIsOpened) {
  storage::MemoryDisk disk;
  const auto storage = storage::open_memory_storage(disk);
  const storage::ObjectName name = {.class_name = "interpreter_fake", .id = "key"};
  const auto rows = read_file(SW_SNAPSHOT_OLD_ROWS);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  const auto written = storage->open(name, {}).value()->transact(
      [&](storage::Transaction& transaction) -> Result<void> {
        for (BytesView left = *rows; !left.empty();) {
          std::uint32_t head[3];
          std::memcpy(head, left.data(), sizeof head);
          left = left.subspan(sizeof head);
          SW_CHECK_OK(transaction.put(static_cast<storage::TableId>(head[0]),
                                      as_text(left.first(head[1])),
                                      left.subspan(head[1], head[2])));
          left = left.subspan(head[1] + head[2]);
        }
        ContextRow row;
        row.executions = 33;
        row.saved_execution = 32;
        SW_CHECK_OK(transaction.put(0x10, "c", encode(row)));
        return transaction.put(0x10, "f", as_bytes("damaged"));
      });
  ASSERT_TRUE(written.ok()) << written.error().message;
  object::ManualClock clock{object::Time{}};
  const auto object = storage->open(name, Contexts::schema()).value();
  const auto contexts = Contexts::open(*object, clock, {}).value();
  const auto history = contexts->history("c").value();
  ASSERT_EQ(history.size(), 20U);
  EXPECT_EQ(history.back().step, 32U);
  EXPECT_TRUE(history.back().current);
  EXPECT_THAT(history.front().checkpoints, ElementsAre("early"));
  EXPECT_EQ(contexts->restore("c", history[5].step)->executions, 33U);
  EXPECT_EQ(contexts->history("f").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace sw::interpreter
