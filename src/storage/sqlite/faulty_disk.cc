// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/faulty_disk.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <vector>

#include "base/thread_safety.h"

namespace sw::storage {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSectorBytes = 512;

// How to undo one change of a file.
struct Undo {
  std::int64_t size_before = 0;
  std::int64_t offset = 0;
  // the bytes that were there; fewer than were written where the file was shorter
  std::vector<char> before;
  std::size_t written = 0;
};

// What a power loss would undo in one file.
struct Unsafe {
  bool created = false;  // its name is not yet safe in its folder
  std::vector<Undo> changes;
};

}  // namespace

struct FaultyDisk::State {
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs vfs = {};
  std::string name;

  Mutex mutex;
  Syncs syncs SW_GUARDED_BY(mutex) = Syncs::kReal;
  std::uint64_t changes SW_GUARDED_BY(mutex) = 0;
  std::uint64_t fail_from SW_GUARDED_BY(mutex) = std::numeric_limits<std::uint64_t>::max();
  std::map<std::string, Unsafe> unsafe SW_GUARDED_BY(mutex);

  // Counts a change. False: it must not happen.
  bool allow() SW_REQUIRES(mutex) { return ++changes < fail_from; }
};

namespace {

// As SQLite allocates it: what it knows, then ours, and the real layer's file behind it.
struct File {
  sqlite3_file base;
  FaultyDisk::State* disk;
  const std::string* path;  // a key of `paths`, kept alive by open_path
  bool is_log;              // its first sync makes the names in its folder safe, too
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File& self(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
FaultyDisk::State& disk_of(sqlite3_vfs* vfs) {
  return *static_cast<FaultyDisk::State*>(vfs->pAppData);
}

std::int64_t size_of(File& file) {
  sqlite3_int64 size = 0;
  file.real()->pMethods->xFileSize(file.real(), &size);
  return size;
}

void remember(File& file, std::int64_t offset, std::size_t written) SW_REQUIRES(file.disk->mutex) {
  Undo undo{size_of(file), offset, {}, written};
  const std::int64_t there =
      std::clamp<std::int64_t>(undo.size_before - offset, 0, static_cast<std::int64_t>(written));
  undo.before.resize(static_cast<std::size_t>(there));
  if (there > 0)
    file.real()->pMethods->xRead(file.real(), undo.before.data(), static_cast<int>(there), offset);
  file.disk->unsafe[*file.path].changes.push_back(std::move(undo));
}

int on_close(sqlite3_file* f) noexcept {
  File& file = self(f);
  const int code = file.real()->pMethods->xClose(file.real());
  delete file.path;
  file.path = nullptr;
  return code;
}

int on_read(sqlite3_file* f, void* to, int count, sqlite3_int64 offset) noexcept {
  return self(f).real()->pMethods->xRead(self(f).real(), to, count, offset);
}

int on_write(sqlite3_file* f, const void* from, int count, sqlite3_int64 offset) noexcept {
  File& file = self(f);
  const MutexLock lock(file.disk->mutex);
  if (!file.disk->allow()) return SQLITE_IOERR_WRITE;
  if (file.disk->syncs == FaultyDisk::Syncs::kReal)
    remember(file, offset, static_cast<std::size_t>(count));
  return file.real()->pMethods->xWrite(file.real(), from, count, offset);
}

int on_truncate(sqlite3_file* f, sqlite3_int64 size) noexcept {
  File& file = self(f);
  const MutexLock lock(file.disk->mutex);
  if (!file.disk->allow()) return SQLITE_IOERR_TRUNCATE;
  const std::int64_t gone = size_of(file) - size;
  if (gone > 0 && file.disk->syncs == FaultyDisk::Syncs::kReal)
    remember(file, size, static_cast<std::size_t>(gone));
  return file.real()->pMethods->xTruncate(file.real(), size);
}

int on_sync(sqlite3_file* f, int flags) noexcept {
  File& file = self(f);
  const MutexLock lock(file.disk->mutex);
  if (!file.disk->allow()) return SQLITE_IOERR_FSYNC;
  if (file.disk->syncs == FaultyDisk::Syncs::kSkipped) return SQLITE_OK;
  file.disk->unsafe[*file.path].changes.clear();
  if (file.is_log) {
    const fs::path folder = fs::path(*file.path).parent_path();
    for (auto& [path, unsafe] : file.disk->unsafe) {
      if (fs::path(path).parent_path() == folder) unsafe.created = false;
    }
    file.is_log = false;
  }
  // The real sync is left out: it changes nothing that the test could see, and takes long.
  (void)flags;
  return SQLITE_OK;
}

int on_file_size(sqlite3_file* f, sqlite3_int64* size) noexcept {
  return self(f).real()->pMethods->xFileSize(self(f).real(), size);
}
int on_lock(sqlite3_file* f, int level) noexcept {
  return self(f).real()->pMethods->xLock(self(f).real(), level);
}
int on_unlock(sqlite3_file* f, int level) noexcept {
  return self(f).real()->pMethods->xUnlock(self(f).real(), level);
}
int on_check_lock(sqlite3_file* f, int* out) noexcept {
  return self(f).real()->pMethods->xCheckReservedLock(self(f).real(), out);
}
int on_control(sqlite3_file* f, int op, void* arg) noexcept {
  return self(f).real()->pMethods->xFileControl(self(f).real(), op, arg);
}
int on_sector_size(sqlite3_file* f) noexcept {
  return self(f).real()->pMethods->xSectorSize(self(f).real());
}
int on_characteristics(sqlite3_file* f) noexcept {
  return self(f).real()->pMethods->xDeviceCharacteristics(self(f).real());
}
int on_shm_map(sqlite3_file* f, int page, int size, int extend, void volatile** out) noexcept {
  return self(f).real()->pMethods->xShmMap(self(f).real(), page, size, extend, out);
}
int on_shm_lock(sqlite3_file* f, int offset, int n, int flags) noexcept {
  return self(f).real()->pMethods->xShmLock(self(f).real(), offset, n, flags);
}
void on_shm_barrier(sqlite3_file* f) noexcept {
  self(f).real()->pMethods->xShmBarrier(self(f).real());
}
int on_shm_unmap(sqlite3_file* f, int remove) noexcept {
  return self(f).real()->pMethods->xShmUnmap(self(f).real(), remove);
}

const sqlite3_io_methods kMethods = {2,
                                     on_close,
                                     on_read,
                                     on_write,
                                     on_truncate,
                                     on_sync,
                                     on_file_size,
                                     on_lock,
                                     on_unlock,
                                     on_check_lock,
                                     on_control,
                                     on_sector_size,
                                     on_characteristics,
                                     on_shm_map,
                                     on_shm_lock,
                                     on_shm_barrier,
                                     on_shm_unmap,
                                     nullptr,
                                     nullptr};

int on_open(sqlite3_vfs* vfs, const char* path, sqlite3_file* f, int flags,
            int* out_flags) noexcept {
  FaultyDisk::State& disk = disk_of(vfs);
  File& file = self(f);
  file.base.pMethods = nullptr;
  const MutexLock lock(disk.mutex);
  std::error_code error;
  const bool creates =
      path != nullptr && (flags & SQLITE_OPEN_CREATE) != 0 && !fs::exists(path, error);
  if (creates && !disk.allow()) return SQLITE_CANTOPEN;
  const int code = disk.real->xOpen(disk.real, path, file.real(), flags, out_flags);
  if (code != SQLITE_OK) return code;
  file.base.pMethods = &kMethods;
  file.disk = &disk;
  file.path = new std::string(path != nullptr ? path : "");
  file.is_log = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
  if (creates && disk.syncs == FaultyDisk::Syncs::kReal) disk.unsafe[path].created = true;
  return SQLITE_OK;
}

int on_delete(sqlite3_vfs* vfs, const char* path, int sync_folder) noexcept {
  FaultyDisk::State& disk = disk_of(vfs);
  const MutexLock lock(disk.mutex);
  std::error_code error;
  if (fs::exists(path, error) && !disk.allow()) return SQLITE_IOERR_DELETE;
  disk.unsafe.erase(path);
  // a deletion is taken to be safe at once: the harder case is that of a file that is gone
  (void)sync_folder;
  return disk.real->xDelete(disk.real, path, 0);
}

int on_access(sqlite3_vfs* vfs, const char* path, int flags, int* out) noexcept {
  return disk_of(vfs).real->xAccess(disk_of(vfs).real, path, flags, out);
}
int on_full_path(sqlite3_vfs* vfs, const char* path, int count, char* out) noexcept {
  return disk_of(vfs).real->xFullPathname(disk_of(vfs).real, path, count, out);
}
int on_randomness(sqlite3_vfs* vfs, int count, char* out) noexcept {
  return disk_of(vfs).real->xRandomness(disk_of(vfs).real, count, out);
}
int on_sleep(sqlite3_vfs* vfs, int microseconds) noexcept {
  return disk_of(vfs).real->xSleep(disk_of(vfs).real, microseconds);
}
int on_time(sqlite3_vfs* vfs, double* out) noexcept {
  return disk_of(vfs).real->xCurrentTime(disk_of(vfs).real, out);
}
int on_last_error(sqlite3_vfs* vfs, int count, char* out) noexcept {
  return disk_of(vfs).real->xGetLastError(disk_of(vfs).real, count, out);
}

void write_at(const std::string& path, std::int64_t offset, const char* bytes, std::size_t count) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file.write(bytes, static_cast<std::streamsize>(count));
}

// Newest first, so that each finds the file as it was right after its change.
void undo_all(const std::string& path, const std::vector<Undo>& changes) {
  for (auto undo = changes.rbegin(); undo != changes.rend(); ++undo) {
    std::error_code error;
    fs::resize_file(path, static_cast<std::uintmax_t>(undo->size_before), error);
    if (!undo->before.empty())
      write_at(path, undo->offset, undo->before.data(), undo->before.size());
  }
}

// Some sectors of what was written reached the disk, others did not; the file's size did.
void tear(const std::string& path, const std::vector<Undo>& changes, std::mt19937& random) {
  for (auto undo = changes.rbegin(); undo != changes.rend(); ++undo) {
    const std::vector<char> zeros(kSectorBytes);
    for (std::size_t at = 0; at < undo->written; at += kSectorBytes) {
      if (random() % 2 == 0) continue;
      const std::size_t count = std::min(kSectorBytes, undo->written - at);
      const std::size_t known =
          at < undo->before.size() ? std::min(count, undo->before.size() - at) : 0;
      const std::int64_t offset = undo->offset + static_cast<std::int64_t>(at);
      if (known > 0) write_at(path, offset, undo->before.data() + at, known);
      if (known < count)
        write_at(path, offset + static_cast<std::int64_t>(known), zeros.data(), count - known);
    }
  }
}

}  // namespace

FaultyDisk::FaultyDisk() : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.real = sqlite3_vfs_find(nullptr);
  state.name =
      fmt::format("sw-faulty-{}", static_cast<void*>(&state));  // SQLite finds layers by name
  state.vfs = {};
  state.vfs.iVersion = 1;
  state.vfs.szOsFile = static_cast<int>(sizeof(File)) + state.real->szOsFile;
  state.vfs.mxPathname = state.real->mxPathname;
  state.vfs.zName = state.name.c_str();
  state.vfs.pAppData = &state;
  state.vfs.xOpen = on_open;
  state.vfs.xDelete = on_delete;
  state.vfs.xAccess = on_access;
  state.vfs.xFullPathname = on_full_path;
  state.vfs.xRandomness = on_randomness;
  state.vfs.xSleep = on_sleep;
  state.vfs.xCurrentTime = on_time;
  state.vfs.xGetLastError = on_last_error;
  sqlite3_vfs_register(&state.vfs, 0);
}

