// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "cli/terminal.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/language.h"
#include "wasi/host_access.h"

namespace sw::cli {

namespace fs = std::filesystem;

namespace {

// One reads so many lines. The JSON has more of them.
constexpr std::size_t kLinesMax = 20;
constexpr std::size_t kReportedMax = 1000;

std::vector<std::string> first(std::vector<std::string> things, std::size_t count) {
  if (things.size() <= count) return things;
  const std::size_t more = things.size() - count;
  things.resize(count);
  things.push_back(fmt::format("{} more", more));
  return things;
}

}  // namespace

Result<std::string> main_name(const fs::path& folder) {
  std::error_code error;
  std::string found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (path.stem() != "main" || !engine::guess_language(path.native(), "").ok()) continue;
    if (found.empty() || path.filename().native() < found) found = path.filename();
  }
  if (error) return errno_error(error.value(), "cannot read folder " + folder.native());
  if (!found.empty()) return found;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} has no main program (main.py, main.js, main.ts, main.pl or main.rb)",
                           folder.native()),
               0};
}

Result<std::string> read_main(const fs::path& folder, const std::string& name) {
  return wasi::read_file_beneath(folder, name, kCodeBytesMax);
}

Result<std::string> read_stdin(std::size_t bytes_max) {
  return wasi::read_open_text(STDIN_FILENO, bytes_max, "standard input");
}

Result<std::optional<wasi::HostFolder>> load_workspace(const std::string& folder,
                                                       const wasi::Clocks& clocks) {
  if (folder.empty()) return std::optional<wasi::HostFolder>();
  auto loaded = wasi::HostFolder::load(folder, {}, clocks.realtime_ns());
  if (!loaded.ok()) return std::move(loaded).error().while_doing("cannot load " + folder);
  for (const std::string& path : first(loaded->skipped(), kLinesMax)) {
    complain(fmt::format("left out of the workspace: {}", path));
  }
  return std::optional(*std::move(loaded));
}

engine::WriteBackReport write_back(wasi::HostFolder& workspace) {
  auto done = workspace.write_back();
  if (!done.ok())
    return {.written = 0, .refused = {}, .left = {}, .error = std::move(done).error().message};
  return {.written = done->written.size(),
          .refused = first(std::move(done->refused), kReportedMax),
          .left = first(std::move(done->left), kReportedMax),
          .error = {}};
}

void show(const engine::WriteBackReport& report, const std::string& folder) {
  if (!report.error.empty()) {
    complain(fmt::format("nothing was written back to {}: {}", folder, report.error));
  }
  for (const std::string& reason : first(report.refused, kLinesMax)) {
    complain(fmt::format("not written back: {}", reason));
  }
  for (const std::string& reason : first(report.left, kLinesMax)) {
    complain(reason);
  }
}

}  // namespace sw::cli
