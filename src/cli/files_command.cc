// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/files_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/standard_streams.h"
#include "cli/sandbox_command.h"
#include "sandbox_workers/host.h"
#include "sandbox_workers/wasi/tree_limits.h"

namespace sw::cli {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::string_view kRoot = "/workspace";
constexpr const char* kRow = "{:>10}  {:<24}  {}\n";
// One reads so many lines.
constexpr std::size_t kLinesMax = 20;

Error invalid(std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

/// The same with the path that it is about, in the words of the user.
Error about(const std::string& name, Error error) {
  if (error.message.find(name) == std::string::npos) error.message = name + ": " + error.message;
  return error;
}

bool is_folder(const WorkspaceEntry& entry) { return entry.type == wasi::FileType::kDirectory; }

std::string_view type_name(const WorkspaceEntry& entry) {
  if (is_folder(entry)) return "folder";
  return entry.type == wasi::FileType::kSymbolicLink ? "link" : "file";
}

json::object to_json(const WorkspaceEntry& entry) {
  return {{"path", entry.path},
          {"type", type_name(entry)},
          {"size", entry.size},
          {"updatedAt", entry.updated_at_ms}};
}

Error is_a_folder(const std::string& name, std::string_view instead) {
  return {.code = ErrorCode::kIsDirectory,
          .message = fmt::format("{} is a folder ({})", name, instead)};
}

/// What a copy is called unless it is said; empty for "/", "." and "..".
std::string base_name(const std::string& path) {
  fs::path name = fs::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  const std::string base = name.filename().native();
  return base == "." || base == ".." || base == "/" ? "" : base;
}

/// Where a copy of `name` goes that is to go to `path` of a sandbox: into a folder, if that is one.
std::string target_in(const Files& files, const std::string& path, const std::string& name) {
  if (path.empty()) return name.empty() ? std::string(kRoot) : name;
  const auto entry = files.stat(path);
  const bool into = path.ends_with('/') || (entry.ok() && is_folder(*entry));
  return into && !name.empty() ? fmt::format("{}/{}", path, name) : path;
}

/// The same on the host.
fs::path target_on_host(const fs::path& place, const std::string& name) {
  std::error_code failed;
  const bool into = place.native().ends_with('/') || fs::is_directory(place, failed);
  return into && !name.empty() ? place / name : place;
}

/// Says what a copy of a folder lacks.
void tell_left_out(const Caller& caller, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < std::min(names.size(), kLinesMax); ++i) {
    caller.streams.complain(fmt::format("not copied: {}", names[i]));
  }
  if (names.size() > kLinesMax) {
    caller.streams.complain(fmt::format("not copied: {} more", names.size() - kLinesMax));
  }
}

}  // namespace

// --- one sandbox

Result<int> files_ls_command(const Caller& caller, DataFolder& folder,
                             const FilesOptions& options) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, options.sandbox));
  const Files files = sandbox.files();
  const std::string path = options.path.empty() ? std::string(kRoot) : options.path;
  const auto entry = files.stat(path);
  if (!entry.ok()) return about(path, entry.error());
  std::vector<WorkspaceEntry> entries = {*entry};
  std::size_t prefix = entry->path.rfind('/') + 1;
  if (is_folder(*entry)) {
    SW_TRY(entries, files.list(path, options.recursive ? Depth::kAll : Depth::kOne));
    prefix = entry->path.size() + 1;
    std::ranges::sort(entries, {}, &WorkspaceEntry::path);
  }
  if (options.json) {
    json::array list;
    for (const WorkspaceEntry& one : entries) list.push_back(to_json(one));
    caller.streams.print("{}\n", json::serialize(list));
    return 0;
  }
  for (const WorkspaceEntry& one : entries) {
    const std::string name = printable(one.path.substr(prefix));
    if (is_folder(one)) {
      caller.streams.print(kRow, "", "", name + '/');
    } else {
      const TimePoint time{std::chrono::milliseconds(one.updated_at_ms)};
      caller.streams.print(kRow, one.size, show_time(time), name);
    }
  }
  return 0;
}

Result<int> files_cat_command(const Caller& caller, DataFolder& folder,
                              const FilesOptions& options) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, options.sandbox));
  const auto content = sandbox.files().read(options.path);
  if (!content.ok()) return about(options.path, content.error());
  const int failed = caller.streams.write(wasi::Stream::kStdout, *content);
  if (failed != 0) return cannot_print(failed);
  return 0;
}

Result<int> files_get_command(const Caller& caller, DataFolder& folder,
                              const FilesOptions& options) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, options.sandbox));
  const auto entry = sandbox.files().stat(options.path);
  if (!entry.ok()) return about(options.path, entry.error());
  if (is_folder(*entry)) return is_a_folder(options.path, "`files cp -r` copies folders");
  const std::string name = base_name(options.path);
  const fs::path place = caller.reach(options.host.empty() ? name : options.host);
  SW_CHECK_OK(
      sandbox.files().copy_out(options.path, target_on_host(place, name), IfThere::kReplace));
  return 0;
}

