// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/memory/memory_storage.h"

#include <cstdint>
#include <utility>

namespace sw::storage {

struct MemoryDisk::State {
  explicit State(Bodies how_often) : bodies(how_often) {}

  const Bodies bodies;
  Layers layers;
  MemoryLog log;
  std::uint64_t starts = 0;
};

MemoryDisk::MemoryDisk(Bodies bodies) : state_(std::make_unique<State>(bodies)) {}
MemoryDisk::~MemoryDisk() = default;

void MemoryDisk::fail_commits(std::optional<Error> error) { state_->log.fail(std::move(error)); }

std::unique_ptr<Storage> open_memory_storage(MemoryDisk& disk) {
  MemoryDisk::State& state = disk.state();
  auto storage = std::make_unique<LayeredStorage>(state.layers, state.log, state.bodies);
  (void)storage->start(++state.starts);  // rows in memory can be read
  return storage;
}

}  // namespace sw::storage
