// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a file tree: nodes (what POSIX calls inodes) and the directories that name them.
// Nodes know nothing of paths, permissions or limits: see tree.h and file_system.h.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox_workers/wasi/content.h"
#include "sandbox_workers/wasi/errno.h"

namespace sw::wasi {

/// Values are WASI's.
enum class FileType : std::uint8_t {
  kUnknown = 0,
  kCharacterDevice = 2,
  kDirectory = 3,
  kRegularFile = 4,
  kSymbolicLink = 7,
};

enum class Device : std::uint8_t { kNone, kNull, kZero, kRandom, kStdin, kStdout, kStderr };

/// Nanoseconds since 1970.
struct Timestamps {
  std::uint64_t accessed = 0;
  std::uint64_t modified = 0;
  std::uint64_t changed = 0;
  static Timestamps all(std::uint64_t ns) { return {ns, ns, ns}; }
  bool operator==(const Timestamps&) const = default;
};

struct TreeUsage {
  /// Content of files, open ones without a name included, and link targets
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;  ///< names in directories
};

struct Node;

/// The names in one directory. Each entry has an order number, larger than those given before, by
/// which it is listed: a reader that remembers the last number it saw misses nothing and sees
/// nothing twice, whatever changes meanwhile.
class Directory {
 public:
  struct Entry {
    std::uint64_t order = 0;
    std::shared_ptr<Node> node;
  };

  /// Fills the directory on first use, once for all threads.
  using Loader = std::function<Result<Directory>(Node& owner)>;
  void set_loader(Node& owner, Loader loader) {
    lazy_ = std::make_unique<Lazy>(owner, std::move(loader));
  }

  ErrnoOr<const Entry*> find(std::string_view name) const;  ///< null when there is none
  Errno ensure_loaded() const;
  bool empty() const { return by_name_.empty(); }
  std::size_t size() const { return by_name_.size(); }

  /// Returns the name as it is kept here, at an address that stays the same while the entry is renamed
  /// or moved. Throws std::bad_alloc before it has changed anything, as does `reserve`. The others do
  /// not throw.
  const std::string& insert(std::string_view name, std::shared_ptr<Node> node);
  void erase(std::string_view name) noexcept;
  /// The old name's order number is kept, so that a reader who renames what it sees comes to an
  /// end.
  void rename(std::string_view from, std::string to) noexcept;

  /// Memory for an entry that comes from another directory.
  class Slot;
  static Slot reserve(std::string_view name);
  /// Moves the entry here, under the slot's name. That name is free.
  void move_in(Directory& from, std::string_view name, Slot slot) noexcept;

  /// Calls visit(name, entry) in listing order for entries with order >= `from`, until it returns
  /// false.
  template <class F>
  Errno for_each(std::uint64_t from, F visit) const {
    SW_WASI_CHECK(ensure_loaded());
    for (auto at = by_order_.lower_bound(from); at != by_order_.end(); ++at) {
      if (!visit(std::string_view(at->second->first), at->second->second)) break;
    }
    return Errno::kSuccess;
  }

  /// Gives the named entries these order numbers; the others are listed after them. Names that are
  /// gone are skipped. For directories that were being read when a snapshot was taken.
  void restore_order(const std::vector<std::pair<std::uint64_t, std::string>>& order,
                     std::uint64_t next);
  std::uint64_t next_order() const { return next_order_; }

 private:
  struct Lazy {
    Lazy(Node& node, Loader fill) : owner(node), loader(std::move(fill)) {}
    std::once_flag once;
    Node& owner;  // whose directory this is
    Loader loader;
    bool good = false;
  };
  using Names = std::map<std::string, Entry, std::less<>>;
  using Order = std::map<std::uint64_t, Names::value_type*>;

  Names by_name_;
  Order by_order_;
  std::uint64_t next_order_ = 0;
  std::unique_ptr<Lazy> lazy_;  // only in immutable trees
};

class Directory::Slot {
 private:
  friend class Directory;
  std::string name_;
  Order::node_type order_;
};

/// A file, directory, link or device. Fields are public to this room: Tree keeps them consistent.
struct Node : std::enable_shared_from_this<Node> {
  struct Name {
    Node* directory = nullptr;
    const std::string* name = nullptr;  ///< as the directory keeps it
  };

  explicit Node(FileType node_type) : type(node_type) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  /// What a listing or a path may find below this node. Normally that of a directory; in read-only
  /// trees a regular file may be a folder too (Python looks for files beneath its zip archive's own
  /// path).
  bool has_children() const { return directory != nullptr; }
  std::uint64_t size() const;

  FileType type;
  Device device = Device::kNone;
  std::int32_t mount = -1;  ///< index of the tree that covers this directory
  std::uint32_t links = 1;
  std::uint64_t inode = 0;
  Timestamps times;
  FileContent content;
  std::string target;  ///< of a symbolic link
  std::unique_ptr<Directory> directory;
  Node* parent = nullptr;  ///< of a directory that has a name; its root's is null
  /// Where it has names, in a tree that can be written to. Hard links have several.
  std::vector<Name> names;
  std::uint64_t noted = 0;     ///< in which period of its tree's journal it was noted last
  TreeUsage* usage = nullptr;  ///< what to give the bytes back to; the tree outlives its nodes
};

}  // namespace sw::wasi
