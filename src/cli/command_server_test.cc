// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "cli/ask_owner.h"
#include "cli/statuses.h"
#include "sandbox_workers/base/files.h"

namespace sw::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Interruptions by the test.
class TestInterrupts final : public Interrupts {
 public:
  std::unique_ptr<InterruptScope> take() override { return told.take(); }
  ToldInterrupts told{[] {}};
};

struct Pipe {
  Pipe() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    from = UniqueFd(ends[0]);
    to = UniqueFd(ends[1]);
  }
  /// What was written, once all of it was.
  std::string read_all() {
    to = UniqueFd();
    std::string text(1 << 16, '\0');
    const ssize_t got = ::read(from.get(), text.data(), text.size());
    return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  UniqueFd from;
  UniqueFd to;
};

/// Somebody who asks, with pipes for streams.
struct Asking {
  Result<std::optional<int>> ask(const fs::path& folder, const std::vector<std::string>& words) {
    const UniqueFd owner = connect_to_owner(folder);
    if (!owner) return std::optional<int>();
    return ask_owner(owner, caller, words, false);
  }

  Pipe out;
  Pipe err;
  Streams streams{{.in = -1, .out = out.to.get(), .err = err.to.get()}};
  TestInterrupts interrupts;
  Caller caller{.streams = streams, .interrupts = interrupts};
};

class CommandServerTest : public ::testing::Test {
 protected:
  /// What commands of the server do.
  int perform(const Caller& caller, const std::vector<std::string>& words) {
    if (words.empty()) return 9;
    if (words[0] == "print") {
      caller.streams.print("{} in {}", words[1], caller.folder.native());
      return caller.streams.flush().ok() ? 7 : 8;
    }
    if (words[0] == "wait") {  // for an interruption
      const auto scope = caller.interrupts.take();
      waiting_.set_value();
      while (!scope->token().stop_requested()) std::this_thread::yield();
      return scope->end() ? 5 : 6;
    }
    if (words[0] == "flood") {
      const std::string much(1 << 20, 'x');
      waiting_.set_value();
      while (caller.streams.write(wasi::Stream::kStdout, as_bytes(much)) == 0) {
      }
      flooded_.set_value();
      return 3;
    }
    return 1;
  }

  void start(CommandServerOptions options = {.begins_after = 0ms, .request_patience = 200ms}) {
    auto socket = OwnerSocket::claim(folder_);
    ASSERT_TRUE(socket.ok() && socket->has_value());
    auto server = CommandServer::start(
        **std::move(socket),
        [this](const Caller& caller, const std::vector<std::string>& words) {
          return perform(caller, words);
        },
        options);
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
  }

  /// A connection that nothing is known of. It waits for no longer than the test may take.
  UniqueFd connect() const {
    UniqueFd socket = connect_to_owner(folder_);
    EXPECT_TRUE(socket);
    return socket;
  }
  /// Whether the server closes the connection.
  static bool is_closed(const UniqueFd& socket) {
    char byte = 0;
    return ::recv(socket.get(), &byte, 1, 0) <= 0;
  }
  void expect_that_it_works() {
    Asking asking;
    EXPECT_EQ(asking.ask(folder_, {"print", "hello"}).value(), 7);
  }

  const TemporaryDirectory temporary_ =
      *TemporaryDirectory::create(fs::temp_directory_path(), "sw-server-");
  fs::path folder_ = temporary_.path();
  std::promise<void> waiting_;
  std::promise<void> flooded_;
  std::unique_ptr<CommandServer> server_;
};

TEST_F(CommandServerTest, RunsACommandWithTheStreamsAndFolderOfWhoAsks) {
  start();
  Asking asking;
  EXPECT_EQ(asking.ask(folder_, {"print", "hello"}).value(), 7);
  EXPECT_EQ(asking.out.read_all(), "hello in " + fs::current_path().native());
}

TEST_F(CommandServerTest, FoldersOfAnyLengthCanBeListenedIn) {
  folder_ = temporary_.path() / std::string(200, 'a') / std::string(200, 'b');
  fs::create_directories(folder_);
  start();
  expect_that_it_works();
}

TEST_F(CommandServerTest, OnlyOneClaimsAFolderAndWhatAKilledOneLeftIsReplaced) {
  {
    const auto first = OwnerSocket::claim(folder_);
    ASSERT_TRUE(first.ok() && first->has_value());
    EXPECT_FALSE(OwnerSocket::claim(folder_)->has_value());
    EXPECT_EQ(fs::status(folder_ / "commands").permissions(), fs::perms(0600));
    fs::rename(folder_ / "commands", folder_ / "left");
  }
  fs::rename(folder_ / "left", folder_ / "commands");
  EXPECT_FALSE(connect_to_owner(folder_));
  start();
  expect_that_it_works();
  server_.reset();
  EXPECT_FALSE(fs::exists(folder_ / "commands"));
}

