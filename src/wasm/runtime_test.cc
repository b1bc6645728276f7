// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(Runtime, FingerprintIsStableAndDependsOnOptions) {
  EXPECT_EQ(shared_engine().fingerprint(), shared_engine().fingerprint());
  const auto other = Runtime::create({.stack_bytes_max = std::size_t{64} << 20}).value();
  EXPECT_NE(shared_engine().fingerprint(), other->fingerprint());
  EXPECT_NE(shared_engine().fingerprint(), engine_with_checks().fingerprint());
}

// Wasmtime notes in what it compiles whether there are checks, and refuses to run code under
// another setting.
TEST(Runtime, CodeHasChecksForEpochsOnlyIfItWasAskedFor) {
  const auto prepared = prepare_module(wat_to_wasm(kCounter).value()).value();
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-module-").value();
  const auto written = [&](Runtime& runtime, const char* name) {
    const Bytes code = Module::compile(runtime, prepared.wasm).value().serialize().value();
    EXPECT_TRUE(write_file_atomically(folder.path() / name, code).ok());
    return folder.path() / name;
  };
  const fs::path plain = written(shared_engine(), "plain");
  const fs::path checked = written(engine_with_checks(), "checked");
  EXPECT_TRUE(Module::load(shared_engine(), plain).ok());
  EXPECT_TRUE(Module::load(engine_with_checks(), checked).ok());
  EXPECT_THAT(Module::load(engine_with_checks(), plain).error().message,
              HasSubstr("without epoch interruption"));
  EXPECT_THAT(Module::load(shared_engine(), checked).error().message,
              HasSubstr("with epoch interruption"));
  EXPECT_LT(fs::file_size(plain), fs::file_size(checked));
}

}  // namespace
}  // namespace sw::wasm
