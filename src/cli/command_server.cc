// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace sw::cli {

namespace {

// What is read from one connection before the others get their turn.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
constexpr std::chrono::milliseconds kPause{100};

/// Threads made while it lives take no signals: those are for the program's own command.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_ = {};
};

}  // namespace

/// Somebody who connected: first they say what they want, then it runs.
struct CommandServer::Connection {
  Connection(UniqueFd connected, pid_t peer, Clock::time_point until)
      : socket(std::move(connected)), process(peer), deadline(until) {}

  bool is_over() const { return command ? command->is_done() : failed; }

  UniqueFd socket;
  const pid_t process;
  const Clock::time_point deadline;   // for the request
  std::string request;                // as far as it is here
  std::optional<std::size_t> wanted;  // bytes of its body
  AskedStreams streams;
  bool has_streams = false;
  bool failed = false;  // there is no command, and will be none
  bool gone = false;    // the other end
  std::unique_ptr<ServedCommand> command;
};

Result<std::unique_ptr<CommandServer>> CommandServer::start(OwnerSocket socket, Perform perform,
                                                            const CommandServerOptions& options) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errno_error(errno, "eventfd");
  std::unique_ptr<CommandServer> server(
      new CommandServer(std::move(socket), std::move(perform), options, std::move(wake)));
  const NoSignals signals;
  server->thread_ = std::thread([&started = *server] { started.serve(); });
  return server;
}

CommandServer::CommandServer(OwnerSocket socket, Perform perform,
                             const CommandServerOptions& options, UniqueFd wake)
    : socket_(std::move(socket)),
      perform_(std::move(perform)),
      options_(options),
      wake_(std::move(wake)) {}

CommandServer::~CommandServer() {
  close();
  if (thread_.joinable()) thread_.join();
}

// --- for the program

std::size_t CommandServer::close() {
  change(Phase::kClosing);
  MutexLock lock(mutex_);
  while (reached_ == Phase::kOpen) changed_.wait(lock);
  return under_way_;
}

bool CommandServer::wait(std::chrono::milliseconds patience, const std::stop_token& stop) {
  const std::stop_callback told(stop, [this] {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  });
  const auto end = Clock::now() + patience;
  MutexLock lock(mutex_);
  while (under_way_ > 0 && !stop.stop_requested() && changed_.wait_until(lock, end)) {
  }
  return under_way_ == 0;
}

void CommandServer::change(Phase phase) {
  {
    const MutexLock lock(mutex_);
    phase_ = std::max(phase_, phase);
  }
  wake();
}

void CommandServer::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto told = ::write(wake_.get(), &one, sizeof one);
}

// --- the thread

CommandServer::Phase CommandServer::phase() {
  const MutexLock lock(mutex_);
  return phase_;
}

void CommandServer::count() {
  const MutexLock lock(mutex_);
  under_way_ = static_cast<std::size_t>(std::ranges::count_if(
      connections_, [](const Connection& one) { return one.command != nullptr; }));
  reached_ = seen_;
  changed_.notify_all();
}

void CommandServer::serve() {
  while (seen_ == Phase::kOpen || !connections_.empty()) turn();
}

bool CommandServer::accepts() const {
  return seen_ == Phase::kOpen && Clock::now() >= accepts_from_ &&
         connections_.size() < options_.connections_max;
}

/// How long there is nothing to do unless somebody says something; -1: for ever.
int CommandServer::patience_ms() const {
  std::optional<Clock::time_point> next;
  const auto now = Clock::now();
  if (seen_ == Phase::kOpen && now < accepts_from_) next = accepts_from_;
  for (const Connection& one : connections_) {
    if (!one.command) next = std::min(next.value_or(one.deadline), one.deadline);
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

/// Waits until something happens, and deals with it.
void CommandServer::turn() {
  std::vector<pollfd> watched = {
      {.fd = wake_.get(), .events = POLLIN, .revents = 0},
      {.fd = accepts() ? socket_.fd() : -1, .events = POLLIN, .revents = 0}};
  for (const Connection& one : connections_) {
    watched.push_back({.fd = one.gone ? -1 : one.socket.get(), .events = POLLIN, .revents = 0});
  }
  while (::poll(watched.data(), watched.size(), patience_ms()) < 0 && errno == EINTR) {
  }
  std::uint64_t ignored = 0;
  (void)::read(wake_.get(), &ignored, sizeof ignored);
  auto heard = watched.begin() + 2;
  for (Connection& one : connections_) {
    if ((heard++)->revents != 0) hear(one);
    if (!one.command && Clock::now() >= one.deadline) one.failed = true;
  }
  if (watched[1].revents != 0) accept_one();
  if (const Phase now = phase(); now != seen_) {
    seen_ = now;
    socket_.close();
    for (Connection& one : connections_) {
      if (!one.command) one.failed = true;
      else if (now == Phase::kInterrupting) one.command->interrupt_for_end();
      else if (now == Phase::kAbandoning) one.command->abandon();
    }
  }
  connections_.remove_if([](const Connection& one) { return one.is_over(); });
  count();
}

void CommandServer::accept_one() {
  UniqueFd connected(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connected) {
    // Without descriptors to spare it would be tried again at once.
    accepts_from_ = Clock::now() + kPause;
    return;
  }
  const auto peer = peer_of(connected.get());
  if (!peer) return;
  connections_.emplace_back(std::move(connected), *peer, Clock::now() + options_.request_patience);
}

void CommandServer::hear(Connection& connection) {
  if (!connection.command) return read_request(connection);
  std::array<char, 64> bytes = {};
  const Received received = receive(connection.socket.get(), bytes);
  if (received.count > 0) return connection.command->interrupt();
  if (received.count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  connection.gone = true;
  connection.command->abandon();
}

void CommandServer::read_request(Connection& connection) {
  std::string& request = connection.request;
  const std::size_t missing =
      connection.wanted ? *connection.wanted - request.size() : kHeaderBytes - request.size();
  const std::size_t before = request.size();
  request.resize(before + std::min(missing, kPieceBytes));
  Received received = receive(connection.socket.get(), std::span(request).subspan(before));
  const int error = errno;
  request.resize(before + static_cast<std::size_t>(std::max<ssize_t>(received.count, 0)));
  if (received.count < 0 && (error == EAGAIN || error == EINTR)) return;
  connection.failed = received.count <= 0;
  if (received.has_streams && !connection.has_streams) {
    connection.streams = std::move(received.streams);
    connection.has_streams = true;
  }
  if (!connection.wanted && request.size() == kHeaderBytes) {
    connection.wanted = parse_asked_header(request);
    connection.failed = !connection.wanted;
    request.clear();
  } else if (connection.wanted && request.size() == *connection.wanted) {
    begin(connection);
  }
}

void CommandServer::begin(Connection& connection) {
  connection.failed = true;
  auto command = parse_asked_body(connection.request);
  connection.request = {};
  if (!command.ok() || !connection.has_streams) return;
  const NoSignals signals;
  auto started = ServedCommand::start({.command = *std::move(command),
                                       .streams = std::move(connection.streams),
                                       .process = connection.process,
                                       .socket = connection.socket.get()},
                                      perform_, on_done_);
  if (started.ok()) connection.command = *std::move(started);
}

}  // namespace sw::cli
