// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Contexts with much data, of which a restore leaves most out until the guest touches it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "interpreter/contexts.h"
#include "interpreter/test_worker.h"
#include "snapshot/catalog.h"
#include "storage/memory/memory_storage.h"

namespace sw::interpreter {
namespace {

using namespace std::chrono_literals;
using protocol::ExecuteResponse;
using ::testing::HasSubstr;

// 8 MB of numbers that no page of the image has.
constexpr char kFill[] =
    "var big = new Uint32Array(2e6); for (let i = 0; i < big.length; ++i) big[i] = i * 2654435761; "
    "var steps = 0; 0";
constexpr char kSum[] = "let sum = 0; for (const n of big) sum = (sum + n) % 1000003; sum";
constexpr char kStep[] = "big[steps * 997 % big.length] += 1; ++steps";

class LateRestoreTest : public ::testing::Test {
 protected:
  LateRestoreTest() {
    restart();
    create("c");
  }

  /// As another process would find it.
  void restart() {
    worker_ = nullptr;
    worker_ = std::make_unique<TestWorker>(TestWorker::engine("javascript"), *storage_, files_,
                                           ResidencyLimits{});
  }
  void create(const std::string& id) { worker_->create(id, "/workspace"); }
  ExecuteResponse run(const std::string& code, const std::string& id = "c") {
    return worker_->run(id, code, {.wall_max = 600s});
  }
  std::string value(const std::string& code, const std::string& id = "c") {
    const ExecuteResponse response = run(code, id);
    if (response.outcome.error) return response.outcome.error->message;
    return response.outcome.value ? response.outcome.value->text : "";
  }
  /// Damages all packs of memories that are large.
  void damage_large_packs() {
    worker_ = nullptr;
    const auto objects = storage_->list("interpreter_javascript", "", 10).value();
    ASSERT_FALSE(objects.empty());
    const auto object = storage_->open(objects[0].name, Contexts::schema()).value();
    constexpr storage::TableId kPacks = snapshot::Options().packs_table;
    const auto damaged = object->transact([&](storage::Transaction& transaction) -> Result<void> {
      std::vector<std::pair<std::string, Bytes>> rows;
      SW_CHECK_OK(
          transaction.scan({.table = kPacks, .from = {}, .to = {}}, storage::Order::kAscending,
                           [&](std::string_view key, BytesView value) -> Result<storage::Scan> {
                             if (value.size() > 100'000)
                               rows.emplace_back(key, Bytes(value.begin(), value.end()));
                             return storage::Scan::kContinue;
                           }));
      for (auto& [key, value] : rows) {
        value[value.size() / 2] ^= std::byte{1};
        SW_CHECK_OK(transaction.put(kPacks, key, value));
      }
      return {};
    });
    ASSERT_TRUE(damaged.ok()) << damaged.error().message;
  }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  Workspace files_{kWorkspaceLimits, 1};
  std::unique_ptr<TestWorker> worker_;
};

TEST_F(LateRestoreTest, ContextsGoOnWithAllTheirData) {
  run(kFill);
  const std::string sum = value(kSum);
  for (int round = 1; round <= 4; ++round) {
    restart();
    const ExecuteResponse step = run(kStep);
    EXPECT_EQ(step.outcome.context->state, ContextState::kRestored);
    EXPECT_EQ(step.outcome.value->text, std::to_string(3 * round - 2));
    EXPECT_LT(step.outcome.context->snapshot_bytes_written, 100'000u);
    EXPECT_EQ(value(kStep), std::to_string(3 * round - 1));
    restart();
    EXPECT_EQ(value(kStep), std::to_string(3 * round));
  }
  EXPECT_EQ(value("big.reduce((sum, n) => (sum + n) % 1000003, 0) - 12"), sum);
}

TEST_F(LateRestoreTest, VersionsAreTakenWhileMostIsLeftOut) {
  run(kFill);
  const std::string sum = value(kSum);
  restart();
  EXPECT_EQ(value(kStep), "1");
  ASSERT_EQ(worker_->request("POST", "/contexts/c/fork", R"({"id":"d"})").status, 201);
  EXPECT_EQ(value(kStep, "d"), "2");
  EXPECT_EQ(value(kStep), "2");
  ASSERT_EQ(worker_->request("POST", "/contexts/c/undo", R"({"runs":2})").status, 200);
  EXPECT_EQ(value(kSum), sum);
  EXPECT_EQ(value(kSum + std::string(" - 2"), "d"), sum);
}

TEST_F(LateRestoreTest, DamageIsToldByTheRunThatFindsIt) {
  run(kFill);
  const std::string sum = value(kSum);
  damage_large_packs();
  restart();
  EXPECT_EQ(value("1 + 1"), "2");
  const auto response =
      run("console.log('begin'); " + std::string(kSum) + "; console.log('wrong: ' + sum); sum");
  ASSERT_TRUE(response.outcome.error);
  const std::string& error = response.outcome.error->name;  // that of a refused run
  EXPECT_THAT(error, HasSubstr("restoring context 'c'"));
  EXPECT_THAT(error, HasSubstr("undo its last run"));
  EXPECT_THAT(error, HasSubstr("checksum mismatch"));
  EXPECT_EQ(worker_->printed.out, "begin\n");
  // The process goes on, and the context too, as far as its memory is whole.
  EXPECT_EQ(value("1 + 1"), "2");
  create("other");
  EXPECT_EQ(value("6 * 7", "other"), "42");
}

TEST_F(LateRestoreTest, ManyAtOnceGetTheirOwn) {
  constexpr int kContexts = 4;
  std::vector<std::string> sums;
  for (int i = 0; i < kContexts; ++i) {
    create(std::to_string(i));
    run(fmt::format("var big = new Uint32Array(8e5); for (let i = 0; i < big.length; ++i) big[i] = "
                    "i * {}; 0",
                    1000003 + i),
        std::to_string(i));
    sums.push_back(value(kSum, std::to_string(i)));
  }
  restart();
  std::vector<std::thread> threads;
  std::vector<std::string> found(kContexts);
  for (int i = 0; i < kContexts; ++i) {
    threads.emplace_back([&, i] {
      protocol::ExecuteArgs args{.run = {.code = kSum, .context = std::to_string(i)}};
      RunOutput ignored;
      const auto response = worker_->execute(std::move(args), ignored);
      if (response.ok() && response->outcome.value)
        found[static_cast<std::size_t>(i)] = response->outcome.value->text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, sums);
}

}  // namespace
}  // namespace sw::interpreter
