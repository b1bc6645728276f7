// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/testing/test_state.h"

#include "storage/memory/memory_storage.h"

namespace sw::testing {

TestState::TestState() : disk_(std::make_unique<storage::MemoryDisk>()) {}
TestState::~TestState() = default;

std::shared_ptr<TestState> create_test_state() { return std::make_shared<TestState>(); }

}  // namespace sw::testing