TEST_F(CommandServerTest, AnInterruptionStopsTheCommandOnly) {
  start();
  Asking asking;
  auto status = std::async(std::launch::async, [&] { return asking.ask(folder_, {"wait"}); });
  waiting_.get_future().wait();
  // As soon as the asking side listens for it.
  while (status.wait_for(1ms) != std::future_status::ready) asking.interrupts.told.interrupt();
  EXPECT_EQ(status.get().value(), 6);
  expect_that_it_works();
}

TEST_F(CommandServerTest, WhoeverAsksAndGoesEndsTheCommandWhateverItIsDoing) {
  start();
  Pipe out;
  {
    const UniqueFd socket = connect();
    const std::string body = *asked_body({.folder = "/", .arguments = {"flood"}});
    const auto header = asked_header(body.size());
    // Nobody reads what it prints.
    const std::array<int, 3> streams = {out.from.get(), out.to.get(), out.to.get()};
    ASSERT_TRUE(send_with(socket.get(), {header.data(), header.size()}, streams));
    ASSERT_TRUE(send_all(socket.get(), body));
    waiting_.get_future().wait();
  }
  flooded_.get_future().wait();
  expect_that_it_works();
}

TEST_F(CommandServerTest, HostileClientsHarmNobody) {
  start();
  const std::string body = *asked_body({.folder = "/", .arguments = {"print", "x"}});
  const auto header_of = [](std::size_t bytes) {
    const auto header = asked_header(bytes);
    return std::string(header.data(), header.size());
  };
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect());
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), header_of(SIZE_MAX), header_of(kAskedBytesMax + 1),
        header_of(0), header_of(body.size()) + body, header_of(3) + "abc",
        header_of(2) + std::string("a\0", 2)}) {
    const UniqueFd socket = connect();
    (void)send_all(socket.get(), bytes);
    EXPECT_TRUE(is_closed(socket)) << bytes;
  }
  const UniqueFd half = connect();  // closed for writing
  (void)send_all(half.get(), header_of(kAskedBytesMax) + "/");
  ::shutdown(half.get(), SHUT_WR);
  EXPECT_TRUE(is_closed(half));
  const UniqueFd too_many = connect();
  const std::array<int, 3> streams = {1, 1, 1};
  ASSERT_TRUE(send_with(too_many.get(), header_of(4), std::span(streams).first(1)));
  ASSERT_TRUE(send_all(too_many.get(), std::string("/\0a\0", 4)));
  EXPECT_TRUE(is_closed(too_many));
  for (const UniqueFd& socket : silent) EXPECT_TRUE(is_closed(socket));
  expect_that_it_works();
}

TEST_F(CommandServerTest, MoreThanAreServedAtOnceWait) {
  start({.begins_after = 0ms, .request_patience = 200ms, .connections_max = 2});
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 7; ++i) silent.push_back(connect());
  expect_that_it_works();
}

TEST_F(CommandServerTest, WhatHasNotBegunWhenItClosesMayBeTriedElsewhere) {
  start({.begins_after = 1h});
  Asking asking;
  auto status = std::async(std::launch::async, [&] {
    return asking.ask(folder_, {"print", "hello"});
  });
  EXPECT_EQ(server_->close(), 0U);
  EXPECT_EQ(status.get().value(), std::nullopt);
}

TEST_F(CommandServerTest, CommandsUnderWayAreInterruptedWhenTheProcessEnds) {
  start();
  Asking asking;
  auto status = std::async(std::launch::async, [&] { return asking.ask(folder_, {"wait"}); });
  waiting_.get_future().wait();
  EXPECT_EQ(server_->close(), 1U);
  EXPECT_FALSE(server_->wait(1ms, {}));
  server_->interrupt_all();
  EXPECT_TRUE(server_->wait(60s, {}));
  EXPECT_EQ(status.get().value(), kStatusOwnerEnded);
  EXPECT_THAT(asking.err.read_all(), ::testing::HasSubstr("is ending and interrupted it"));
}

TEST(AskedMessage, CommandsSurviveARoundTripAndNothingElseIsOne) {
  const AskedCommand command{.folder = "/a b", .arguments = {"run", "", "-c", "x\ny"}};
  const auto body = asked_body(command);
  ASSERT_TRUE(body.ok());
  const auto parsed = parse_asked_body(*body);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->folder, command.folder);
  EXPECT_EQ(parsed->arguments, command.arguments);
  for (const char* text : {"", "a", "/a"}) EXPECT_FALSE(parse_asked_body(text).ok()) << text;
  EXPECT_FALSE(asked_body({.folder = "/", .arguments = {std::string(kAskedBytesMax, 'x')}}).ok());
}

}  // namespace
}  // namespace sw::cli
