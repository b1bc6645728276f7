// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/vfs_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

namespace sw::storage {

namespace {

// SQLite's layer looks at the lower 17 bits of a count only.
constexpr std::size_t kBytesAtOnce = std::size_t{64} << 10U;

}  // namespace

Error VfsFile::failed(const char* what, int code) const {
  const bool full = (code & 0xff) == SQLITE_FULL;
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot {} {}: {}", what, path_.native(),
                           full ? "the disk is full" : sqlite3_errstr(code)),
               0};
}

Result<std::unique_ptr<VfsFile>> VfsFile::open(const std::filesystem::path& path,
                                               const std::string& vfs) {
  sqlite3_vfs* const layer = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
  if (layer == nullptr)
    return Error{ErrorCode::kInvalidArgument, "no such SQLite file layer: " + vfs, 0};
  std::unique_ptr<VfsFile> file(new VfsFile(std::filesystem::absolute(path)));
  file->memory_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(layer->szOsFile));
  auto* const opened = reinterpret_cast<sqlite3_file*>(file->memory_.get());
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;
  const int code = layer->xOpen(layer, file->path_.c_str(), opened, kFlags, nullptr);
  if (code != SQLITE_OK) return file->failed("open", code);
  file->file_ = opened;
  return file;
}

VfsFile::~VfsFile() {
  if (file_ != nullptr) file_->pMethods->xClose(file_);
}

Result<std::uint64_t> VfsFile::size() const {
  sqlite3_int64 size = 0;
  const int code = file_->pMethods->xFileSize(file_, &size);
  if (code != SQLITE_OK) return failed("look at", code);
  return static_cast<std::uint64_t>(size);
}

Result<Bytes> VfsFile::read(std::uint64_t offset, std::size_t bytes) const {
  Bytes content(bytes);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t count = std::min(bytes - done, kBytesAtOnce);
    const int code = file_->pMethods->xRead(file_, content.data() + done, static_cast<int>(count),
                                            static_cast<sqlite3_int64>(offset + done));
    if (code != SQLITE_OK) return failed("read", code);
    done += count;
  }
  return content;
}

Result<void> VfsFile::write(std::uint64_t offset, BytesView bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t count = std::min(bytes.size() - done, kBytesAtOnce);
    const int code = file_->pMethods->xWrite(file_, bytes.data() + done, static_cast<int>(count),
                                             static_cast<sqlite3_int64>(offset + done));
    if (code != SQLITE_OK) return failed("write", code);
    done += count;
  }
  return {};
}

Result<void> VfsFile::truncate(std::uint64_t size) {
  const int code = file_->pMethods->xTruncate(file_, static_cast<sqlite3_int64>(size));
  if (code != SQLITE_OK) return failed("truncate", code);
  return {};
}

Result<void> VfsFile::sync() {
  const int code = file_->pMethods->xSync(file_, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
  if (code != SQLITE_OK) return failed("sync", code);
  return {};
}

}  // namespace sw::storage
