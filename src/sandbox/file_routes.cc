// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

namespace json = boost::json;

namespace {

/// A request that has been found well-formed.
struct FileRequest {
  std::string path;
  std::string new_path;
  std::string content;
  FileEncoding encoding = FileEncoding::kUtf8;
  bool recursive = false;
  bool force = false;
  bool hidden = false;
};

/// As JavaScript has it: all but false, 0, "", null and what is not there.
bool truthy(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  if (!value || value->is_null()) return false;
  if (value->is_bool()) return value->as_bool();
  if (value->is_string()) return !value->as_string().empty();
  if (value->is_number()) return value->to_number<double>() != 0;
  return true;
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

/// What should be a string is made one.
std::string content_of(const json::object& object) {
  const json::value* const value = object.if_contains("content");
  if (!value || value->is_null()) return {};
  return value->is_string() ? std::string(value->as_string()) : json::serialize(*value);
}

std::string normalized(std::string_view path) {
  const auto full = Workspace::normalize(path);
  return full.ok() ? *full : std::string(path);
}

Depth depth_of(bool recursive) { return recursive ? Depth::kAll : Depth::kOne; }

using FileAnswer = Result<json::object>;

FileAnswer read(Sandbox& sandbox, const FileRequest& request) {
  SW_TRY(const FileText text, sandbox.with_files(FileUse::kLook, "file.read", request.path,
                                                 [&](Workspace& files, std::uint64_t) {
                                                   return files.read(request.path,
                                                                     request.encoding);
                                                 }));
  const std::string path = normalized(request.path);
  return json::object{{"path", path},
                      {"content", text.content},
                      {"encoding", text.encoding == FileEncoding::kUtf8 ? "utf-8" : "base64"},
                      {"isBinary", text.is_binary},
                      {"mimeType", mime_type(path, text.is_binary)},
                      {"size", text.size}};
}

FileAnswer write(Sandbox& sandbox, const FileRequest& request) {
  SW_CHECK_OK(sandbox.with_files(
      FileUse::kChange, "file.write", request.path, [&](Workspace& files, std::uint64_t now_ns) {
        return files.write(request.path, request.content, request.encoding, now_ns);
      }));
  return json::object{{"path", normalized(request.path)}};
}

FileAnswer make_directory(Sandbox& sandbox, const FileRequest& request) {
  SW_CHECK_OK(sandbox.with_files(FileUse::kChange, "directory.create", request.path,
                                 [&](Workspace& files, std::uint64_t now_ns) {
                                   return files.make_directory(request.path,
                                                               depth_of(request.recursive), now_ns);
                                 }));
  return json::object{{"path", normalized(request.path)}, {"recursive", request.recursive}};
}

FileAnswer remove(Sandbox& sandbox, const FileRequest& request) {
  SW_CHECK_OK(sandbox.with_files(
      FileUse::kChange, "file.delete", request.path, [&](Workspace& files, std::uint64_t now_ns) {
        const IfMissing missing = request.force ? IfMissing::kSucceed : IfMissing::kFail;
        return files.remove(request.path, depth_of(request.recursive), missing, now_ns);
      }));
  return json::object{{"path", normalized(request.path)}};
}

FileAnswer rename_as(std::string_view operation, Sandbox& sandbox, const FileRequest& request) {
  SW_CHECK_OK(sandbox.with_files(FileUse::kChange, operation, request.path,
                                 [&](Workspace& files, std::uint64_t now_ns) {
                                   return files.rename(request.path, request.new_path, now_ns);
                                 }));
  return json::object{{"path", normalized(request.path)},
                      {"newPath", normalized(request.new_path)}};
}

FileAnswer rename(Sandbox& sandbox, const FileRequest& request) {
  return rename_as("file.rename", sandbox, request);
}
FileAnswer move(Sandbox& sandbox, const FileRequest& request) {
  return rename_as("file.move", sandbox, request);
}

FileAnswer exists(Sandbox& sandbox, const FileRequest& request) {
  SW_TRY(const bool there, sandbox.with_files(FileUse::kLook, "file.stat", request.path,
                                              [&](Workspace& files, std::uint64_t) -> Result<bool> {
                                                SW_CHECK_OK(Workspace::normalize(request.path));
                                                return files.exists(request.path);
                                              }));
  return json::object{{"path", normalized(request.path)}, {"exists", there}};
}

bool is_hidden(std::string_view relative) {
  return relative.starts_with('.') || relative.find("/.") != std::string_view::npos;
}

json::object file_info(const WorkspaceEntry& entry, std::string_view relative,
                       std::int64_t created_ms) {
  const bool folder = entry.type == wasi::FileType::kDirectory;
  const bool link = entry.type == wasi::FileType::kSymbolicLink;
  const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
  return {{"name", to_valid_utf8(name)},
          {"absolutePath", to_valid_utf8(entry.path)},
          {"relativePath", to_valid_utf8(relative)},
          {"type", folder ? "directory"
                   : link ? "symlink"
                          : "file"},
          {"size", entry.size},
          {"modifiedAt", protocol::iso_time(folder ? created_ms : entry.updated_at_ms)},
          {"mode", folder ? "drwxr-xr-x"
                   : link ? "lrwxrwxrwx"
                          : "-rw-r--r--"},
          {"permissions", {{"readable", true}, {"writable", true}, {"executable", folder}}}};
}

FileAnswer list(Sandbox& sandbox, const FileRequest& request) {
  using Entries = std::vector<WorkspaceEntry>;
  SW_TRY(const Entries entries, sandbox.with_files(FileUse::kLook, "directory.list", request.path,
                                                   [&](Workspace& files, std::uint64_t) {
                                                     return files.list(request.path,
                                                                       depth_of(request.recursive));
                                                   }));
  const std::string folder = normalized(request.path);
  json::array listed;
  for (const WorkspaceEntry& entry : entries) {
    const std::string_view relative = std::string_view(entry.path).substr(folder.size() + 1);
    if (request.hidden || !is_hidden(relative))
      listed.push_back(file_info(entry, relative, sandbox.created_ms()));
  }
  const std::size_t count = listed.size();
  return json::object{{"path", folder}, {"files", std::move(listed)}, {"count", count}};
}

struct FileRoute {
  std::string_view op;
  FileAnswer (*run)(Sandbox&, const FileRequest&);
  bool needs_new_path = false;
};

constexpr std::array kFileRoutes = {FileRoute{"read", read},
                                    FileRoute{"write", write},
                                    FileRoute{"mkdir", make_directory},
                                    FileRoute{"delete", remove},
                                    FileRoute{"rename", rename, true},
                                    FileRoute{"move", move, true},
                                    FileRoute{"list", list},
                                    FileRoute{"exists", exists}};

struct MimeType {
  std::string_view ending;
  std::string_view type;
};

constexpr std::array kMimeTypes = {
    MimeType{".json", "application/json"}, MimeType{".js", "text/javascript"},
    MimeType{".mjs", "text/javascript"},   MimeType{".py", "text/x-python"},
    MimeType{".pl", "text/x-perl"},        MimeType{".rb", "text/x-ruby"},
    MimeType{".txt", "text/plain"},        MimeType{".md", "text/markdown"},
    MimeType{".html", "text/html"},        MimeType{".css", "text/css"},
    MimeType{".csv", "text/csv"},          MimeType{".png", "image/png"},
    MimeType{".jpg", "image/jpeg"},        MimeType{".jpeg", "image/jpeg"},
    MimeType{".gif", "image/gif"},         MimeType{".svg", "image/svg+xml"},
    MimeType{".pdf", "application/pdf"},   MimeType{".wasm", "application/wasm"},
    MimeType{".zip", "application/zip"},   MimeType{".gz", "application/gzip"}};

}  // namespace

std::string_view mime_type(std::string_view path, bool is_binary) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    std::string ending(name.substr(dot));
    std::ranges::transform(ending, ending.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const auto found = std::ranges::find(kMimeTypes, ending, &MimeType::ending);
    if (found != kMimeTypes.end()) return found->type;
  }
  return is_binary ? "application/octet-stream" : "text/plain";
}

Result<json::object> file_operation(Sandbox& sandbox, const json::object& object) {
  const std::string op = text_of(object, "op");
  const auto route = std::ranges::find(kFileRoutes, op, &FileRoute::op);
  if (route == kFileRoutes.end()) return protocol::refusal("Unknown op");
  FileRequest request;
  request.path = text_of(object, "path");
  if (request.path.empty()) return protocol::refusal("path is required");
  request.new_path = text_of(object, "newPath");
  if (route->needs_new_path && request.new_path.empty())
    return protocol::refusal(fmt::format("newPath is required for {}", op));
  if (object.contains("encoding")) {
    const std::string encoding = text_of(object, "encoding");
    if (encoding != "utf-8" && encoding != "base64")
      return protocol::refusal("encoding must be utf-8 or base64");
    if (encoding == "base64") request.encoding = FileEncoding::kBase64;
  }
  if (op == "write") request.content = content_of(object);
  request.recursive = truthy(object, "recursive");
  request.force = truthy(object, "force");
  request.hidden = truthy(object, "includeHidden");
  return route->run(sandbox, request);
}

}  // namespace sw::sandbox
