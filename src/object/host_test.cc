// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "object/call.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::object {
namespace {

using std::chrono::milliseconds;
using storage::ObjectName;
using storage::Reader;
using storage::Transaction;
using testing::HasSubstr;

Time at(std::int64_t ms) { return Time(milliseconds(ms)); }

/// Notes what happens, and lets a test wait until something has.
class Log {
 public:
  void add(const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }
    changed_.notify_all();
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  void wait_for(std::size_t count) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() >= count; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> lines_;
};

/// A door that blocks whoever comes to it until the test opens it.
class Door {
 public:
  void open() {
    if (!opened_.exchange(true)) promise_.set_value();
  }
  void pass() { future_.wait(); }

 private:
  std::atomic<bool> opened_ = false;
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

Result<std::int64_t> number(Reader& reader) {
  SW_TRY(const auto value, reader.get(1, "n"));
  return value ? std::stoll(std::string(as_text(*value))) : 0;
}

Result<void> store(Transaction& transaction, std::int64_t n) {
  return transaction.put(1, "n", as_bytes(std::to_string(n)));
}

/// Counts, and keeps its count in the storage.
class Counter final : public Object {
 public:
  Counter(ObjectContext& context, Log& log) : context_(context), log_(log) {}
  ~Counter() override { log_.add("drop " + context_.name().id); }

  Task<Result<void>> start() override {
    log_.add("start " + context_.name().id);
    auto count = std::make_shared<std::int64_t>(0);
    ReadBody body = [count](Reader& reader) -> Result<void> {
      SW_TRY(*count, number(reader));
      return {};
    };
    Result<void> read = co_await context_.read(std::move(body));
    count_ = *count;
    co_return read;
  }

  Task<Result<std::int64_t>> add(std::int64_t by) {
    const std::int64_t wanted = count_ + by;
    TransactionBody body = [wanted](Transaction& transaction) {
      return store(transaction, wanted);
    };
    Result<void> stored = co_await context_.transact(std::move(body));
    if (!stored.ok()) co_return std::move(stored).error();
    count_ = wanted;
    co_return count_;
  }

  /// Does not wait for its commit.
  Task<Result<std::int64_t>> add_behind(std::int64_t by, Door* door) {
    count_ += by;
    context_.commit([wanted = count_, door](Transaction& transaction) {
      if (door != nullptr) door->pass();
      return store(transaction, wanted);
    });
    co_return count_;
  }

  Task<Result<std::int64_t>> get() { co_return count_; }

  /// Waits in the middle, so that another message could get in between if it were let.
  Task<Result<void>> slowly(std::string name) {
    log_.add(name + " begins");
    for (int i = 0; i < 3; ++i) {
      Result<void> read = co_await context_.read([](Reader&) { return Result<void>(); });
      if (!read.ok()) co_return read;
    }
    log_.add(name + " ends");
    co_return Result<void>();
  }

  /// Calls `look` within a transaction.
  Task<Result<void>> get_with(std::function<void()> look) {
    TransactionBody body = [look = std::move(look)](Transaction&) {
      look();
      return Result<void>();
    };
    Result<void> outcome = co_await context_.transact(std::move(body));
    co_return outcome;
  }

  Task<Result<void>> wait_at(Door* door) {
    Result<void> passed = co_await context_.run_blocking([door] {
      door->pass();
      return Result<void>();
    });
    if (!passed.ok()) co_return passed;
    Result<void> read = co_await context_.read([](Reader&) { return Result<void>(); });
    log_.add("passed");
    co_return read;
  }

  /// A cancellation opens the door; what was done is stored all the same.
  Task<Result<std::int64_t>> wait_until_cancelled(Door* door) {
    log_.add("waits");
    Result<void> passed = co_await context_.run_blocking(
        [door]() -> Result<void> {
          door->pass();
          return Error{ErrorCode::kGuestStopped, "stopped", 0};
        },
        [door] { door->open(); });
    if (passed.ok() || !context_.cancelled()) co_return Error{ErrorCode::kInternal, "not told", 0};
    Result<std::int64_t> stored = co_await add(10);
    if (!stored.ok()) co_return stored;
    co_return std::move(passed).error();
  }

