// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/archive.h"

#include <fmt/core.h>
#include <zip.h>

#include <set>
#include <utility>

#include "base/thread_safety.h"

namespace sw::wasi {
namespace {

struct Discard {
  void operator()(zip_t* zip) const { zip_discard(zip); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using ZipHandle = std::unique_ptr<zip_t, Discard>;
using ZipFileHandle = std::unique_ptr<zip_file_t, Discard>;

// Guests see these inode numbers, so they must not depend on what was looked at first.
constexpr std::uint64_t kNestedInodes = std::uint64_t{1} << 32;
constexpr std::uint64_t kArchiveInodes = std::uint64_t{1} << 33;

Error corrupt(std::string what) { return Error{ErrorCode::kCorrupt, std::move(what), 0}; }

/// The parts of a member's name; empty when it could lead anywhere but below its folder.
std::vector<std::string_view> plain_parts(std::string_view name) {
  std::vector<std::string_view> parts;
  if (!name.empty() && name.back() == '/') name.remove_suffix(1);
  for (bool more = true; more;) {
    const std::size_t slash = name.find('/');
    more = slash != std::string_view::npos;
    const std::string_view part = name.substr(0, slash);
    if (name_error(part) != Errno::kSuccess || part == "." || part == "..") return {};
    parts.push_back(part);
    if (more) name.remove_prefix(slash + 1);
  }
  return parts;
}

}  // namespace

struct Archive::State {
  State(SharedBytes all, ZipHandle opened) : bytes(std::move(all)), zip(std::move(opened)) {}

  const SharedBytes bytes;  // the archive's own, which `zip` reads
  Mutex mutex;
  ZipHandle zip SW_GUARDED_BY(mutex);  // libzip's handles are for one thread
};

Archive::Archive(std::unique_ptr<State> state) : state_(std::move(state)) {}
Archive::~Archive() = default;

Result<std::shared_ptr<Archive>> Archive::open(SharedBytes bytes) {
  // libzip takes no bytes for an archive without members.
  if (bytes.bytes.empty()) return corrupt("not a zip archive: it is empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source =
      zip_source_buffer_create(bytes.bytes.data(), bytes.bytes.size(), 0, &error);
  ZipHandle zip(source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr);
  if (!zip) {
    if (source) zip_source_free(source);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    return corrupt(fmt::format("not a zip archive: {}", why));
  }
  zip_error_fini(&error);
  auto state = std::make_unique<State>(std::move(bytes), std::move(zip));
  return std::shared_ptr<Archive>(new Archive(std::move(state)));  // the constructor is private
}

std::vector<Archive::Member> Archive::members() const {
  const MutexLock lock(state_->mutex);
  std::vector<Member> members;
  const zip_int64_t count = zip_get_num_entries(state_->zip.get(), 0);
  members.reserve(static_cast<std::size_t>(count));
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(state_->zip.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0) continue;
    members.push_back({stat.name, stat.index, stat.size});
  }
  return members;
}

Result<Bytes> Archive::read(std::string_view name) const {
  Member member{std::string(name), 0, 0};
  {
    const MutexLock lock(state_->mutex);
    zip_stat_t stat;
    if (zip_stat(state_->zip.get(), member.name.c_str(), 0, &stat) != 0) {
      return Error{ErrorCode::kNotFound, fmt::format("the archive has no member {}", name), 0};
    }
    member.index = stat.index;
    member.size = stat.size;
  }
  return read(member);
}

Result<Bytes> Archive::read(const Member& member) const {
  const MutexLock lock(state_->mutex);
  ZipFileHandle file(zip_fopen_index(state_->zip.get(), member.index, 0));
  if (!file) return corrupt(fmt::format("{}: {}", member.name, zip_strerror(state_->zip.get())));
  // Grown as it is read: the size that a damaged archive gives may be anything. The end must be
  // reached, for the checksum is compared there.
  Bytes bytes;
  Bytes block(65536);
  for (;;) {
    const zip_int64_t count = zip_fread(file.get(), block.data(), block.size());
    if (count == 0 && bytes.size() == member.size) return bytes;
    if (count <= 0 || static_cast<std::uint64_t>(count) > member.size - bytes.size()) break;
    bytes.insert(bytes.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return corrupt(fmt::format("{}: damaged in the archive", member.name));
}

Result<void> Archive::fill(Directory& directory, Node* owner, std::uint64_t first_inode) {
  for (const Member& member : members()) {
    const auto parts = plain_parts(member.name);
    if (parts.empty())
      return corrupt(fmt::format("the archive's member {} is not a plain path", member.name));
    const bool is_folder = member.name.back() == '/';
    Directory* at = &directory;
    Node* parent = owner;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool is_file = i + 1 == parts.size() && !is_folder;
      const auto found = at->find(parts[i]);
      if (!found.ok()) return corrupt("the archive's folder is not ready");
      if (*found) {
        Node& node = *(*found)->node;
        if (is_file || !node.directory)
          return corrupt(fmt::format("the archive contains {} twice", member.name));
        parent = &node;
        at = node.directory.get();
        continue;
      }
      const auto type = is_file ? FileType::kRegularFile : FileType::kDirectory;
      auto node = LayoutBuilder::make_node(type, first_inode++);
      if (is_file) {
        node->content.borrow(std::make_shared<LazyBytes>(
            member.size, [self = shared_from_this(), member] { return self->read(member); }));
      } else {
        node->parent = parent;
        node->links = 2;
      }
      Node* const made = node.get();
      at->insert(parts[i], std::move(node));
      if (is_file) break;
      parent = made;
      at = made->directory.get();
    }
  }
  return {};
}

Result<void> add_archive(LayoutBuilder& builder, std::string_view path, SharedBytes bytes) {
  SW_TRY(auto archive, Archive::open(std::move(bytes)));
  return builder.add_lazy_directory(
      path, [archive = std::move(archive)](Node& owner) -> Result<Directory> {
        Directory directory;
        SW_CHECK_OK(archive->fill(directory, &owner, kArchiveInodes));
        return directory;
      });
}

Result<void> add_nested_archive(LayoutBuilder& builder, std::string_view path, SharedBytes outer,
                                std::string member) {
  return builder.add_lazy_directory(
      path,
      [outer = std::move(outer), member = std::move(member)](Node& owner) -> Result<Directory> {
        SW_TRY(const auto archive, Archive::open(outer));
        SW_TRY(Bytes inner_bytes, archive->read(member));
        SW_TRY(const auto inner, Archive::open(SharedBytes::own(std::move(inner_bytes))));
        Directory directory;
        SW_CHECK_OK(inner->fill(directory, &owner, kNestedInodes));
        return directory;
      });
}

}  // namespace sw::wasi
