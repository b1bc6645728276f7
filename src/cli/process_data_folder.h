// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/caller.h"
#include "cli/command_server.h"
#include "cli/data_folder.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

/// A data folder that this process opens. From then on it takes commands of other processes; if
/// another process has the folder already, opening it fails with `is_in_use`, and `owner` is who to
/// ask instead.
class ProcessDataFolder final : public DataFolder {
 public:
  /// `caller` outlives it.
  ProcessDataFolder(std::filesystem::path path, const Caller& caller)
      : DataFolder(std::move(path)), caller_(caller) {}
  ~ProcessDataFolder() override = default;

  Result<Host> open() override;
  Result<std::optional<Host>> open_existing() override;
  Result<std::optional<Host>> open_if_owned() override;

  /// The connection to the process that has the folder, after an error for which `is_in_use`;
  /// empty: it takes no commands.
  const UniqueFd& owner() const { return owner_; }

  /// To be called when the command of this process is done, and `status` is its. Commands of others
  /// may end within a bound; what cannot be stopped ends with the process, now.
  void close(int status);

 private:
  Result<Host> open_or_connect();
  Result<Host> open_claimed(std::optional<OwnerSocket> socket);
  Error in_use() const;
  void end_others(std::size_t count, int status);

  const Caller& caller_;
  UniqueFd owner_;
  std::unique_ptr<CommandServer> server_;
};

}  // namespace sw::cli
