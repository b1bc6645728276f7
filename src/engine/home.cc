// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/home.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "sandbox_workers/wasi/layout.h"

namespace sw::engine {

namespace {

std::string moved(std::string path, std::string_view from, std::string_view to) {
  const bool is_below =
      path.starts_with(from) && (path.size() == from.size() || path[from.size()] == '/');
  if (is_below) path.replace(0, from.size(), to);
  return path;
}

std::string in_home(std::string path) {
  return moved(std::move(path), wasi::kWorkspacePath, wasi::kHomePath);
}

}  // namespace

Run at_home(Run run, bool is_first) {
  // An instance that goes on is wherever the run before left it.
  if (is_first && run.cwd.empty()) run.cwd = wasi::kHomePath;
  run.cwd = in_home(std::move(run.cwd));
  run.file_name = in_home(std::move(run.file_name));
  if (!run.args.empty()) run.args.front() = in_home(std::move(run.args.front()));
  const bool has_home =
      std::ranges::any_of(run.env, [](const auto& variable) { return variable.first == "HOME"; });
  if (!has_home) run.env.emplace_back("HOME", wasi::kHomePath);
  return run;
}

std::string in_workspace(std::string path) {
  return moved(std::move(path), wasi::kHomePath, wasi::kWorkspacePath);
}

}  // namespace sw::engine
