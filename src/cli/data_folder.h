// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The hosts that commands work with: in memory, or that of a data folder.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/streams.h"
#include "sandbox_workers/host.h"

namespace sw::cli {

/// Shows on stderr how the preparation of languages goes. `streams` outlives all copies of it.
bake::Progress show_progress(const Streams& streams);

/// A host in memory, whose threads leave signals to SignalScope.
Result<Host> open_host(const Streams& streams);

/// The named languages, or all.
Result<std::vector<LanguageInfo>> chosen_languages(const Host& host,
                                                   const std::vector<std::string>& names);

/// The data folder of one command. A command asks for the host before it reads anything, because it
/// may turn out that another process is to do it (`is_in_use`).
class DataFolder {
 public:
  explicit DataFolder(std::filesystem::path path) : path_(std::move(path)) {}
  virtual ~DataFolder() = default;
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Makes the folder if it is not there.
  virtual Result<Host> open() = 0;
  /// Nothing if the folder is not there.
  virtual Result<std::optional<Host>> open_existing() = 0;
  /// The host that has the folder already; nothing if there is none, or it does not take commands.
  virtual Result<std::optional<Host>> open_if_owned() = 0;

 private:
  const std::filesystem::path path_;
};

/// A sandbox that is there already, for commands that only look or change something.
/// Errors: also kNotFound.
Result<Sandbox> open_sandbox(DataFolder& folder, const std::string& id);

}  // namespace sw::cli
