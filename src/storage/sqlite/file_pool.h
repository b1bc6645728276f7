// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The databases of a data folder: each has at most one connection, and those used longest ago are
// closed when there are too many.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "base/thread_safety.h"
#include "storage/layers.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/layer_database.h"

namespace sw::storage {

/// Threads: any.
class FilePool {
 public:
  using Use = std::function<Result<void>(LayerDatabase&)>;

  /// `folder` outlives it. `open_max`: connections that stay open.
  FilePool(const DataFolder& folder, std::string vfs, std::size_t open_max)
      : folder_(folder), vfs_(std::move(vfs)), open_max_(open_max) {}

  bool exists(LayerNumber number) const;
  /// That its files have.
  std::uint64_t bytes(LayerNumber number) const;
  /// Does something with a layer's database. A connection that met trouble is closed.
  Result<void> use(LayerNumber number, const Use& use);
  /// The same with a new database, in the place of whatever is there.
  Result<void> make(LayerNumber number, const Use& use);
  /// Deletes it, if it is there. Nobody may need it any more.
  Result<void> remove(LayerNumber number);
  std::filesystem::path path(LayerNumber number) const;

 private:
  struct Slot {
    Mutex mutex;
    std::unique_ptr<LayerDatabase> database SW_GUARDED_BY(mutex);
    std::size_t users = 0;                // under the pool's mutex
    std::list<LayerNumber>::iterator at;  // in `order_`; under the pool's mutex
  };
  using SlotPtr = std::shared_ptr<Slot>;  // shared by the pool and those at work

  SlotPtr take(LayerNumber number) SW_EXCLUDES(mutex_);
  void give_back(const SlotPtr& slot) SW_EXCLUDES(mutex_);
  enum class Opening : std::uint8_t { kExisting, kNew };
  Result<void> use(LayerNumber number, Opening opening, const Use& use);
  Result<std::unique_ptr<LayerDatabase>> open(LayerNumber number, Opening opening) const;

  const DataFolder& folder_;
  const std::string vfs_;
  const std::size_t open_max_;
  Mutex mutex_;
  std::map<LayerNumber, SlotPtr> slots_ SW_GUARDED_BY(mutex_);
  std::list<LayerNumber> order_ SW_GUARDED_BY(mutex_);  // used longest ago first
};

/// Layers whose rows rest in the pool's databases.
class FileLayers final : public Layers {
 public:
  explicit FileLayers(FilePool& pool) : pool_(pool) {}

  void discard(LayerNumber number) override;

 protected:
  std::shared_ptr<LayerFile> make_file(LayerNumber number, Stored stored) override;

 private:
  FilePool& pool_;
};

}  // namespace sw::storage