  Task<Result<void>> start_work_when_cancelled(Door* door) {
    Result<void> first = co_await context_.run_blocking([this, door] {
      log_.add("at the door");
      door->pass();
      return Result<void>();
    });
    if (!first.ok()) co_return first;
    Result<void> second = co_await context_.run_blocking([this] {
      log_.add("worked");
      return Result<void>();
    });
    co_return second;
  }

  Task<Result<void>> with_storage(StorageWork work) {
    Result<void> outcome = co_await context_.run_with_storage(std::move(work));
    co_return outcome;
  }

  Task<Result<void>> fail() { co_return Error{ErrorCode::kInvalidArgument, "refused", 0}; }

  Task<Result<void>> crash() {
    Result<void> read = co_await context_.read([](Reader&) { return Result<void>(); });
    throw std::runtime_error("crashed");
  }

  Task<Result<void>> fail_in_transaction() {
    TransactionBody body = [](Transaction& transaction) -> Result<void> {
      SW_CHECK_OK(store(transaction, 999));
      return Error{ErrorCode::kInvalidArgument, "thought better of it", 0};
    };
    Result<void> outcome = co_await context_.transact(std::move(body));
    co_return outcome;
  }

  Task<Result<void>> end() {
    Result<void> destroyed = co_await context_.destroy();
    co_return destroyed;
  }

  Task<Result<void>> set_alarm(std::optional<Time> time) {
    TransactionBody body = [time](Transaction& transaction) { return transaction.set_alarm(time); };
    Result<void> outcome = co_await context_.transact(std::move(body));
    co_return outcome;
  }

  Task<Result<void>> on_alarm(Time scheduled) override {
    log_.add("alarm " + context_.name().id + "@" +
             std::to_string(scheduled.time_since_epoch().count()));
    if (alarm_failures > 0) {
      --alarm_failures;
      co_return Error{ErrorCode::kUnavailable, "not now", 0};
    }
    if (next_alarm) {
      Result<void> set = co_await set_alarm(std::exchange(next_alarm, std::nullopt));
      co_return set;
    }
    co_return Result<void>();
  }

  int alarm_failures = 0;
  std::optional<Time> next_alarm;

 private:
  ObjectContext& context_;
  Log& log_;
  std::int64_t count_ = 0;
};

template <class V>
using Ask = Question<Counter, V>;

Message message(std::function<Task<Result<void>>(Counter&)> body) {
  return [body = std::move(body)](Object& object) { return body(static_cast<Counter&>(object)); };
}

class HostTest : public testing::Test {
 protected:
  HostTest() { restart({}); }

  void restart(HostOptions options) {
    host_.reset();
    storage_ = storage::open_memory_storage(disk_);
    options.on_notice = [this](std::string_view notice) { notices_.add(std::string(notice)); };
    host_ = std::make_unique<ObjectHost>(*storage_, clock_, std::move(options));
    host_->add_class("counter", {{}, [this](ObjectContext& context) {
                                   return std::make_unique<Counter>(context, log_);
                                 }});
  }

  Result<std::int64_t> add(const std::string& id, std::int64_t by) {
    return ask<Counter, std::int64_t>(*host_, {"counter", id},
                                      [by](Counter& counter) { return counter.add(by); });
  }
  Result<std::int64_t> get(const std::string& id) {
    return ask<Counter, std::int64_t>(*host_, {"counter", id},
                                      [](Counter& counter) { return counter.get(); });
  }
  Result<void> tell(const std::string& id, std::function<Task<Result<void>>(Counter&)> body) {
    return host_->ask({"counter", id}, message(std::move(body)));
  }
  /// Sends, and notes the reply.
  std::shared_ptr<Call> send(const std::string& id,
                             std::function<Task<Result<void>>(Counter&)> body,
                             const std::string& name) {
    return host_->send({"counter", id}, message(std::move(body)),
                       [this, name](Result<void> outcome) {
                         replies_.add(name + (outcome.ok() ? "" : ": " + outcome.error().message));
                       });
  }
  std::shared_ptr<Call> send_add_behind(const std::string& id, Door* door) {
    return object::send<Counter, std::int64_t>(
        *host_, {"counter", id}, [door](Counter& counter) { return counter.add_behind(1, door); },
        [this](Result<std::int64_t> n) {
          replies_.add(n.ok() ? "n=" + std::to_string(*n) : "error: " + n.error().message);
        });
  }

