// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "storage/layer.h"

namespace sw::storage {

/// Whether a layer's file must be there already.
enum class Stored : std::uint8_t { kNo, kYes };

/// The layers by number: each once, as long as somebody holds it.
/// Threads: any.
class Layers {
 public:
  virtual ~Layers() = default;

  LayerPtr get(LayerNumber number, Stored stored);
  /// No object has the layer any more: its file goes.
  virtual void discard(LayerNumber number) { forget(number); }
  /// The same, but its file stays until the directory's is written.
  void forget(LayerNumber number);

  /// Holds a layer, as not all of its rows are in its file.
  void keep(const LayerPtr& layer);
  /// Its file has all of them now, unless others have come.
  void let_go(const LayerPtr& layer);
  /// Those held so, by number.
  std::vector<LayerPtr> kept() const;

 protected:
  /// Null: the layer is in memory only.
  virtual std::shared_ptr<LayerFile> make_file(LayerNumber /*number*/, Stored /*stored*/) {
    return nullptr;
  }

 private:
  mutable Mutex mutex_;
  std::map<LayerNumber, std::weak_ptr<Layer>> known_ SW_GUARDED_BY(mutex_);
  std::map<LayerNumber, LayerPtr> kept_ SW_GUARDED_BY(mutex_);
};

}  // namespace sw::storage
