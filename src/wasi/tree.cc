// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/tree.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sandbox_workers/base/utf8.h"
#include "wasi/tree_journal.h"

namespace sw::wasi {
namespace {

bool is_directory(const Node& node) { return node.type == FileType::kDirectory; }

/// How many directories lie in one another below and including `node`. Stops counting at `enough`.
std::uint32_t height(const Node& node, std::uint32_t enough) {
  if (!is_directory(node)) return 0;
  std::uint32_t below = 0;
  (void)node.directory->for_each(0, [&](std::string_view, const Directory::Entry& entry) {
    if (enough > 1) below = std::max(below, height(*entry.node, enough - 1));
    return below < enough;
  });
  return below + 1;
}

bool is_below_or_same(const Node* node, const Node& ancestor) {
  for (; node != nullptr; node = node->parent) {
    if (node == &ancestor) return true;
  }
  return false;
}

}  // namespace

Errno name_error(std::string_view name) {
  if (name.empty()) return Errno::kNoent;
  if (name.size() > kNameBytesMax) return Errno::kNametoolong;
  if (name.find('\0') != std::string_view::npos || name.find('/') != std::string_view::npos)
    return Errno::kInval;
  return first_invalid_utf8(name) ? Errno::kIlseq : Errno::kSuccess;
}

Tree::Tree(const TreeLimits& limits, std::uint64_t now_ns)
    : limits_(limits), root_(make_node(FileType::kDirectory, now_ns)) {
  root_->links = 2;
}

Tree::~Tree() = default;

std::shared_ptr<Node> Tree::make_node(FileType type, std::uint64_t now_ns) {
  auto node = std::make_shared<Node>(type);
  node->inode = next_inode_++;
  node->times = Timestamps::all(now_ns);
  node->usage = &usage_;
  if (type == FileType::kDirectory) node->directory = std::make_unique<Directory>();
  return node;
}

Errno Tree::writable() const {
  if (disabled_) return Errno::kAcces;
  return read_only_ ? Errno::kRofs : Errno::kSuccess;
}

Errno Tree::room_for_entry() const {
  return usage_.entries < limits_.entries_max ? Errno::kSuccess : Errno::kNospc;
}

Errno Tree::room_for_depth(const Node& directory, std::uint32_t levels) const {
  for (const Node* node = directory.parent; node != nullptr; node = node->parent) ++levels;
  return levels <= limits_.depth_max ? Errno::kSuccess : Errno::kNametoolong;
}

/// A node, or its times, changed.
void Tree::note(Node& node) noexcept {
  if (journal_) journal_->note(node);
}

/// A name came or went.
void Tree::note_name(const Node& directory, std::string_view name) noexcept {
  if (journal_) journal_->note_name(directory, name);
}

void Tree::attach(Node& directory, std::string_view name, std::shared_ptr<Node> node,
                  std::uint64_t now_ns) {
  Node& attached = *node;
  attached.names.push_back({.directory = &directory});  // may throw: nothing has changed yet
  try {
    attached.names.back().name = &directory.directory->insert(name, std::move(node));
  } catch (...) {
    attached.names.pop_back();
    throw;
  }
  if (is_directory(attached)) {
    attached.parent = &directory;
    ++directory.links;
  }
  attached.times.changed = now_ns;
  ++usage_.entries;
  directory.times.modified = directory.times.changed = now_ns;
  note_name(directory, name);
  note(attached);
  note(directory);
}

void Tree::detach(Node& directory, std::string_view name, std::uint64_t now_ns) {
  const auto found = directory.directory->find(name);
  Node& node = *(*found)->node;
  node.times.changed = now_ns;
  std::erase_if(node.names, [&](const Node::Name& known) {
    return known.directory == &directory && *known.name == name;
  });
  note_name(directory, name);
  note(node);
  note(directory);
  if (is_directory(node)) {
    node.parent = nullptr;
    node.links = 0;
    --directory.links;
  } else {
    --node.links;
  }
  directory.directory->erase(name);  // the node may die here
  --usage_.entries;
  directory.times.modified = directory.times.changed = now_ns;
}

ErrnoOr<std::shared_ptr<Node>> Tree::create(Node& directory, std::string_view name, FileType type,
                                            std::uint64_t now_ns) {
  SW_WASI_CHECK(name_error(name));
  SW_WASI_TRY(const Directory::Entry* const existing, directory.directory->find(name));
  if (existing) return Errno::kExist;
  SW_WASI_CHECK(writable());
  if (directory.links == 0) return Errno::kNoent;  // removed, but still open
  SW_WASI_CHECK(room_for_entry());
  if (type == FileType::kDirectory) SW_WASI_CHECK(room_for_depth(directory, 1));
  auto node = make_node(type, now_ns);
  if (type == FileType::kDirectory) node->links = 2;
  attach(directory, name, node, now_ns);
  return node;
}

ErrnoOr<std::shared_ptr<Node>> Tree::create_symlink(Node& directory, std::string_view name,
                                                    std::string_view target, std::uint64_t now_ns) {
  if (target.empty()) return Errno::kNoent;
  if (target.size() >= kPathBytesMax) return Errno::kNametoolong;
  if (target.find('\0') != std::string_view::npos) return Errno::kInval;
  if (first_invalid_utf8(target)) return Errno::kIlseq;
  if (usage_.bytes + target.size() > limits_.tree_bytes_max) return Errno::kNospc;
  std::string kept(target);  // before the link exists, in case there is no memory for it
  SW_WASI_TRY(auto node, create(directory, name, FileType::kSymbolicLink, now_ns));
  node->target = std::move(kept);
  usage_.bytes += target.size();
  return node;
}

Errno Tree::link(Node& directory, std::string_view name, std::shared_ptr<Node> node,
                 std::uint64_t now_ns) {
  SW_WASI_CHECK(name_error(name));
  if (is_directory(*node)) return Errno::kPerm;
  SW_WASI_TRY(const Directory::Entry* const existing, directory.directory->find(name));
  if (existing) return Errno::kExist;
  SW_WASI_CHECK(writable());
  if (directory.links == 0 || node->links == 0) return Errno::kNoent;
  SW_WASI_CHECK(room_for_entry());
  Node& linked = *node;
  attach(directory, name, std::move(node), now_ns);
  ++linked.links;
  return Errno::kSuccess;
}

Errno Tree::unlink(Node& directory, std::string_view name, std::uint64_t now_ns) {
  SW_WASI_TRY(const Directory::Entry* const found, directory.directory->find(name));
  if (!found) return Errno::kNoent;
  if (is_directory(*found->node)) return Errno::kIsdir;
  SW_WASI_CHECK(writable());
  detach(directory, name, now_ns);
  return Errno::kSuccess;
}

Errno Tree::remove_directory(Node& directory, std::string_view name, std::uint64_t now_ns) {
  SW_WASI_TRY(const Directory::Entry* const found, directory.directory->find(name));
  if (!found) return Errno::kNoent;
  if (!is_directory(*found->node)) return Errno::kNotdir;
  if (found->node->mount >= 0) return Errno::kBusy;
  SW_WASI_CHECK(writable());
  if (!found->node->directory->empty()) return Errno::kNotempty;
  detach(directory, name, now_ns);
  return Errno::kSuccess;
}

Errno Tree::remove_all(Node& directory, std::string_view name, std::uint64_t now_ns) {
  SW_WASI_TRY(const Directory::Entry* const found, directory.directory->find(name));
  if (!found) return Errno::kNoent;
  if (found->node->mount >= 0) return Errno::kBusy;
  SW_WASI_CHECK(writable());
  const std::shared_ptr<Node> node = found->node;
  if (is_directory(*node)) {
    std::vector<std::string> names;
    SW_WASI_CHECK(
        node->directory->for_each(0, [&](std::string_view child, const Directory::Entry&) {
          names.emplace_back(child);
          return true;
        }));
    for (const std::string& child : names) SW_WASI_CHECK(remove_all(*node, child, now_ns));
  }
  detach(directory, name, now_ns);
  return Errno::kSuccess;
}

Errno Tree::replace(Node& moved, Node& to, std::string_view to_name, Node& replaced,
                    std::uint64_t now_ns) {
  if (is_directory(moved)) {
    if (!is_directory(replaced)) return Errno::kNotdir;
    if (replaced.mount >= 0) return Errno::kBusy;
    if (!replaced.directory->empty()) return Errno::kNotempty;
  } else if (is_directory(replaced)) {
    return Errno::kIsdir;
  }
  SW_WASI_CHECK(writable());
  detach(to, to_name, now_ns);
  return Errno::kSuccess;
}

Errno Tree::rename(Node& from, std::string_view from_name, Node& to, std::string_view to_name,
                   std::uint64_t now_ns) {
  SW_WASI_TRY(const Directory::Entry* const source, from.directory->find(from_name));
  if (!source) return Errno::kNoent;
  const std::shared_ptr<Node> moved = source->node;
  SW_WASI_CHECK(name_error(to_name));
  if (moved->mount >= 0) return Errno::kBusy;
  if (is_directory(*moved) && is_below_or_same(&to, *moved)) return Errno::kInval;
  SW_WASI_TRY(const Directory::Entry* const target, to.directory->find(to_name));
  if (target && target->node == moved) return writable();  // two names of one file: both stay
  if (target && is_below_or_same(&from, *target->node)) return Errno::kNotempty;
  SW_WASI_CHECK(writable());
  if (to.links == 0) return Errno::kNoent;
  if (is_directory(*moved) && &from != &to) {
    SW_WASI_CHECK(room_for_depth(to, height(*moved, limits_.depth_max + 1)));
  }
  const auto name = std::ranges::find_if(moved->names, [&](const Node::Name& known) {
    return known.directory == &from && *known.name == from_name;
  });
  // All the memory that is needed, before the first change.
  std::string new_name(to_name);
  Directory::Slot slot = Directory::reserve(to_name);
  if (target) SW_WASI_CHECK(replace(*moved, to, to_name, *target->node, now_ns));
  if (name != moved->names.end()) name->directory = &to;
  if (&from == &to) {
    from.directory->rename(from_name, std::move(new_name));
  } else {
    to.directory->move_in(*from.directory, from_name, std::move(slot));
    if (is_directory(*moved)) {
      moved->parent = &to;
      --from.links;
      ++to.links;
    }
  }
  for (Node* const node : {&from, &to}) node->times.modified = node->times.changed = now_ns;
  moved->times.changed = now_ns;
  note_name(from, from_name);
  note_name(to, to_name);
  for (Node* const node : {&from, &to, moved.get()}) note(*node);
  return Errno::kSuccess;
}

ErrnoOr<std::size_t> Tree::write(Node& file, std::uint64_t offset, BytesView bytes,
                                 std::uint64_t now_ns) {
  SW_WASI_CHECK(writable());
  if (bytes.empty()) return std::size_t{0};
  const std::uint64_t old_size = file.content.size();
  if (offset >= limits_.file_bytes_max) return Errno::kFbig;
  const std::uint64_t free =
      limits_.tree_bytes_max - std::min(limits_.tree_bytes_max, usage_.bytes);
  const std::uint64_t end_max =
      std::min(limits_.file_bytes_max, old_size + std::min(free, UINT64_MAX - old_size));
  if (offset >= end_max) return Errno::kNospc;
  bytes = bytes.first(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), end_max - offset)));
  SW_WASI_CHECK(file.content.write(offset, bytes));
  usage_.bytes += file.content.size() - old_size;
  file.times.modified = file.times.changed = now_ns;
  note(file);
  return bytes.size();
}

