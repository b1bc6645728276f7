// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Writing out and reading back the open files (docs/formats/descriptors.md).

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "wasi/byte_stream.h"
#include "wasi/descriptors.h"

namespace sw::wasi {
namespace {

constexpr std::uint32_t kMagic = 0x44465753;  // "SWFD"
constexpr std::uint16_t kVersion = 1;
constexpr std::uint32_t kDescriptorsMax = 1U << 20;

enum class Kind : std::uint8_t { kStream = 0, kNamed = 1, kUnnamed = 2, kStale = 3 };

Error corrupt(std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("saved descriptors: {}", what), 0};
}

class Writer {
 public:
  explicit Writer(FileSystem& files) : files_(files) {}

  Result<Bytes> write(const std::vector<std::shared_ptr<OpenFile>>& slots);

 private:
  void find_paths(const std::vector<const OpenFile*>& open);
  std::optional<std::string> path_of(const OpenFile& file);
  Result<void> put_file(const OpenFile& file);
  void put_named(const OpenFile& file, const std::string& path);
  Result<void> put_unnamed(const OpenFile& file);

  FileSystem& files_;
  ByteWriter out_;
  ByteWriter unnamed_;
  std::map<const Node*, std::uint32_t> unnamed_index_;
  // of the open nodes that have one; empty: not found yet
  std::unordered_map<const Node*, std::string> paths_;
  std::set<const Node*> listed_;  // directories whose order has been written
};

/// Each tree is searched once, however many of its files are open: a guest may have opened many of
/// very many.
void Writer::find_paths(const std::vector<const OpenFile*>& open) {
  std::set<std::int32_t> mounts;
  for (const OpenFile* file : open) {
    if (file->stale || file->is_stream() || file->at.mount < 0) continue;
    mounts.insert(files_.layout().tree_number(file->at.mount));
    paths_.try_emplace(file->at.node.get());
  }
  for (const std::int32_t mount : mounts) {
    Tree& tree = *files_.tree_of(mount);
    const auto found =
        files_.canonical_path({files_.tree_of(mount), tree.root().shared_from_this(), mount});
    const std::string prefix = found.ok() && *found != "/" ? *found : "";
    const auto note = [&](const Node& node, const std::string& path) {
      const auto wanted = paths_.find(&node);
      if (wanted != paths_.end() && wanted->second.empty()) wanted->second = path;
    };
    note(tree.root(), prefix.empty() ? "/" : prefix);
    (void)tree.walk([&](const std::string& path, Node& node) {
      note(node, prefix + "/" + path);
      return true;
    });
  }
}

std::optional<std::string> Writer::path_of(const OpenFile& file) {
  if (file.at.mount < 0) {
    auto path = files_.canonical_path(file.at);
    return path.ok() ? std::optional(*std::move(path)) : std::nullopt;
  }
  const auto found = paths_.find(file.at.node.get());
  if (found == paths_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

void Writer::put_named(const OpenFile& file, const std::string& path) {
  out_.put(static_cast<std::uint8_t>(Kind::kNamed));
  out_.put_text(path);
  out_.put(static_cast<std::uint8_t>(file.type()));
  // A guest that is listing a directory remembers an order number: it must mean the same entry
  // afterwards.
  const bool ordered = file.type() == FileType::kDirectory && !file.at.tree->read_only() &&
                       listed_.insert(file.at.node.get()).second;
  const Directory* const directory = ordered ? file.at.node->directory.get() : nullptr;
  out_.put(static_cast<std::uint32_t>(directory ? directory->size() : 0));
  out_.put(directory ? directory->next_order() : std::uint64_t{0});
  if (!directory) return;
  (void)directory->for_each(0, [&](std::string_view name, const Directory::Entry& entry) {
    out_.put(entry.order);
    out_.put_text(name);
    return true;
  });
}

Result<void> Writer::put_unnamed(const OpenFile& file) {
  Node& node = *file.at.node;
  const auto [at, is_new] =
      unnamed_index_.try_emplace(&node, static_cast<std::uint32_t>(unnamed_index_.size()));
  out_.put(static_cast<std::uint8_t>(Kind::kUnnamed));
  out_.put(at->second);
  if (!is_new) return {};
  const auto content = node.content.view();
  if (!content.ok()) return Error{ErrorCode::kInternal, "an open file cannot be read", 0};
  unnamed_.put(files_.layout().tree_number(file.at.mount));
  unnamed_.put(node.times.accessed);
  unnamed_.put(node.times.modified);
  unnamed_.put(node.times.changed);
  unnamed_.put_bytes(*content);
  return {};
}

Result<void> Writer::put_file(const OpenFile& file) {
  out_.put(file.flags);
  out_.put(file.position);
  out_.put(file.base);
  out_.put(file.inheriting);
  out_.put_text(file.preopen);
  if (file.is_stream() && !file.stale) {
    out_.put(static_cast<std::uint8_t>(Kind::kStream));
    out_.put(static_cast<std::uint8_t>(file.device));
    return {};
  }
  if (!file.stale) {
    if (const auto path = path_of(file)) {
      put_named(file, *path);
      return {};
    }
    if (file.type() == FileType::kRegularFile) return put_unnamed(file);
  }
  // also a removed directory: there is nothing left in it
  out_.put(static_cast<std::uint8_t>(Kind::kStale));
  return {};
}

Result<Bytes> Writer::write(const std::vector<std::shared_ptr<OpenFile>>& slots) {
  std::map<const OpenFile*, std::uint32_t> index;
  std::vector<const OpenFile*> distinct;
  std::uint32_t open = 0;
  for (const auto& slot : slots) {
    if (!slot) continue;
    ++open;
    if (index.try_emplace(slot.get(), static_cast<std::uint32_t>(distinct.size())).second) {
      distinct.push_back(slot.get());
    }
  }
  find_paths(distinct);
  for (const OpenFile* file : distinct) SW_CHECK_OK(put_file(*file));
  ByteWriter all;
  all.put(kMagic);
  all.put(kVersion);
  all.put(static_cast<std::uint32_t>(unnamed_index_.size()));
  all.put_bytes(unnamed_.take());
  all.put(static_cast<std::uint32_t>(distinct.size()));
  all.put_bytes(out_.take());
  all.put(open);
  for (std::uint32_t number = 0; number < slots.size(); ++number) {
    if (!slots[number]) continue;
    all.put(number);
    all.put(index[slots[number].get()]);
  }
  return all.take();
}

class Reader {
 public:
  Reader(FileSystem& files, std::size_t open_max) : files_(files), open_max_(open_max) {}

  Result<std::vector<std::shared_ptr<OpenFile>>> read(BytesView blob);
  /// Changes to directories, made once all has been read.
  void apply_orders();

 private:
  struct Order {
    NodeRef directory;
    std::vector<std::pair<std::uint64_t, std::string>> entries;
    std::uint64_t next;
  };

  Result<void> read_unnamed(ByteReader in, std::uint32_t count);
  Result<void> read_files(ByteReader in, std::uint32_t count);
  Result<std::shared_ptr<OpenFile>> read_file(ByteReader& in);
  Result<void> read_named(ByteReader& in, OpenFile& file);
  Result<std::vector<std::shared_ptr<OpenFile>>> read_slots(ByteReader& in);

  FileSystem& files_;
  std::size_t open_max_;
  std::vector<NodeRef> unnamed_;
  std::vector<std::shared_ptr<OpenFile>> opened_;
  std::vector<Order> orders_;
};

Result<void> Reader::read_unnamed(ByteReader in, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto mount = in.get<std::int32_t>();
    Timestamps times;
    times.accessed = in.get<std::uint64_t>();
    times.modified = in.get<std::uint64_t>();
    times.changed = in.get<std::uint64_t>();
    const BytesView content = in.get_bytes();
    if (!in.good() || mount < 0 ||
        static_cast<std::size_t>(mount) >= files_.layout().mount_count()) {
      return corrupt("a file without a name");
    }
    const auto& tree = files_.tree_of(mount);
    auto node = tree->create_unnamed_file(content, times);
    if (!node.ok()) {
      return Error{ErrorCode::kLimitExceeded, "saved descriptors: an unlinked file no longer fits",
                   0};
    }
    unnamed_.push_back({tree, *std::move(node), mount});
  }
  return in.at_end() ? Result<void>() : corrupt("trailing bytes");
}

Result<void> Reader::read_named(ByteReader& in, OpenFile& file) {
  const std::string path = in.get_text();
  const auto type = in.get<std::uint8_t>();
  const std::uint32_t count = in.get_count(16);
  const auto next = in.get<std::uint64_t>();
  Order order{{}, {}, next};
  for (std::uint32_t i = 0; i < count && in.good(); ++i) {
    const auto number = in.get<std::uint64_t>();
    order.entries.emplace_back(number, in.get_text());
  }
  if (!in.good() || next > INT64_MAX) return corrupt("a named file");
  auto found = files_.find_canonical(path);
  file.stale = !found.ok() || static_cast<std::uint8_t>(found->node->type) != type;
  if (file.stale) return {};
  file.at = *std::move(found);
  if (count != 0 && file.type() == FileType::kDirectory && !file.at.tree->read_only()) {
    order.directory = file.at;
    orders_.push_back(std::move(order));
  }
  return {};
}

Result<std::shared_ptr<OpenFile>> Reader::read_file(ByteReader& in) {
  auto file = std::make_shared<OpenFile>();
  file->flags = in.get<std::uint16_t>();
  file->position = in.get<std::uint64_t>();
  file->base = in.get<std::uint64_t>();
  file->inheriting = in.get<std::uint64_t>();
  file->preopen = in.get_text();
  const auto kind = static_cast<Kind>(in.get<std::uint8_t>());
  if (!in.good() || file->flags > fdflags::kAll || file->position > INT64_MAX ||
      ((file->base | file->inheriting) & ~rights::kAll) != 0 ||
      file->preopen.size() > kPathBytesMax) {
    return corrupt("an open file");
  }
  switch (kind) {
    case Kind::kStream: {
      const auto device = in.get<std::uint8_t>();
      if (device < static_cast<std::uint8_t>(Device::kStdin) ||
          device > static_cast<std::uint8_t>(Device::kStderr)) {
        return corrupt("a stream");
      }
      file->device = static_cast<Device>(device);
      break;
    }
    case Kind::kNamed: SW_CHECK_OK(read_named(in, *file)); break;
    case Kind::kUnnamed: {
      const auto index = in.get<std::uint32_t>();
      if (!in.good() || index >= unnamed_.size()) return corrupt("an unlinked file");
      file->at = unnamed_[index];
      break;
    }
    case Kind::kStale: file->stale = true; break;
    default: return corrupt("an unknown kind of file");
  }
  return file;
}

Result<void> Reader::read_files(ByteReader in, std::uint32_t count) {
  if (count > open_max_)
    return Error{ErrorCode::kLimitExceeded, "saved descriptors: too many open files", 0};
  for (std::uint32_t i = 0; i < count; ++i) {
    SW_TRY(auto file, read_file(in));
    opened_.push_back(std::move(file));
  }
  return in.good() && in.at_end() ? Result<void>() : corrupt("trailing bytes");
}

Result<std::vector<std::shared_ptr<OpenFile>>> Reader::read_slots(ByteReader& in) {
  const std::uint32_t count = in.get_count(8);
  if (count > open_max_)
    return Error{ErrorCode::kLimitExceeded, "saved descriptors: too many descriptors", 0};
  std::vector<std::shared_ptr<OpenFile>> slots;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto number = in.get<std::uint32_t>();
    const auto index = in.get<std::uint32_t>();
    if (!in.good() || number >= kDescriptorsMax || index >= opened_.size())
      return corrupt("a descriptor");
    if (number < slots.size()) return corrupt("descriptors out of order");
    slots.resize(number + 1);
    slots[number] = opened_[index];
  }
  if (!in.good() || !in.at_end()) return corrupt("trailing bytes");
  return slots;
}

Result<std::vector<std::shared_ptr<OpenFile>>> Reader::read(BytesView blob) {
  ByteReader in(blob);
  if (in.get<std::uint32_t>() != kMagic) return corrupt("not such a blob");
  if (const auto version = in.get<std::uint16_t>(); version != kVersion) {
    return corrupt(fmt::format("version {} is unknown", version));
  }
  const auto unnamed_count = in.get<std::uint32_t>();
  const BytesView unnamed = in.get_bytes();
  const auto file_count = in.get<std::uint32_t>();
  const BytesView files = in.get_bytes();
  if (!in.good()) return corrupt("cut short");
  SW_CHECK_OK(read_unnamed(ByteReader(unnamed), unnamed_count));
  SW_CHECK_OK(read_files(ByteReader(files), file_count));
  return read_slots(in);
}

void Reader::apply_orders() {
  for (const Order& order : orders_)
    order.directory.node->directory->restore_order(order.entries, order.next);
}

}  // namespace

Result<Bytes> DescriptorTable::serialize(FileSystem& files) const {
  return Writer(files).write(slots_);
}

Result<void> DescriptorTable::deserialize(BytesView blob, FileSystem& files) {
  Reader reader(files, open_max_);
  SW_TRY(auto slots, reader.read(blob));
  reader.apply_orders();
  slots_ = std::move(slots);
  open_count_ = static_cast<std::size_t>(std::count_if(
      slots_.begin(), slots_.end(), [](const auto& slot) { return slot != nullptr; }));
  return {};
}

}  // namespace sw::wasi
