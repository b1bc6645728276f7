// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Zip archives as read-only folders. The archive's bytes stay where they are (mapped); a member is
// inflated when it is first read, a folder listed when it is first entered.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/layout.h"

namespace sw::wasi {

/// An opened archive. Thread-safe.
class Archive : public std::enable_shared_from_this<Archive> {
 public:
  struct Member {
    std::string name;  ///< as in the archive; a folder's ends with "/"
    std::uint64_t index = 0;
    std::uint64_t size = 0;
  };

  /// Errors: kCorrupt when `bytes` are no zip archive.
  static Result<std::shared_ptr<Archive>> open(SharedBytes bytes);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  std::vector<Member> members() const;
  /// kNotFound, or kCorrupt when it does not inflate to the size and checksum the archive gives.
  Result<Bytes> read(std::string_view name) const;
  Result<Bytes> read(const Member& member) const;

  /// Fills an empty directory with all members, as lazy files; `owner` is the node it will belong
  /// to. Members that are no plain relative paths, or that are named twice, are an error
  /// (kCorrupt): an archive is trusted to be ours, not to be right.
  Result<void> fill(Directory& directory, Node* owner, std::uint64_t first_inode);

 private:
  struct State;
  explicit Archive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Shows an archive as the folder `path`. Errors: kCorrupt when it is none; what is wrong with its
/// members shows when a guest looks into the folder.
Result<void> add_archive(LayoutBuilder& builder, std::string_view path, SharedBytes archive);

/// Shows `member`, an archive inside the archive `outer`, as the folder `path`: nothing is read
/// before a guest looks into that folder.
Result<void> add_nested_archive(LayoutBuilder& builder, std::string_view path, SharedBytes outer,
                                std::string member);

}  // namespace sw::wasi
