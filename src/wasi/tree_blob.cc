// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Writing out and reading back what is in a tree (docs/formats/session.md).

#include <algorithm>

#include "wasi/byte_stream.h"
#include "wasi/tree_state.h"

namespace sw::wasi {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kEntryBytesMin = 1 + 3 * 8 + 2 * 8;

bool is_kept(FileType type) {
  return type == FileType::kRegularFile || type == FileType::kDirectory ||
         type == FileType::kSymbolicLink;
}

}  // namespace

bool is_path(std::string_view path) {
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (name == "." || name == ".." || name_error(name) != Errno::kSuccess) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::uint64_t TreeState::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [path, entry] : entries_) {
    bytes += kEntryBytesMin + path.size() + entry.bytes.bytes.size() + entry.target.size();
  }
  return bytes;
}

Bytes TreeState::serialize() const {
  ByteWriter out;
  out.put(kVersion);
  out.put(static_cast<std::uint32_t>(std::ranges::count_if(
      entries_, [](const auto& named) { return is_kept(named.second.type); })));
  for (const auto& [path, entry] : entries_) {
    if (!is_kept(entry.type)) continue;
    out.put(static_cast<std::uint8_t>(entry.type));
    out.put(entry.times.accessed);
    out.put(entry.times.modified);
    out.put(entry.times.changed);
    out.put_text(path);
    if (entry.type == FileType::kSymbolicLink) out.put_text(entry.target);
    else out.put_bytes(entry.bytes.bytes);
  }
  return out.take();
}

Result<TreeState> TreeState::parse(BytesView blob) {
  ByteReader in(blob);
  const Error corrupt{ErrorCode::kCorrupt, "saved files: invalid", 0};
  if (in.get<std::uint8_t>() != kVersion) return corrupt;
  std::vector<std::pair<std::string, Entry>> entries;
  for (std::uint32_t left = in.get_count(kEntryBytesMin); left != 0; --left) {
    Entry entry;
    entry.type = static_cast<FileType>(in.get<std::uint8_t>());
    entry.times.accessed = in.get<std::uint64_t>();
    entry.times.modified = in.get<std::uint64_t>();
    entry.times.changed = in.get<std::uint64_t>();
    std::string path = in.get_text();
    const BytesView content = in.get_bytes();
    if (!in.good() || !is_kept(entry.type) || !is_path(path)) return corrupt;
    if (entry.type == FileType::kSymbolicLink) entry.target = as_text(content);
    else if (entry.type == FileType::kRegularFile)
      entry.bytes = SharedBytes::own({content.begin(), content.end()});
    entries.emplace_back(std::move(path), std::move(entry));
  }
  if (!in.good() || !in.at_end()) return corrupt;
  return TreeState(Entries(std::move(entries)));
}

}  // namespace sw::wasi
