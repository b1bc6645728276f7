// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/owner_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace sw::cli {

namespace {

constexpr const char* kName = "commands";
constexpr int kWaitingMax = 128;
constexpr timeval kConnectPatience{.tv_sec = 5, .tv_usec = 0};

UniqueFd open_folder(const std::filesystem::path& folder) {
  return UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// The socket's address by the folder's descriptor: an address holds 107 bytes, a folder's path may
/// have more.
sockaddr_un address_in(int folder) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, kName);
  std::ranges::copy(path, address.sun_path);
  return address;
}

UniqueFd new_socket(int flags) {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

}  // namespace

Result<std::optional<OwnerSocket>> OwnerSocket::claim(const std::filesystem::path& folder) {
  UniqueFd claimed = open_folder(folder);
  if (!claimed) return errno_error(errno, fmt::format("cannot open {}", folder.native()));
  if (::flock(claimed.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<OwnerSocket>();
    return errno_error(errno, fmt::format("cannot lock {}", folder.native()));
  }
  const std::string name = (folder / kName).native();
  if (::unlinkat(claimed.get(), kName, 0) != 0 && errno != ENOENT) {
    return errno_error(errno, fmt::format("cannot replace {}", name));
  }
  UniqueFd socket = new_socket(SOCK_NONBLOCK);
  const sockaddr_un address = address_in(claimed.get());
  // The file gets the socket's mode.
  if (!socket || ::fchmod(socket.get(), 0600) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kWaitingMax) != 0) {
    return errno_error(errno, fmt::format("cannot listen on {}", name));
  }
  return std::optional(OwnerSocket(std::move(claimed), std::move(socket)));
}

void OwnerSocket::close() {
  if (!socket_) return;
  ::unlinkat(folder_.get(), kName, 0);
  socket_ = UniqueFd();
}

UniqueFd connect_to_owner(const std::filesystem::path& folder) {
  const UniqueFd opened = open_folder(folder);
  if (!opened) return {};
  UniqueFd socket = new_socket(0);
  const sockaddr_un address = address_in(opened.get());
  // Its queue may be full.
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectPatience,
                     sizeof kConnectPatience);
  const bool connected =
      socket &&
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return connected && peer_of(socket.get()) ? std::move(socket) : UniqueFd();
}

std::optional<pid_t> peer_of(int socket) {
  ucred peer = {};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer.uid == ::geteuid() ? std::optional(peer.pid) : std::nullopt;
}

}  // namespace sw::cli
