// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/layers.h"

#include <utility>
#include <vector>

namespace sw::storage {

LayerPtr Layers::get(LayerNumber number, Stored stored) {
  const MutexLock lock(mutex_);
  std::weak_ptr<Layer>& known = known_[number];
  if (LayerPtr layer = known.lock()) return layer;
  auto file = make_file(number, stored);
  const bool only_in_memory = file == nullptr;
  auto layer = std::make_shared<Layer>(number, std::move(file));
  known = layer;
  if (only_in_memory) kept_.emplace(number, layer);
  return layer;
}

void Layers::forget(LayerNumber number) {
  LayerPtr last;  // its end is not under the mutex
  const MutexLock lock(mutex_);
  known_.erase(number);
  const auto kept = kept_.find(number);
  if (kept == kept_.end()) return;
  last = std::move(kept->second);
  kept_.erase(kept);
}

void Layers::keep(const LayerPtr& layer) {
  const MutexLock lock(mutex_);
  kept_.emplace(layer->number(), layer);
}

void Layers::let_go(const LayerPtr& layer) {
  const MutexLock lock(mutex_);
  if (!layer->has_settled()) kept_.erase(layer->number());
}

std::vector<LayerPtr> Layers::kept() const {
  const MutexLock lock(mutex_);
  std::vector<LayerPtr> layers;
  for (const auto& [number, layer] : kept_) layers.push_back(layer);
  return layers;
}

}  // namespace sw::storage
