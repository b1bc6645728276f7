// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The half of FileSystem that the host's side uses: absolute paths, whole files.

#include <algorithm>
#include <utility>

#include "base/pieces.h"
#include "sandbox_workers/wasi/file_system.h"

namespace sw::wasi {

std::string FileSystem::normalize(std::string_view directory, std::string_view path) {
  std::vector<std::string_view> parts;
  const auto add = [&parts](std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('/'), text.size());
      const std::string_view part = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (part.empty() || part == ".") continue;
      if (part != "..") parts.push_back(part);
      else if (!parts.empty()) parts.pop_back();
    }
  };
  if (path.empty() || path.front() != '/') add(directory);
  add(path);
  std::string result;
  for (const std::string_view part : parts) result.append("/").append(part);
  return result.empty() ? "/" : result;
}

ErrnoOr<std::string_view> FileSystem::below_root(std::string_view path) {
  if (path.empty()) return Errno::kNoent;
  if (path.front() != '/') return Errno::kInval;
  if (path.size() > kPathBytesMax) return Errno::kNametoolong;
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return path.empty() ? "." : path;
}

ErrnoOr<SharedBytes> FileSystem::read_file(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  SW_WASI_TRY(const Place place, find_at(root(), below, Follow::kYes));
  switch (place.node->type) {
    case FileType::kRegularFile: return place.node->content.share();
    case FileType::kDirectory: return Errno::kIsdir;
    default:
      if (place.node->device == Device::kNull) return SharedBytes::own({});
      return Errno::kInval;  // an endless device, or a stream that belongs to the guest
  }
}

Result<Errno> FileSystem::append(const NodeRef& file, BytesView bytes,
                                 const Cancellation* cancellation) {
  const std::uint64_t size = file.node->size();
  Errno failed = Errno::kSuccess;
  SW_CHECK_OK(in_pieces(cancellation, bytes, [&](BytesView piece) -> Result<bool> {
    const auto written = file.tree->write(*file.node, file.node->size(), piece, now_ns());
    failed = written.error();
    return written.ok() && *written == piece.size();
  }));
  if (file.node->size() == size + bytes.size()) return Errno::kSuccess;
  if (failed != Errno::kSuccess && file.node->size() == size) return failed;
  SW_WASI_CHECK(file.tree->resize(*file.node, size, now_ns()));
  return size + bytes.size() > file.tree->limits().file_bytes_max ? Errno::kFbig : Errno::kNospc;
}

Errno FileSystem::write_file(std::string_view path, BytesView bytes, WriteMode mode) {
  return *write_file(path, bytes, mode, nullptr);
}

Result<Errno> FileSystem::write_file(std::string_view path, BytesView bytes, WriteMode mode,
                                     const Cancellation* cancellation) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  OpenFlags flags{.create = true, .write = true, .follow = Follow::kYes};
  flags.exclusive = mode == WriteMode::kCreateNew;
  SW_WASI_TRY(const NodeRef file, open_at(root(), below, flags));
  if (file.node->type == FileType::kCharacterDevice) {
    const bool swallows = file.node->device == Device::kNull || file.node->device == Device::kZero;
    return swallows ? Errno::kSuccess : Errno::kInval;
  }
  if (mode == WriteMode::kAppend) return append(file, bytes, cancellation);
  if (bytes.size() > file.tree->limits().file_bytes_max) return Errno::kFbig;
  Bytes content;
  content.reserve(bytes.size());
  SW_CHECK_OK(in_pieces(cancellation, bytes, [&](BytesView piece) {
    content.insert(content.end(), piece.begin(), piece.end());
  }));
  return file.tree->set_content(*file.node, std::move(content), now_ns());
}

