// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of merging layers share.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "storage/directory.h"
#include "storage/layer_merge.h"
#include "storage/layered_storage.h"

namespace sw::storage {

/// Empty if there is no such object, or the directory cannot be read.
inline std::vector<LayerNumber> layers_of(Storage& storage, const ObjectName& name) {
  std::vector<LayerNumber> layers;
  const auto read =
      dynamic_cast<LayeredStorage&>(storage).read_directory([&](Reader& directory) -> Result<void> {
        SW_TRY(const auto entry, find_object(directory, name));
        if (entry) layers = entry->layers;
        return {};
      });
  return read.ok() ? layers : std::vector<LayerNumber>();
}

inline std::size_t depth_of(Storage& storage, const ObjectName& name) {
  return layers_of(storage, name).size();
}

/// Whether it comes to be so, in the background.
inline bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

inline bool becomes_shallow(Storage& storage, const ObjectName& name) {
  return eventually([&] {
    const std::size_t depth = depth_of(storage, name);
    return depth > 0 && depth <= kShallowStack;
  });
}

inline Result<void> checkpoint(Storage& storage, const ObjectName& from, const ObjectName& to) {
  return storage.change({.copies = {{.from = from, .to = to}}});
}

/// How many layers there are in the directory, or, without an owner, one that is being made.
inline std::size_t count_layers(Storage& storage) {
  std::size_t count = 0;
  const auto read = dynamic_cast<LayeredStorage&>(storage).read_directory([&](Reader& directory) {
    return directory.scan_keys({.table = kLayersTable, .from = {}, .to = {}}, Order::kAscending,
                               [&](std::string_view, std::size_t) {
                                 ++count;
                                 return Result<Scan>(Scan::kContinue);
                               });
  });
  EXPECT_TRUE(read.ok()) << read.error().message;
  return count;
}

/// How many different ones the objects have.
inline std::size_t count_owned_layers(Storage& storage) {
  std::set<LayerNumber> layers;
  const auto read = dynamic_cast<LayeredStorage&>(storage).read_directory([&](Reader& directory) {
    return scan_objects(directory, [&](const ObjectName&, const ObjectEntry& entry) {
      layers.insert(entry.layers.begin(), entry.layers.end());
      return Result<Scan>(Scan::kContinue);
    });
  });
  EXPECT_TRUE(read.ok()) << read.error().message;
  return layers.size();
}

}  // namespace sw::storage
