// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/served_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "cli/statuses.h"

namespace sw::cli {

namespace {

/// The same pipe or terminal, so that writes to it never block. Its other descriptors, which belong
/// to others, stay as they are; of other kinds of files there is only the one.
UniqueFd without_blocking(UniqueFd file) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return file;
  if (!S_ISFIFO(status.st_mode) && ::isatty(file.get()) == 0) return file;
  const std::string again = fmt::format("/proc/self/fd/{}", file.get());
  UniqueFd opened(::open(again.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return opened ? std::move(opened) : std::move(file);
}

}  // namespace

// --- interruptions

class ToldInterrupts::Scope final : public InterruptScope {
 public:
  explicit Scope(ToldInterrupts& told) : told_(told) {}
  ~Scope() override { Scope::end(); }
  bool end() override { return told_.leave(this); }

 private:
  ToldInterrupts& told_;
};

std::unique_ptr<InterruptScope> ToldInterrupts::take() {
  auto scope = std::make_unique<Scope>(*this);
  const MutexLock lock(mutex_);
  current_ = scope.get();
  if (ended_) scope->request_stop();
  return scope;
}

bool ToldInterrupts::leave(Scope* scope) {
  const MutexLock lock(mutex_);
  if (current_ == scope) current_ = nullptr;
  return ended_;
}

bool ToldInterrupts::interrupt() {
  {
    const MutexLock lock(mutex_);
    // What it calls only asks for a stop, so it may be called under the mutex, which keeps the
    // scope.
    if (current_ != nullptr) {
      current_->request_stop();
      return false;
    }
  }
  end();
  return true;
}

void ToldInterrupts::end() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    if (current_ != nullptr) current_->request_stop();
  }
  on_end_();
}

// --- the command

Result<std::unique_ptr<ServedCommand>> ServedCommand::start(Asked asked, const Perform& perform,
                                                            const std::function<void()>& on_done) {
  UniqueFd gone(::eventfd(0, EFD_CLOEXEC));
  if (!gone) return errno_error(errno, "eventfd");
  for (std::size_t i = 1; i < kAskedStreams; ++i)
    asked.streams[i] = without_blocking(std::move(asked.streams[i]));
  std::unique_ptr<ServedCommand> command(new ServedCommand(std::move(asked), std::move(gone)));
  // From now on it counts as done, so it cannot be done twice.
  command->reply({.kind = Reply::Kind::kBegins});
  try {
    command->thread_ =
        std::thread([&served = *command, &perform, &on_done] { served.perform(perform, on_done); });
  } catch (const std::system_error& problem) {
    return Error{.code = ErrorCode::kUnavailable, .message = problem.what()};
  }
  return command;
}

ServedCommand::ServedCommand(Asked asked, UniqueFd gone)
    : asked_(std::move(asked)), gone_(std::move(gone)), interrupts_([this] {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto told = ::write(gone_.get(), &one, sizeof one);
      }) {}

ServedCommand::~ServedCommand() {
  if (thread_.joinable()) thread_.join();
}

void ServedCommand::perform(const Perform& perform, const std::function<void()>& on_done) {
  Streams streams({.in = asked_.streams[0].get(),
                   .out = asked_.streams[1].get(),
                   .err = asked_.streams[2].get(),
                   .gone = gone_.get()});
  const Caller caller{.streams = streams,
                      .interrupts = interrupts_,
                      .folder = asked_.command.folder,
                      .process = asked_.process};
  const int status = perform(caller, asked_.command.arguments);
  reply({.kind = owner_ends_ ? Reply::Kind::kOwnerEnds : Reply::Kind::kEnded,
         .status = static_cast<std::uint8_t>(status)});
  done_ = true;
  on_done();
}

void ServedCommand::interrupt() {
  if (interrupts_.interrupt()) reply({.kind = Reply::Kind::kEnded, .status = kStatusCancelled});
}

void ServedCommand::abandon() { interrupts_.end(); }

void ServedCommand::interrupt_for_end() {
  owner_ends_ = true;
  if (interrupts_.interrupt()) reply({.kind = Reply::Kind::kOwnerEnds});
}

void ServedCommand::reply(Reply reply) {
  if (reply.kind != Reply::Kind::kBegins && replied_.exchange(true)) return;
  const auto bytes = reply_bytes(reply);
  // Two bytes always fit, unless nobody is there to read them.
  (void)send_all(asked_.socket, std::string_view(bytes.data(), bytes.size()));
}

}  // namespace sw::cli