Errno Tree::room_for_size(const Node& file, std::uint64_t size) const {
  const std::uint64_t old_size = file.content.size();
  if (size <= old_size) return Errno::kSuccess;
  if (size > limits_.file_bytes_max) return Errno::kFbig;
  const std::uint64_t free =
      limits_.tree_bytes_max - std::min(limits_.tree_bytes_max, usage_.bytes);
  return size - old_size <= free ? Errno::kSuccess : Errno::kNospc;
}

Errno Tree::reserve(Node& file, std::uint64_t size) {
  SW_WASI_CHECK(writable());
  SW_WASI_CHECK(room_for_size(file, size));
  return size > file.content.size() ? file.content.reserve(size) : Errno::kSuccess;
}

Errno Tree::resize(Node& file, std::uint64_t size, std::uint64_t now_ns) {
  SW_WASI_CHECK(writable());
  SW_WASI_CHECK(room_for_size(file, size));
  const std::uint64_t old_size = file.content.size();
  SW_WASI_CHECK(file.content.resize(size));
  usage_.bytes = usage_.bytes - old_size + size;
  file.times.modified = file.times.changed = now_ns;
  note(file);
  return Errno::kSuccess;
}

Errno Tree::replace_content(Node& file, std::uint64_t size, std::uint64_t now_ns) {
  SW_WASI_CHECK(writable());
  const std::uint64_t rest = usage_.bytes - file.content.size();
  if (size > limits_.file_bytes_max) return Errno::kFbig;
  if (rest + size > limits_.tree_bytes_max) return Errno::kNospc;
  usage_.bytes = rest + size;
  file.times.modified = file.times.changed = now_ns;
  note(file);
  return Errno::kSuccess;
}

