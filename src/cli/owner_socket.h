// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The socket in a data folder by which the process that has the folder takes commands of others
// (docs/data-folder.md).

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

/// Whoever has it is the one program of ours that has the data folder, or is about to open it.
/// Others that connect wait until they are accepted, or are told by the end of the connection to
/// try again.
class OwnerSocket {
 public:
  /// Nothing while another process has it. What one that was killed left is replaced.
  static Result<std::optional<OwnerSocket>> claim(const std::filesystem::path& folder);
  OwnerSocket(OwnerSocket&&) noexcept = default;
  OwnerSocket& operator=(OwnerSocket&&) = delete;
  ~OwnerSocket() { close(); }

  /// Listens, and does not block.
  int fd() const { return socket_.get(); }
  /// From now on nobody can connect, and those who wait are told. The claim stays.
  void close();

 private:
  OwnerSocket(UniqueFd folder, UniqueFd socket)
      : folder_(std::move(folder)), socket_(std::move(socket)) {}
  UniqueFd folder_;  // locked: closing it gives the claim up
  UniqueFd socket_;
};

/// Connects to the process that has the folder; empty: there is none that listens now.
UniqueFd connect_to_owner(const std::filesystem::path& folder);

/// The process at the other end, if it is one of this user's.
std::optional<pid_t> peer_of(int socket);

}  // namespace sw::cli