FaultyDisk::~FaultyDisk() { sqlite3_vfs_unregister(&state_->vfs); }

const std::string& FaultyDisk::name() const { return state_->name; }

void FaultyDisk::set_syncs(Syncs syncs) {
  const MutexLock lock(state_->mutex);
  state_->syncs = syncs;
}

void FaultyDisk::fail_from(std::uint64_t n) {
  const MutexLock lock(state_->mutex);
  state_->fail_from = state_->changes + n;
}

bool FaultyDisk::failing() const {
  const MutexLock lock(state_->mutex);
  return state_->changes >= state_->fail_from;
}

std::uint64_t FaultyDisk::changes() const {
  const MutexLock lock(state_->mutex);
  return state_->changes;
}

void FaultyDisk::lose_power(Unsynced unsynced, std::mt19937& random) {
  const MutexLock lock(state_->mutex);
  for (const auto& [path, unsafe] : state_->unsafe) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    if (unsafe.created && (unsynced == Unsynced::kLost || random() % 2 == 0)) {
      fs::remove(path, error);
    } else if (unsynced == Unsynced::kLost) {
      undo_all(path, unsafe.changes);
    } else {
      tear(path, unsafe.changes, random);
    }
  }
  state_->unsafe.clear();
  state_->fail_from = std::numeric_limits<std::uint64_t>::max();
}

}  // namespace sw::storage