Errno Tree::set_content(Node& file, SharedBytes bytes, std::uint64_t now_ns) {
  SW_WASI_CHECK(replace_content(file, bytes.bytes.size(), now_ns));
  file.content.borrow(std::move(bytes));
  return Errno::kSuccess;
}

Errno Tree::set_content(Node& file, Bytes bytes, std::uint64_t now_ns) {
  auto owned = std::make_shared<Bytes>(std::move(bytes));
  SW_WASI_CHECK(replace_content(file, owned->size(), now_ns));
  file.content.adopt(std::move(owned));
  return Errno::kSuccess;
}

void Tree::set_times(Node& node, const Timestamps& times) {
  node.times = times;
  note(node);
}

ErrnoOr<std::shared_ptr<Node>> Tree::create_unnamed_file(BytesView content,
                                                         const Timestamps& times) {
  if (content.size() > limits_.file_bytes_max) return Errno::kFbig;
  if (content.size() > limits_.tree_bytes_max - std::min(limits_.tree_bytes_max, usage_.bytes))
    return Errno::kNospc;
  auto node = make_node(FileType::kRegularFile, times.changed);
  node->links = 0;
  SW_WASI_CHECK(node->content.write(0, content));
  usage_.bytes += content.size();
  node->times = times;
  return node;
}

namespace {

Errno walk_below(const Node& directory, std::string& path, const Tree::Visit& visit) {
  Errno result = Errno::kSuccess;
  const Errno listed =
      directory.directory->for_each(0, [&](std::string_view name, const Directory::Entry& entry) {
        const std::size_t length = path.size();
        if (length != 0) path += '/';
        path += name;
        if (visit(path, *entry.node) && entry.node->has_children())
          result = walk_below(*entry.node, path, visit);
        path.resize(length);
        return result == Errno::kSuccess;
      });
  return listed != Errno::kSuccess ? listed : result;
}

}  // namespace

Errno Tree::walk(const Visit& visit) const { return walk(*root_, {}, visit); }

Errno Tree::walk(const Node& directory, std::string path, const Visit& visit) {
  return walk_below(directory, path, visit);
}

const TreeState& Tree::state() {
  if (!journal_) journal_ = std::make_unique<TreeJournal>();
  return journal_->state(*this);
}

}  // namespace sw::wasi