  std::size_t count(const std::string& line) const {
    const auto lines = log_.lines();
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
  }

  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  ManualClock clock_{at(1'000'000)};
  Log log_;
  Log replies_;
  Log notices_;
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<ObjectHost> host_;  // last, since its threads use the others until it is gone
};

TEST_F(HostTest, AnObjectIsMadeForItsFirstMessageAndRemembers) {
  EXPECT_EQ(*add("a", 2), 2);
  EXPECT_EQ(*add("a", 3), 5);
  EXPECT_EQ(*get("b"), 0);
  EXPECT_EQ(log_.lines(), (std::vector<std::string>{"start a", "start b"}));
}

TEST_F(HostTest, StateOutlivesTheHost) {
  ASSERT_EQ(*add("a", 2), 2);
  restart({});
  EXPECT_EQ(*get("a"), 2);
}

TEST_F(HostTest, MessagesRunOneAtATimeInTheOrderOfTheirSending) {
  for (const char* name : {"1", "2", "3"}) {
    send(
        "a", [name](Counter& counter) { return counter.slowly(name); }, name);
  }
  replies_.wait_for(3);
  EXPECT_EQ(log_.lines(), (std::vector<std::string>{"start a", "1 begins", "1 ends", "2 begins",
                                                    "2 ends", "3 begins", "3 ends"}));
  EXPECT_EQ(replies_.lines(), (std::vector<std::string>{"1", "2", "3"}));
}

TEST_F(HostTest, AFailedMessageDoesNotBlockTheNext) {
  ASSERT_EQ(*add("a", 1), 1);
  EXPECT_EQ(tell("a", [](Counter& counter) { return counter.fail(); }).error().message, "refused");
  const auto crashed = tell("a", [](Counter& counter) { return counter.crash(); });
  EXPECT_EQ(crashed.error().code, ErrorCode::kInternal);
  EXPECT_THAT(crashed.error().message, HasSubstr("crashed"));
  EXPECT_EQ(*add("a", 1), 2);
  EXPECT_EQ(count("start a"), 1U);
}

TEST_F(HostTest, ObjectsDoNotHoldEachOtherUp) {
  Door door;
  send(
      "a", [&](Counter& counter) { return counter.wait_at(&door); }, "a");
  EXPECT_EQ(*add("b", 1), 1);
  EXPECT_TRUE(replies_.lines().empty());
  door.open();
  replies_.wait_for(1);
}

TEST_F(HostTest, TheStorageIsNeverWaitedForOnAnObjectsThread) {
  std::mutex mutex;
  std::set<std::thread::id> object_threads;
  std::set<std::thread::id> storage_threads;
  for (int i = 0; i < 50; ++i) {
    const auto note = [&](std::set<std::thread::id>& threads) {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    };
    ASSERT_TRUE(tell("a", [&](Counter& counter) {
                  note(object_threads);
                  return counter.get_with([&, note] { note(storage_threads); });
                }).ok());
  }
  for (const std::thread::id id : storage_threads) EXPECT_FALSE(object_threads.contains(id));
}

TEST_F(HostTest, AReplyWaitsForItsCommitWhileTheNextMessageRuns) {
  Door door;
  ASSERT_EQ(*get("a"), 0);
  send_add_behind("a", &door);
  send(
      "a", [](Counter& counter) { return counter.fail(); }, "second");
  // A message that touches no storage, for which `ask` returns although the first reply is still
  // held: of another object, since a later reply of this one waits too.
  log_.wait_for(1);
  EXPECT_EQ(*get("b"), 0);
  EXPECT_TRUE(replies_.lines().empty());
  door.open();
  replies_.wait_for(2);
  EXPECT_EQ(replies_.lines(), (std::vector<std::string>{"n=1", "second: refused"}));
}

TEST_F(HostTest, ALostCommitIsNeverAnsweredAndTheObjectStartsFromWhatIsStored) {
  ASSERT_EQ(*add("a", 5), 5);
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  send_add_behind("a", nullptr);
  replies_.wait_for(1);
  EXPECT_EQ(replies_.lines().front(), "error: disk full");
  disk_.fail_commits(std::nullopt);
  EXPECT_EQ(*get("a"), 5);
  EXPECT_EQ(count("start a"), 2U);
  EXPECT_EQ(*add("a", 1), 6);
}

TEST_F(HostTest, AMessageSentOnHearingOfALostCommitFindsAnObjectMadeAgain) {
  ASSERT_EQ(*add("a", 5), 5);
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  object::send<Counter, std::int64_t>(
      *host_, {"counter", "a"}, [](Counter& counter) { return counter.add_behind(1, nullptr); },
      [this](Result<std::int64_t> lost) {
        replies_.add(lost.ok() ? "stored" : lost.error().message);
        disk_.fail_commits(std::nullopt);
        object::send<Counter, std::int64_t>(
            *host_, {"counter", "a"}, [](Counter& counter) { return counter.add(1); },
            [this](Result<std::int64_t> n) {
              replies_.add(n.ok() ? std::to_string(*n) : n.error().message);
            });
      });
  replies_.wait_for(2);
  EXPECT_EQ(replies_.lines(), (std::vector<std::string>{"disk full", "6"}));
}

TEST_F(HostTest, MessagesBehindALostCommitGetTheSameError) {
  Door door;
  ASSERT_EQ(*add("a", 5), 5);
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  send_add_behind("a", &door);
  send_add_behind("a", nullptr);
  send(
      "a", [](Counter& counter) { return counter.slowly("x"); }, "slow");
  log_.wait_for(2);  // the last one has begun
  door.open();
  replies_.wait_for(3);
  EXPECT_EQ(replies_.lines(),
            (std::vector<std::string>{"error: disk full", "error: disk full", "slow: disk full"}));
  disk_.fail_commits(std::nullopt);
  EXPECT_EQ(*get("a"), 5);
}

TEST_F(HostTest, AnErrorOfATransactionsBodyIsTheObjectsOwnAffair) {
  ASSERT_EQ(*add("a", 5), 5);
  EXPECT_EQ(
      tell("a", [](Counter& counter) { return counter.fail_in_transaction(); }).error().message,
      "thought better of it");
  EXPECT_EQ(*add("a", 1), 6);
  EXPECT_EQ(count("start a"), 1U);
}

TEST_F(HostTest, AnObjectThatWasTakenOverIsMadeAgain) {
  ASSERT_EQ(*add("a", 5), 5);
  {
    auto other = *storage_->open({"counter", "a"}, {});
    ASSERT_TRUE(
        other->transact([](Transaction& transaction) { return store(transaction, 70); }).ok());
  }
  EXPECT_EQ(add("a", 1).error().code, ErrorCode::kConflict);
  EXPECT_EQ(*add("a", 1), 71);
}

TEST_F(HostTest, ADestroyedObjectBeginsANewLife) {
  ASSERT_EQ(*add("a", 5), 5);
  ASSERT_TRUE(tell("a", [](Counter& counter) { return counter.end(); }).ok());
  EXPECT_FALSE((*storage_->find({"counter", "a"})).has_value());
  EXPECT_EQ(*add("a", 1), 1);
  EXPECT_EQ(count("start a"), 2U);
}

TEST_F(HostTest, ObjectsBeyondTheLimitAreDroppedLongestIdleFirst) {
  // one thread: an object is listed as idle right after its reply
  restart({.threads = 1, .resident_max = 2});
  ASSERT_EQ(*add("a", 1), 1);
  ASSERT_EQ(*add("b", 1), 1);
  ASSERT_EQ(*add("a", 1), 2);
  ASSERT_EQ(*add("c", 1), 1);
  log_.wait_for(4);
  EXPECT_EQ(log_.lines(), (std::vector<std::string>{"start a", "start b", "start c", "drop b"}));
  while (host_->resident() != 2) std::this_thread::yield();
  EXPECT_EQ(*add("b", 1), 2);
}

TEST_F(HostTest, AnIdleObjectIsDroppedAndMadeAgainByTheNextMessage) {
  restart({.idle_max = milliseconds(1000)});
  ASSERT_EQ(*add("a", 7), 7);
  // The reply comes a moment before the object is listed as idle.
  while (!clock_.next()) std::this_thread::yield();
  clock_.advance(milliseconds(999));
  EXPECT_EQ(count("drop a"), 0U);
  clock_.advance(milliseconds(1));
  log_.wait_for(2);
  EXPECT_EQ(log_.lines().back(), "drop a");
  EXPECT_EQ(*get("a"), 7);
}

TEST_F(HostTest, TenThousandObjectsNeedMemoryForAFew) {
  restart({.resident_max = 50, .mailbox_max = 10});
  constexpr int kObjects = 10'000;
  for (int i = 0; i < kObjects; ++i) {
    object::send<Counter, std::int64_t>(
        *host_, {"counter", std::to_string(i)}, [i](Counter& counter) { return counter.add(i); },
        [this](Result<std::int64_t> n) {
          replies_.add(n.ok() ? std::to_string(*n) : n.error().message);
        });
    replies_.wait_for(i < 100 ? 0 : static_cast<std::size_t>(i - 100));
  }
  replies_.wait_for(kObjects);
  std::set<std::string> distinct;
  for (const std::string& reply : replies_.lines()) distinct.insert(reply);
  EXPECT_EQ(distinct.size(), static_cast<std::size_t>(kObjects));
  while (host_->resident() > 50) std::this_thread::yield();
  EXPECT_EQ(*get("1234"), 1234);
}

TEST_F(HostTest, AFullMailboxAndAnUnknownClassAreErrors) {
  restart({.mailbox_max = 2});
  Door door;
  send(
      "a", [&](Counter& counter) { return counter.wait_at(&door); }, "running");
  log_.wait_for(1);
  for (const char* name : {"first", "second"})
    send(
        "a", [](Counter& c) { return c.slowly("x"); }, name);
  EXPECT_EQ(add("a", 1).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(
      host_->ask({"other", "a"}, [](Object&) -> Task<Result<void>> { co_return Result<void>(); })
          .error()
          .code,
      ErrorCode::kNotFound);
  door.open();
  replies_.wait_for(3);
}

TEST_F(HostTest, ACancelledMessageLeavesTheMailbox) {
  Door door;
  send(
      "a", [&](Counter& counter) { return counter.wait_at(&door); }, "running");
  const auto waiting = send(
      "a", [](Counter& counter) { return counter.slowly("never"); }, "waiting");
  waiting->cancel();
  waiting->cancel();
  door.open();
  replies_.wait_for(2);
  EXPECT_THAT(replies_.lines(),
              testing::UnorderedElementsAre("running", "waiting: the call was cancelled"));
  EXPECT_EQ(count("never begins"), 0U);
}

TEST_F(HostTest, ACancelledMessageIsToldAndEndsInGoodOrder) {
  Door door;
  const auto running = object::send<Counter, std::int64_t>(
      *host_, {"counter", "a"},
      [&](Counter& counter) { return counter.wait_until_cancelled(&door); },
      [this](Result<std::int64_t> n) { replies_.add(n.ok() ? "ok" : n.error().message); });
  log_.wait_for(2);
  running->cancel();
  replies_.wait_for(1);
  EXPECT_EQ(replies_.lines().front(), "stopped");
  EXPECT_EQ(*get("a"), 10);
}

TEST_F(HostTest, ACancelledMessageBeginsNoOtherWork) {
  Door door;
  const auto running = send(
      "a", [&](Counter& c) { return c.start_work_when_cancelled(&door); }, "running");
  log_.wait_for(2);  // it has begun, and is at the door
  running->cancel();
  // Its reply comes after the first cancellation on the object's strand.
  send(
      "a", [](Counter& counter) { return counter.slowly("never"); }, "waiting")
      ->cancel();
  replies_.wait_for(1);
  door.open();
  replies_.wait_for(2);
  EXPECT_EQ(replies_.lines().back(), "running: the call was cancelled");
  EXPECT_EQ(count("worked"), 0U);
}

/// Asks counters.
class Sum final : public Object {
 public:
  explicit Sum(ObjectHost& host) : host_(host) {}

  Task<Result<std::int64_t>> of(std::string a, std::string b) {
    const ObjectName name_a{"counter", a};
    const ObjectName name_b{"counter", b};
    const Ask<std::int64_t> question = [](Counter& counter) { return counter.get(); };
    Result<std::int64_t> first = co_await call<Counter, std::int64_t>(host_, name_a, question);
    if (!first.ok()) co_return first;
    Result<std::int64_t> second = co_await call<Counter, std::int64_t>(host_, name_b, question);
    if (!second.ok()) co_return second;
    co_return *first + *second;
  }

  Task<Result<std::int64_t>> of_one_that_waits(std::string a, Door* door) {
    const ObjectName name{"counter", a};
    const Ask<std::int64_t> question = [door](Counter& counter) {
      return counter.wait_until_cancelled(door);
    };
    Result<std::int64_t> answer = co_await call<Counter, std::int64_t>(host_, name, question);
    co_return answer;
  }

 private:
  ObjectHost& host_;
};

TEST_F(HostTest, OneObjectAsksAnother) {
  host_->add_class("sum", {{}, [this](ObjectContext&) { return std::make_unique<Sum>(*host_); }});
  ASSERT_EQ(*add("a", 2), 2);
  ASSERT_EQ(*add("b", 3), 3);
  const auto sum =
      ask<Sum, std::int64_t>(*host_, {"sum", "x"}, [](Sum& object) { return object.of("a", "b"); });
  EXPECT_EQ(*sum, 5);
  const auto refused =
      ask<Sum, std::int64_t>(*host_, {"sum", "x"}, [](Sum& object) { return object.of("a", ""); });
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(HostTest, CancellingAQuestionCancelsWhatItAsksInTurn) {
  host_->add_class("sum", {{}, [this](ObjectContext&) { return std::make_unique<Sum>(*host_); }});
  Door door;
  const auto asked = object::send<Sum, std::int64_t>(
      *host_, {"sum", "x"}, [&](Sum& sum) { return sum.of_one_that_waits("a", &door); },
      [this](Result<std::int64_t> n) { replies_.add(n.ok() ? "ok" : n.error().message); });
  log_.wait_for(2);
  asked->cancel();
  replies_.wait_for(1);
  EXPECT_EQ(replies_.lines().front(), "stopped");
}

// ---- alarms

TEST_F(HostTest, AnAlarmGoesOffAtItsTimeAndIsGone) {
  host_->start_alarms();
  ASSERT_TRUE(
      tell("a", [this](Counter& c) { return c.set_alarm(clock_.now() + milliseconds(500)); }).ok());
  while (clock_.next() != clock_.now() + milliseconds(500)) std::this_thread::yield();
  clock_.advance(milliseconds(499));
  EXPECT_EQ(log_.lines().size(), 1U);
  clock_.advance(milliseconds(1));
  log_.wait_for(2);
  EXPECT_EQ(log_.lines().back(), "alarm a@1000500");
  while (!(*storage_->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
  EXPECT_EQ(*get("a"), 0);
}

TEST_F(HostTest, AnAlarmThatCameDueWhileNothingRanGoesOffAtTheStart) {
  ASSERT_TRUE(tell("a", [](Counter& counter) { return counter.set_alarm(at(5)); }).ok());
  restart({});
  clock_.advance(milliseconds(10));
  host_->start_alarms();
  log_.wait_for(4);
  EXPECT_EQ(log_.lines(), (std::vector<std::string>{"start a", "drop a", "start a", "alarm a@5"}));
}

TEST_F(HostTest, AnAlarmIsAMessageLikeOthersAndMayBeTakenBackByOneBefore) {
  host_->start_alarms();
  Door door;
  ASSERT_TRUE(
      tell("a", [this](Counter& c) { return c.set_alarm(clock_.now() + milliseconds(500)); }).ok());
  ASSERT_TRUE(
      tell("b", [this](Counter& c) { return c.set_alarm(clock_.now() + milliseconds(500)); }).ok());
  while (clock_.next() != clock_.now() + milliseconds(500)) std::this_thread::yield();
  send(
      "a", [&](Counter& counter) { return counter.wait_at(&door); }, "busy");
  send(
      "a", [](Counter& counter) { return counter.set_alarm(std::nullopt); }, "taken back");
  clock_.advance(milliseconds(500));
  log_.wait_for(3);
  EXPECT_EQ(log_.lines().back(), "alarm b@1000500");
  door.open();
  replies_.wait_for(2);
  EXPECT_EQ(*get("a"), 0);
  EXPECT_EQ(count("alarm a@1000500"), 0U);
}

TEST_F(HostTest, AnAlarmThatFailsComesAgainLaterAndLaterEachTime) {
  restart({.alarm_retry_first = milliseconds(100)});
  host_->start_alarms();
  ASSERT_TRUE(tell("a", [](Counter& counter) {
                counter.alarm_failures = 2;
                return counter.set_alarm(at(5));
              }).ok());
  log_.wait_for(2);
  const auto wait_for_timer = [&](milliseconds in) {
    while (clock_.next() != clock_.now() + in) std::this_thread::yield();
  };
  wait_for_timer(milliseconds(100));
  clock_.advance(milliseconds(99));
  EXPECT_EQ(log_.lines().size(), 2U);
  clock_.advance(milliseconds(1));
  log_.wait_for(3);
  wait_for_timer(milliseconds(200));
  clock_.advance(milliseconds(200));
  log_.wait_for(4);
  while (!(*storage_->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
  EXPECT_THAT(notices_.lines().at(0), HasSubstr("not now"));
}

TEST_F(HostTest, AnAlarmMaySetTheNext) {
  host_->start_alarms();
  ASSERT_TRUE(tell("a", [this](Counter& counter) {
                counter.next_alarm = clock_.now() + milliseconds(50);
                return counter.set_alarm(at(5));
              }).ok());
  while (clock_.next() != clock_.now() + milliseconds(50)) std::this_thread::yield();
  clock_.advance(milliseconds(50));
  log_.wait_for(3);
  EXPECT_EQ(log_.lines().back(), "alarm a@1000050");
}

TEST_F(HostTest, ManyAlarmsAtOnceAllGoOff) {
  constexpr int kObjects = 300;
  for (int i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(
        tell(std::to_string(i), [i](Counter& counter) { return counter.set_alarm(at(i)); }).ok());
  }
  restart({.resident_max = 20, .alarms_at_once = 8});
  host_->start_alarms();
  while (!(*storage_->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
  for (int i = 0; i < kObjects; ++i) {
    EXPECT_EQ(count("alarm " + std::to_string(i) + "@" + std::to_string(i)), 1U) << i;
  }
}

TEST_F(HostTest, AlarmsOfOtherHostsClassesAreLeftAloneAndDoNotHoldUpOurs) {
  constexpr int kOthers = 100;
  for (int i = 0; i < kOthers; ++i) {
    auto other = *storage_->open({"other", std::to_string(i)}, {});
    ASSERT_TRUE(
        other->transact([](Transaction& transaction) { return transaction.set_alarm(at(5)); })
            .ok());
  }
  restart({.alarms_at_once = 2});
  ASSERT_TRUE(tell("a", [](Counter& counter) { return counter.set_alarm(at(6)); }).ok());
  host_->start_alarms();
  log_.wait_for(2);
  EXPECT_EQ(log_.lines().back(), "alarm a@6");
  while ((*storage_->alarms_until(Time::max(), 1000)).size() != kOthers) std::this_thread::yield();
  EXPECT_TRUE(notices_.lines().empty());
}

// ---- the storage itself

TEST_F(HostTest, WorkWithTheStorageComesAfterWhatWasAskedBefore) {
  Door door;
  send_add_behind("a", &door);
  send(
      "a",
      [this](Counter& counter) {
        return counter.with_storage([this](storage::ObjectStorage& storage) -> Result<void> {
          std::int64_t seen = 0;
          SW_CHECK_OK(storage.transact([&](Transaction& transaction) -> Result<void> {
            SW_TRY(seen, number(transaction));
            return store(transaction, seen + 10);
          }));
          log_.add("saw " + std::to_string(seen));
          return {};
        });
      },
      "worked");
  EXPECT_EQ(count("saw 1"), 0U);
  door.open();
  replies_.wait_for(2);
  EXPECT_EQ(count("saw 1"), 1U);
  restart({});
  EXPECT_EQ(*get("a"), 11);
}

TEST_F(HostTest, ACommitThatFailsInSuchWorkIsNotAnsweredAndEndsTheLife) {
  ASSERT_EQ(*add("a", 1), 1);
  const auto lose = [](storage::ObjectStorage& storage) -> Result<void> {
    (void)storage.transact([](Transaction& transaction) { return store(transaction, 5); });
    return {};
  };
  disk_.fail_commits(Error{ErrorCode::kUnavailable, "disk full", 0});
  EXPECT_THAT(tell("a", [&](Counter& c) { return c.with_storage(lose); }).error().message,
              HasSubstr("disk full"));
  disk_.fail_commits(std::nullopt);
  EXPECT_EQ(*get("a"), 1);
  EXPECT_EQ(count("start a"), 2U);
}

TEST_F(HostTest, DestroyingInSuchWorkEndsTheLife) {
  ASSERT_EQ(*add("a", 1), 1);
  ASSERT_TRUE(tell("a", [](Counter& counter) {
                return counter.with_storage(
                    [](storage::ObjectStorage& storage) { return storage.destroy(); });
              }).ok());
  EXPECT_EQ(*get("a"), 0);
  EXPECT_EQ(count("start a"), 2U);
}

// ---- the end

TEST_F(HostTest, ShuttingDownFinishesWhatWasSentAndDropsObjectsInReverse) {
  for (const char* id : {"a", "b", "c"}) ASSERT_EQ(*add(id, 1), 1);
  for (int i = 0; i < 20; ++i)
    send(
        "a", [](Counter& counter) { return counter.slowly("x"); }, "done");
  host_->shut_down();
  EXPECT_EQ(replies_.lines(), std::vector<std::string>(20, "done"));
  const auto lines = log_.lines();
  EXPECT_EQ((std::vector<std::string>(lines.end() - 3, lines.end())),
            (std::vector<std::string>{"drop c", "drop b", "drop a"}));
  EXPECT_EQ(add("a", 1).error().message, "shutting down");
}

TEST_F(HostTest, ShuttingDownCancelsWhatTakesTooLong) {
  restart({.drain_max = milliseconds(0)});
  Door door;
  object::send<Counter, std::int64_t>(
      *host_, {"counter", "a"},
      [&](Counter& counter) { return counter.wait_until_cancelled(&door); },
      [this](Result<std::int64_t> n) { replies_.add(n.ok() ? "ok" : n.error().message); });
  log_.wait_for(2);
  send(
      "a", [](Counter& counter) { return counter.slowly("x"); }, "waiting");
  host_->shut_down();
  EXPECT_EQ(replies_.lines(),
            (std::vector<std::string>{"waiting: the call was cancelled", "stopped"}));
}

// ---- over the real storage

TEST(HostOverSqlite, ObjectsKeepTheirCountsAndAlarmsThroughRestarts) {
  const TemporaryDirectory folder =
      *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-host-");
  constexpr int kObjects = 20;
  Log log;
  ManualClock clock(at(1000));
  for (int round = 1; round <= 3; ++round) {
    const auto storage = *storage::open_sqlite_storage(
        folder.path(), {.idle_open_max = 4, .vfs = {}, .on_notice = {}});
    ObjectHost host(*storage, clock, {.resident_max = 5});
    host.add_class("counter", {{}, [&](ObjectContext& context) {
                                 return std::make_unique<Counter>(context, log);
                               }});
    host.start_alarms();
    std::atomic<int> right = 0;
    Log replies;
    for (int i = 0; i < kObjects; ++i) {
      send<Counter, std::int64_t>(
          host, {"counter", std::to_string(i)},
          [](Counter& counter) { return counter.add_behind(1, nullptr); },
          [&, round](Result<std::int64_t> n) {
            if (n.ok() && *n == round) ++right;
            replies.add("reply");
          });
    }
    replies.wait_for(kObjects);
    EXPECT_EQ(right, kObjects);
    ASSERT_TRUE(
        host.ask({"counter", "3"}, message([&](Counter& c) { return c.set_alarm(clock.now()); }))
            .ok());
    while (!(*storage->alarms_until(Time::max(), 1)).empty()) std::this_thread::yield();
  }
  const auto lines = log.lines();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "alarm 3@1000"), 3);
}

}  // namespace
}  // namespace sw::object