Result<int> files_put_command(const Caller& caller, DataFolder& folder,
                              const FilesOptions& options) {
  SW_CHECK_OK(check_sandbox_id(options.sandbox));
  const bool from_stdin = options.host == "-";
  if (from_stdin && options.path.empty()) return invalid("stdin has no name: pass a path as well");
  SW_TRY(const Host host, folder.open());
  const std::size_t bytes_max = wasi::TreeLimits().file_bytes_max;
  Bytes content;
  BytesView bytes;
  if (from_stdin) {
    SW_TRY(const std::string_view text, caller.streams.read_input(bytes_max));
    bytes = as_bytes(text);
  } else {
    std::error_code failed;
    if (fs::is_directory(caller.reach(options.host), failed)) {
      return is_a_folder(options.host, "`files cp -r` copies folders");
    }
    SW_TRY(content, caller.read_file(options.host, bytes_max));
    bytes = content;
  }
  const Files files = host.sandbox(options.sandbox).files();
  const std::string path = target_in(files, options.path, base_name(options.host));
  auto written = files.write(path, bytes);
  if (!written.ok()) return about(path, std::move(written).error());
  return 0;
}

Result<int> files_rm_command(const Caller& /*caller*/, DataFolder& folder,
                             const FilesOptions& options) {
  SW_TRY(const Sandbox sandbox, open_sandbox(folder, options.sandbox));
  const Files files = sandbox.files();
  const auto entry = files.stat(options.path);
  if (entry.ok() && is_folder(*entry) && !options.recursive) {
    return is_a_folder(options.path, "-r deletes it with all that is in it");
  }
  auto removed = files.remove(options.path, options.recursive ? Depth::kAll : Depth::kOne);
  if (!removed.ok()) return about(options.path, std::move(removed).error());
  return 0;
}

// --- cp

namespace {

/// One end of a copy.
struct Place {
  std::optional<std::string> sandbox;  ///< absent: the host
  std::string path;

  bool is_content() const { return path == "." || path.ends_with("/."); }
};

/// "SANDBOX:PATH"; anything with a slash before the colon is on the host.
Place parse_place(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || !check_sandbox_id(text.substr(0, colon)).ok()) {
    return {.sandbox = {}, .path = text};
  }
  const std::string path = text.substr(colon + 1);
  return {.sandbox = text.substr(0, colon), .path = path.empty() ? std::string(kRoot) : path};
}

Result<int> copy_to_host(const Caller& caller, const Files& from, const Place& source,
                         const Place& target, const std::string& name) {
  const fs::path place = target_on_host(caller.reach(target.path), name);
  SW_TRY(const auto left_out, from.copy_out(source.path, place, IfThere::kReplace));
  tell_left_out(caller, left_out);
  return 0;
}

Result<int> copy_from_sandbox(const Caller& caller, const Host& host, const Place& source,
                              const Place& target, bool recursive) {
  SW_TRY(const bool exists, host.has_sandbox(*source.sandbox));
  if (!exists) {
    return Error{ErrorCode::kNotFound, fmt::format("no sandbox '{}'", *source.sandbox), 0};
  }
  const Files from = host.sandbox(*source.sandbox).files();
  const auto entry = from.stat(source.path);
  if (!entry.ok()) return about(source.path, entry.error());
  if (is_folder(*entry) && !recursive) return is_a_folder(source.path, "-r copies folders");
  const std::string name = source.is_content() ? "" : base_name(entry->path);
  if (!target.sandbox) return copy_to_host(caller, from, source, target, name);
  const Files to = host.sandbox(*target.sandbox).files();
  SW_CHECK_OK(from.copy_to(source.path, to, target_in(to, target.path, name)));
  return 0;
}

}  // namespace

Result<int> files_cp_command(const Caller& caller, DataFolder& folder,
                             const FilesOptions& options) {
  const Place source = parse_place(options.from);
  const Place target = parse_place(options.to);
  if (!source.sandbox && !target.sandbox) {
    return invalid("neither is in a sandbox: write it as SANDBOX:PATH");
  }
  if (source.sandbox) {
    SW_TRY(const auto host, folder.open_existing());
    if (host) return copy_from_sandbox(caller, *host, source, target, options.recursive);
    return Error{ErrorCode::kNotFound,
                 fmt::format("no sandbox '{}' in {}", *source.sandbox, folder.path().native()), 0};
  }
  const fs::path place = caller.reach(source.path);
  std::error_code failed;
  if (!fs::is_directory(place, failed)) {
    return files_put_command(
        caller, folder, {.sandbox = *target.sandbox, .path = target.path, .host = source.path});
  }
  if (!options.recursive) return is_a_folder(source.path, "-r copies folders");
  SW_CHECK_OK(check_sandbox_id(*target.sandbox));
  SW_TRY(const Host host, folder.open());
  const Files to = host.sandbox(*target.sandbox).files();
  const std::string name = source.is_content() ? "" : base_name(place.native());
  SW_TRY(const auto left_out, to.copy_in(place, target_in(to, target.path, name)));
  tell_left_out(caller, left_out);
  return 0;
}

}  // namespace sw::cli
