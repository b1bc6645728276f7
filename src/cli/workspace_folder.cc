// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sandbox_workers/host/host.h"

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
    if (path.stem() != "main" || !guess_language(path.native(), "").ok()) continue;
    if (found.empty() || path.filename().native() < found) found = path.filename();
  }
  if (error) return errno_error(error.value(), "cannot read folder " + folder.native());
  if (!found.empty()) return found;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} has no main program (main.py, main.js, main.ts, main.pl or main.rb)",
                           folder.native()),
               0};
}

Result<std::optional<WorkspaceFolder>> load_workspace(const Streams& streams,
                                                      const std::string& folder) {
  if (folder.empty()) return std::optional<WorkspaceFolder>();
  SW_TRY(WorkspaceFolder loaded, WorkspaceFolder::load(folder));
  for (const std::string& path : first(loaded.left_out(), kLinesMax)) {
    streams.complain(fmt::format("skipped, not loaded into the workspace: {}", path));
  }
  return std::optional(std::move(loaded));
}

WriteBackReport write_back(WorkspaceFolder& workspace, const Outcome& outcome) {
  WriteBackReport report = workspace.write_back(outcome);
  report.refused = first(std::move(report.refused), kReportedMax);
  report.left = first(std::move(report.left), kReportedMax);
  return report;
}

void show(const Streams& streams, const WriteBackReport& report, const std::string& folder) {
  if (!report.error.empty()) {
    streams.complain(fmt::format("nothing was written back to {}: {}", folder, report.error));
  }
  for (const std::string& reason : first(report.refused, kLinesMax)) {
    streams.complain(fmt::format("not written back: {}", reason));
  }
  for (const std::string& reason : first(report.left, kLinesMax)) {
    streams.complain(reason);
  }
}

}  // namespace sw::cli