ErrnoOr<std::vector<DirectoryEntry>> FileSystem::read_directory(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  SW_WASI_TRY(const Place place, find_at(root(), below, Follow::kYes));
  if (place.node->type != FileType::kDirectory) return Errno::kNotdir;
  std::vector<DirectoryEntry> entries;
  SW_WASI_CHECK(
      place.node->directory->for_each(0, [&](std::string_view name, const Directory::Entry& entry) {
        entries.push_back({std::string(name), entry.node->type, entry.node->inode});
        return true;
      }));
  return entries;
}

ErrnoOr<Stat> FileSystem::stat(std::string_view path, Follow follow) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  return stat_at(root(), below, follow);
}

Errno FileSystem::make_directory(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  return make_directory_at(root(), below);
}

Errno FileSystem::make_directories(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  for (std::size_t end = 0; end < below.size();) {
    end = std::min(below.find('/', end + 1), below.size());
    const std::string_view part = below.substr(0, end);
    const Errno made = make_directory_at(root(), part);
    if (made == Errno::kSuccess) continue;
    if (made != Errno::kExist) return made;
    SW_WASI_TRY(const Stat there, stat_at(root(), part, Follow::kYes));
    if (there.type != FileType::kDirectory)
      return end == below.size() ? Errno::kExist : Errno::kNotdir;
  }
  return Errno::kSuccess;
}

Errno FileSystem::remove(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  const Errno unlinked = unlink_at(root(), below);
  return unlinked == Errno::kIsdir ? remove_directory_at(root(), below) : unlinked;
}

Errno FileSystem::remove_all(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  SW_WASI_TRY(const Found found, resolve(root(), below, Final::kName));
  if (found.last != Last::kName) return Errno::kBusy;
  if (!found.node) return Errno::kNoent;
  if (found.trailing_slash && found.node.node->type != FileType::kDirectory) return Errno::kNotdir;
  return tree_of(found.parent.mount)->remove_all(*found.parent.node, found.name, now_ns());
}

Errno FileSystem::rename(std::string_view from, std::string_view to) {
  SW_WASI_TRY(const std::string_view source, below_root(from));
  SW_WASI_TRY(const std::string_view target, below_root(to));
  return rename_at(root(), source, root(), target);
}

Errno FileSystem::copy_file(std::string_view from, std::string_view to, WriteMode mode) {
  SW_WASI_TRY(const SharedBytes bytes, read_file(from));
  SW_WASI_TRY(const std::string_view target, below_root(to));
  if (mode == WriteMode::kAppend) return write_file(to, bytes.bytes, mode);
  OpenFlags flags{.create = true, .write = true, .follow = Follow::kYes};
  flags.exclusive = mode == WriteMode::kCreateNew;
  SW_WASI_TRY(const NodeRef file, open_at(root(), target, flags));
  if (file.node->type != FileType::kRegularFile) return write_file(to, bytes.bytes);
  // Both files share the bytes until one of them is written to.
  return file.tree->set_content(*file.node, bytes, now_ns());
}

Errno FileSystem::truncate(std::string_view path, std::uint64_t size) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  SW_WASI_TRY(const NodeRef file, open_at(root(), below, {.write = true, .follow = Follow::kYes}));
  if (file.node->type != FileType::kRegularFile) return Errno::kInval;
  return file.tree->resize(*file.node, size, now_ns());
}

Errno FileSystem::symlink(std::string_view target, std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  return symlink_at(target, root(), below);
}

Errno FileSystem::link(std::string_view from, std::string_view to) {
  SW_WASI_TRY(const std::string_view source, below_root(from));
  SW_WASI_TRY(const std::string_view target, below_root(to));
  return link_at(root(), source, Follow::kNo, root(), target);
}

ErrnoOr<std::string> FileSystem::read_link(std::string_view path) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  return readlink_at(root(), below);
}

Errno FileSystem::set_file_times(std::string_view path, const NewTimes& times) {
  SW_WASI_TRY(const std::string_view below, below_root(path));
  return set_times_at(root(), below, Follow::kYes, times);
}

}  // namespace sw::wasi
