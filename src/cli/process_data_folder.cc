// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/process_data_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/owner_socket.h"
#include "cli/statuses.h"
#include "sandbox_workers/base/files.h"

namespace sw::cli {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

// For whoever has the folder to end: longer than that takes with commands of others.
constexpr auto kOwnerPatience = 30s;
constexpr auto kPause = 20ms;
// For commands of others when this process ends: unsaid, then said, then after an interruption.
constexpr auto kQuietPatience = 1s;
constexpr auto kPatience = 9s;
constexpr auto kStopPatience = 5s;
constexpr auto kLastPatience = 2s;

/// The data folder of commands that others ask for.
class ServedDataFolder final : public DataFolder {
 public:
  ServedDataFolder(fs::path path, Host host)
      : DataFolder(std::move(path)), host_(std::move(host)) {}
  Result<Host> open() override { return host_; }
  Result<std::optional<Host>> open_existing() override { return std::optional(host_); }
  Result<std::optional<Host>> open_if_owned() override { return std::optional(host_); }

 private:
  const Host host_;
};

}  // namespace

Result<Host> ProcessDataFolder::open() {
  SW_CHECK_OK(make_private_directory(path()));
  return open_or_connect();
}

Result<std::optional<Host>> ProcessDataFolder::open_existing() {
  std::error_code failed;
  if (!fs::exists(path(), failed) && !failed) return std::optional<Host>();
  SW_TRY(Host host, open());
  return std::optional(std::move(host));
}

Result<std::optional<Host>> ProcessDataFolder::open_if_owned() {
  owner_ = connect_to_owner(path());
  if (owner_) return in_use();
  return std::optional<Host>();
}

Result<Host> ProcessDataFolder::open_or_connect() {
  const auto end = std::chrono::steady_clock::now() + kOwnerPatience;
  do {
    auto claimed = OwnerSocket::claim(path());
    // Where there cannot be a socket the folder may be usable all the same.
    if (!claimed.ok()) return open_claimed(std::nullopt);
    if (*claimed) return open_claimed(*std::move(claimed));
    owner_ = connect_to_owner(path());
    if (owner_) return in_use();
    // It has not begun to listen, or is about to end.
    std::this_thread::sleep_for(kPause);
  } while (std::chrono::steady_clock::now() < end);
  return in_use();
}

Result<Host> ProcessDataFolder::open_claimed(std::optional<OwnerSocket> socket) {
  const SignalFreeThreads signals;
  SW_TRY(Host host,
         Host::open({.data_folder = path(), .on_progress = show_progress(caller_.streams)}));
  if (!socket) return host;
  SW_TRY(server_,
         CommandServer::start(*std::move(socket),
                              [host, path = path()](const Caller& caller,
                                                    const std::vector<std::string>& arguments) {
                                ServedDataFolder folder(path, host);
                                return perform_for_other(caller, folder, arguments);
                              }));
  return host;
}

Error ProcessDataFolder::in_use() const {
  const auto process = owner_ ? peer_of(owner_.get()) : std::nullopt;
  const std::string id = process ? std::to_string(*process) : "";
  const std::string who = process ? "process " + id : "another process";
  return {.code = ErrorCode::kUnavailable,
          .message = fmt::format("the data folder {} is in use by {}", path().native(), who),
          .context = {{"usedBy", id}}};
}

void ProcessDataFolder::close(int status) {
  if (!server_) return;
  if (const std::size_t count = server_->close(); count > 0) end_others(count, status);
  server_.reset();
}

void ProcessDataFolder::end_others(std::size_t count, int status) {
  const auto interrupt = caller_.interrupts.take();
  // Whoever interrupted this process's own command wants it to end.
  if (status == kStatusCancelled) interrupt->request_stop();
  if (!server_->wait(kQuietPatience, interrupt->token()) && !interrupt->token().stop_requested()) {
    caller_.streams.complain(
        fmt::format("waiting for commands of other processes: {} (Ctrl-C interrupts them)", count));
    (void)server_->wait(kPatience, interrupt->token());
  }
  server_->interrupt_all();
  if (server_->wait(kStopPatience, {})) return;
  server_->abandon_all();
  if (!server_->wait(kLastPatience, {})) ::_exit(status);
}

}  // namespace sw::cli
