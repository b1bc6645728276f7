// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <cstring>
#include <string>
#include <vector>

#include "base/pieces.h"
#include "engine/javascript/guest.h"
#include "engine/javascript/guest_text.h"
#include "sandbox_workers/base/sha256.h"

namespace sw::engine::javascript {

namespace {

constexpr std::string_view kMark = "?v=";
constexpr std::size_t kMarkDigits = 12;
constexpr std::string_view kBuiltin = "node:";
constexpr std::size_t kNameMax = 4096;

/// A C string of the guest's, up to a length that no name has.
std::string guest_string(const JavaScriptGuest& guest, std::uint32_t address) {
  const auto bytes = guest.memory().bytes();
  if (address >= bytes.size()) return {};
  const auto rest = as_text(bytes.subspan(address, std::min(bytes.size() - address, kNameMax)));
  return std::string(rest.substr(0, rest.find('\0')));
}

std::string_view without_mark(std::string_view name) {
  const std::size_t at = name.rfind(kMark);
  return at != std::string_view::npos && name.size() - at == kMark.size() + kMarkDigits
             ? name.substr(0, at)
             : name;
}

/// 0, with the exception thrown that says why `specifier` cannot be imported.
Result<std::uint32_t> refuse(JavaScriptGuest& guest, std::string_view specifier,
                             std::string_view why) {
  SW_CHECK_OK(guest.throw_module_error(fmt::format("Cannot find module '{}': {}", specifier, why)));
  return std::uint32_t{0};
}

std::string_view folder_of(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string_view::npos || slash == 0 ? "/" : file.substr(0, slash);
}

Result<std::string> mark_of(const QuickJs& js, BytesView content) {
  Sha256 hash;
  SW_CHECK_OK(in_pieces(js.cancellation(), content, [&](BytesView piece) { hash.update(piece); }));
  return fmt::format("{}{}", kMark, hash.hex().substr(0, kMarkDigits));
}

/// In the driver's realm "a/b" is a file of the read-only libraries, and endings are left out.
Result<std::uint32_t> normalize_library_module(JavaScriptGuest& guest, std::string_view base,
                                               std::string_view specifier) {
  const bool is_relative = specifier.starts_with('.');
  const std::string path =
      wasi::FileSystem::normalize(is_relative ? folder_of(base) : kLibraryFolder, specifier);
  for (const std::string_view ending : {"", ".js", "/index.js"}) {
    const std::string file = fmt::format("{}{}", path, ending);
    if (guest.wasi().files().read_file(file).ok()) return guest.js().place(file);
  }
  return refuse(guest, specifier, "not in any library");
}

/// The names a file may have that a program calls `path`: as TypeScript's own tools do, the file
/// that "./a.js" was made from is "./a.ts", and endings are left out.
std::vector<std::string> names_of(const std::string& path) {
  std::vector<std::string> names = {path};
  if (path.ends_with("js")) {
    std::string source = path;
    source[source.size() - 2] = 't';
    if (is_typescript_file(source)) names.push_back(std::move(source));
  }
  for (const std::string_view ending : {".ts", ".js", "/index.ts", "/index.js"}) {
    names.push_back(fmt::format("{}{}", path, ending));
  }
  return names;
}

std::string file_url(std::string_view path) {
  constexpr std::string_view kPlain = "/-._~!$&'()*+,;=:@";
  std::string url = "file://";
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        kPlain.find(c) != std::string_view::npos) {
      url += c;
    } else {
      url += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return url;
}

/// `import.meta` is an empty object of the engine: modules that use it begin by filling it, on the
/// line of their first.
std::string with_meta(std::string_view path, std::string source) {
  if (source.find("import.meta") == std::string::npos) return source;
  const std::string fill =
      fmt::format("import.meta.url = {}; import.meta.filename = {}; import.meta.dirname = {};",
                  boost::json::serialize(boost::json::string(file_url(path))),
                  boost::json::serialize(boost::json::string(path)),
                  boost::json::serialize(boost::json::string(folder_of(path))));
  const std::size_t line_end =
      source.starts_with("#!") ? std::min(source.find('\n'), source.size() - 1) + 1 : 0;
  source.insert(line_end, fill);
  return source;
}

}  // namespace

Result<std::uint32_t> normalize_module(JavaScriptGuest& guest, std::uint32_t base,
                                       std::uint32_t name) {
  const std::string specifier = guest_string(guest, name);
  if (guest.is_loading_realm())
    return normalize_library_module(guest, guest_string(guest, base), specifier);
  const std::string_view bare = specifier.starts_with(kBuiltin)
                                    ? std::string_view(specifier).substr(kBuiltin.size())
                                    : specifier;
  SW_TRY(const bool is_builtin, guest.is_builtin_module(bare));
  if (is_builtin) return guest.js().place(fmt::format("{}{}", kBuiltin, bare));
  std::string_view wanted = specifier;
  if (wanted.starts_with("file://")) wanted.remove_prefix(7);
  if (!wanted.starts_with('/') && !wanted.starts_with("./") && !wanted.starts_with("../")) {
    return refuse(guest, specifier,
                  "no such built-in module, and file paths begin with '/', './' or '../'");
  }
  // A cell lies nowhere; its imports start from the working directory.
  const std::string importer = guest_string(guest, base);
  const std::string_view file = without_mark(importer);
  const std::string_view folder =
      file.starts_with('/') ? folder_of(file) : std::string_view(guest.cwd());
  const std::string path = wasi::FileSystem::normalize(folder, wanted);
  for (const std::string& candidate : names_of(path)) {
    const auto content = guest.wasi().files().read_file(candidate);
    if (!content.ok()) continue;
    SW_TRY(const std::string mark, mark_of(guest.js(), content->bytes));
    return guest.js().place(candidate + mark);
  }
  const auto content = guest.wasi().files().read_file(path);
  return refuse(guest, specifier, wasi::errno_text(content.error()));
}

Result<std::uint32_t> load_module(JavaScriptGuest& guest, std::uint32_t name,
                                  std::uint32_t length) {
  const std::string module = guest_string(guest, name);
  std::string source;
  if (module.starts_with(kBuiltin)) {
    SW_TRY(source, guest.builtin_module_source(std::string_view(module).substr(kBuiltin.size())));
  } else {
    const std::string_view path = without_mark(module);
    const auto content = guest.wasi().files().read_file(path);
    if (!content.ok()) return refuse(guest, path, wasi::errno_text(content.error()));
    SW_TRY(source, valid_text(guest.js(), content->bytes));
    if (path.ends_with(".json")) {
      // it becomes source text, so it must be nothing but JSON
      SW_TRY(const bool valid, guest.is_json(source));
      if (!valid) return std::uint32_t{0};
      if (source.starts_with("\xEF\xBB\xBF")) source.erase(0, 3);
      source.insert(0, "export default ");
      source += ';';
    } else if (guest.is_loading_realm()) {
      SW_TRY(auto tuned, guest.tune_module(path, source));
      if (!tuned) return std::uint32_t{0};
      source = *std::move(tuned);
    } else if (is_typescript_file(path)) {
      SW_TRY(Stripped stripped, guest.strip_types(source, true));
      if (stripped.kind != Stripped::Kind::kJavaScript) {
        SW_CHECK_OK(
            guest.throw_module_error(fmt::format("{}:{}: {}", path, stripped.line, stripped.text)));
        return std::uint32_t{0};
      }
      source = with_meta(path, std::move(stripped.text));
    } else {
      source = with_meta(path, std::move(source));
    }
  }
  if (!guest.memory().store(length, static_cast<std::uint32_t>(source.size()))) {
    return Error{ErrorCode::kCorrupt, "the guest gave an address outside its memory", 0};
  }
  return guest.js().place(source);
}

}  // namespace sw::engine::javascript
