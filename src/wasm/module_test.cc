// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "wasm/test_guest.h"

namespace sw::wasm {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Prepare, TakesOutDataAndExportsGlobals) {
  const auto prepared = prepare_module(wat_to_wasm(kCounter).value()).value();
  ASSERT_EQ(prepared.segments.size(), 1u);
  EXPECT_EQ(prepared.segments[0].offset, 16u);
  EXPECT_EQ(prepared.facts.mutable_globals, 1u);
  EXPECT_TRUE(prepared.facts.keepable());
  const auto module = Module::compile(shared_engine(), prepared.wasm).value();
  EXPECT_THAT(module.exports(), Contains("sw:global:0"));
}

TEST(Prepare, RefusesWhatIsNoModule) {
  EXPECT_EQ(prepare_module(as_bytes("not wasm")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(prepare_module({}).error().code, ErrorCode::kInvalidArgument);
}

TEST(Prepare, RefusesATruncatedModuleAtEveryByte) {
  const Bytes whole = wat_to_wasm(kCounter).value();
  for (std::size_t length = 9; length < whole.size(); ++length) {
    const auto prepared = prepare_module(BytesView(whole).first(length));
    // Cut exactly between two sections, the rest can still be a module; then it must compile too.
    EXPECT_TRUE(!prepared.ok() || Module::compile(shared_engine(), prepared->wasm).ok()) << length;
  }
}

TEST(Prepare, RefusesWhatCouldHoldStateBesideTheMemory) {
  for (const char* wat : {"(module (memory 1) (memory 1))", "(module (memory i64 1))",
                          "(component (core module (func)))",
                          "(module (type $a (array (mut i32))) (global (ref $a) (array.new $a "
                          "(i32.const 0) (i32.const 9))))",
                          "(module (type $s (struct (field (mut i32)))) (func (drop (struct.new $s "
                          "(i32.const 1)))))"}) {
    const auto prepared = prepare_module(wat_to_wasm(wat).value());
    EXPECT_FALSE(prepared.ok()) << wat;
  }
}

TEST(Prepare, RefusesAnExportWithANameOfOurs) {
  const auto prepared = prepare_module(
      wat_to_wasm("(module (global (mut i32) (i32.const 0)) (func (export \"sw:global:0\")))")
          .value());
  ASSERT_FALSE(prepared.ok());
  EXPECT_THAT(prepared.error().message, HasSubstr("sw:global:0"));
}

struct KeepCase {
  const char* name;
  const char* wat;
  const char* reason;
};
class KeepRule : public ::testing::TestWithParam<KeepCase> {};

TEST_P(KeepRule, ScanNamesTheStateThatMayChange) {
  const auto prepared = prepare_module(wat_to_wasm(GetParam().wat).value()).value();
  EXPECT_FALSE(prepared.facts.keepable());
  EXPECT_THAT(prepared.facts.reason_not_keepable(), HasSubstr(GetParam().reason));
  EXPECT_TRUE(Module::compile(shared_engine(), prepared.wasm).ok());
}

INSTANTIATE_TEST_SUITE_P(
    All, KeepRule,
    ::testing::Values(
        KeepCase{"TableSet",
                 "(module (table 1 funcref) (func (table.set (i32.const 0) (ref.null func))))",
                 "tables"},
        KeepCase{
            "TableGrow",
            "(module (table 1 funcref) (func (drop (table.grow (ref.null func) (i32.const 1)))))",
            "tables"},
        KeepCase{"TableFill",
                 "(module (table 1 funcref) (func (table.fill (i32.const 0) (ref.null func) "
                 "(i32.const 1))))",
                 "tables"},
        KeepCase{"TableCopy",
                 "(module (table 1 funcref) (func (table.copy (i32.const 0) (i32.const 0) "
                 "(i32.const 1))))",
                 "tables"},
        KeepCase{
            "TableInit",
            "(module (table 1 funcref) (elem func) (func (table.init 0 (i32.const 0) (i32.const 0) "
            "(i32.const 0))))",
            "tables"},
        KeepCase{"ElemDrop", "(module (elem func) (func (elem.drop 0)))", "segments"},
        KeepCase{"DataDrop", "(module (memory 1) (data \"x\") (func (data.drop 0)))", "segments"},
        KeepCase{"Start", "(module (func $s) (start $s))", "start"},
        KeepCase{"ImportedMemory", "(module (memory (import \"a\" \"m\") 1))", "imports"},
        KeepCase{"ImportedTable", "(module (table (import \"a\" \"t\") 1 funcref))", "imports"},
        KeepCase{"ImportedGlobal", "(module (global (import \"a\" \"g\") (mut i32)))", "imports"}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(Module, SurvivesSerializing) {
  const auto prepared = prepare_module(wat_to_wasm(kCounter).value()).value();
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-module-").value();
  const fs::path file = folder.path() / "code";
  const Bytes code = Module::compile(shared_engine(), prepared.wasm).value().serialize().value();
  ASSERT_TRUE(write_file_atomically(file, code).ok());
  EXPECT_TRUE(Module::load(shared_engine(), file).ok());
  ASSERT_TRUE(write_file_atomically(file, as_bytes("garbage")).ok());
  EXPECT_EQ(Module::load(shared_engine(), file).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace sw::wasm
