// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <tuple>

#include "sandbox_workers/base/thread_safety.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "sandbox_workers/wasm/image.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/wasm/linker.h"
#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"
#include "wasm/dirty_pages.h"

namespace sw::wasm {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Runtime& shared_engine() {
  static const auto runtime = Runtime::create({}).value();
  return *runtime;
}

Runtime& engine_with_checks() {
  static const auto runtime = Runtime::create({.stop_means = StopMeans::kEpoch}).value();
  return *runtime;
}

Runtime& runtime_of(StopMeans means) {
  return means == StopMeans::kEpoch ? engine_with_checks() : shared_engine();
}

/// Runs the test's body where guests may run.
void on_guest_thread(const std::function<void()>& body) {
  ASSERT_TRUE(run_on_guest_thread(shared_engine().options(), body).ok());
}

struct Guest {
  HostState host;
  std::shared_ptr<InstancePre> pre;
  std::unique_ptr<Instance> instance;
};

struct Setup {
  std::function<void(Linker&)> define = [](Linker&) {};
  bool with_image = false;
  std::uint64_t memory_bytes_max = std::uint64_t{64} << 20;
  StopMeans stop_means = StopMeans::kFault;
};

std::shared_ptr<const Image> image_of(BytesView memory) {
  auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-image-").value();
  EXPECT_TRUE(Image::write(folder.path() / "image", memory).ok());
  return Image::open(folder.path() / "image").value();
}

/// Prepares, compiles and instantiates a module; with an image of its memory right after its data
/// segments.
std::unique_ptr<Guest> make_guest(std::string_view wat, const Setup& setup = {}) {
  auto guest = std::make_unique<Guest>();
  const PreparedModule prepared = prepare_module(wat_to_wasm(wat).value()).value();
  Runtime& runtime = runtime_of(setup.stop_means);
  const Module module = Module::compile(runtime, prepared.wasm).value();
  Linker linker(runtime);
  setup.define(linker);
  guest->pre = InstancePre::create(runtime, linker, module, prepared.facts, nullptr).value();
  const InstanceLimits limits{.memory_bytes_max = setup.memory_bytes_max};
  guest->instance = guest->pre->instantiate(guest->host, limits).value();
  for (const DataSegment& segment : prepared.segments) {
    const auto to = guest->instance->memory().range(segment.offset, segment.bytes.size()).value();
    std::ranges::copy(segment.bytes, to.begin());
  }
  if (setup.with_image) {
    const auto image = image_of(guest->instance->memory().bytes());
    guest->instance.reset();
    guest->pre = InstancePre::create(runtime, linker, module, prepared.facts, image).value();
    guest->instance = guest->pre->instantiate(guest->host, limits).value();
  }
  return guest;
}

template <class F>
Function<F> find(Guest& guest, std::string_view name) {
  return guest.instance->function<F>(name).value();
}

constexpr std::string_view kCounter = R"((module
  (memory (export "memory") 2)
  (global $stack (mut i32) (i32.const 4096))
  (data (i32.const 16) "\2a\00\00\00")
  (func (export "get") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "set") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "set_global") (param i32) (global.set $stack (local.get 0)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "trap") unreachable)
  (func $deep (export "deep") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 0))
      (else (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1))))))) ))";

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

TEST(Instance, CallsWithTypesAndRefusesOtherSignatures) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
    EXPECT_EQ(guest->instance->function<void()>("get").error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(guest->instance->function<void()>("absent").error().code, ErrorCode::kNotFound);
  });
}

TEST(Instance, RefusesAThreadWithASmallStack) {
  auto guest = make_guest(kCounter);
  const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
  EXPECT_THAT(guest->instance->call(get, 16).error().message, HasSubstr("stack is too small"));
}

TEST(Instance, TrapsAreErrorsAndPoison) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto trap = find<void()>(*guest, "trap");
    const auto result = guest->instance->call(trap);
    EXPECT_EQ(result.error().code, ErrorCode::kGuestTrap);
    EXPECT_THAT(result.error().message, HasSubstr("unreachable"));
    EXPECT_EQ(guest->instance->call(trap).error().code, ErrorCode::kInternal);
    EXPECT_TRUE(guest->instance->poisoned());
  });
}

TEST(Instance, OutOfBoundsAccessIsATrap) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    EXPECT_EQ(guest->instance->call(get, 2 * 65536).error().code, ErrorCode::kGuestTrap);
  });
}

TEST(Instance, DeepRecursionEndsAsStackOverflowWellPastAHundredThousandFrames) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    const auto deep = find<std::int32_t(std::int32_t)>(*guest, "deep");
    EXPECT_EQ(guest->instance->call(deep, 1'000'000).value(), 1'000'000);
    EXPECT_EQ(guest->instance->call(deep, 1'000'000'000).error().code,
              ErrorCode::kGuestStackOverflow);
  });
}

TEST(Instance, GrowthPastTheLimitIsRefusedNotFatal) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.memory_bytes_max = 4 * 65536});
    const auto grow = find<std::int32_t(std::int32_t)>(*guest, "grow");
    EXPECT_EQ(guest->instance->call(grow, 2).value(), 2);
    EXPECT_EQ(guest->instance->call(grow, 1).value(), -1);
    EXPECT_EQ(guest->instance->refused_growths(), 1u);
    EXPECT_FALSE(guest->instance->poisoned());
    EXPECT_EQ(guest->instance->memory().size(), 4u * 65536);
  });
}

TEST(Instance, HostMemoryCountsAgainstTheLimitUntilItsScopeEnds) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.memory_bytes_max = 4 * 65536});  // of which it has two
    constexpr std::uint64_t kFree = 1 << 20;
    const auto grow = find<std::int32_t(std::int32_t)>(*guest, "grow");
    {
      const HostMemoryScope scope(*guest->instance);
      ASSERT_TRUE(guest->instance->charge(kFree).ok());
      ASSERT_TRUE(guest->instance->charge(65536).ok());
      {
        const HostMemoryScope inner(*guest->instance);
        ASSERT_TRUE(guest->instance->charge(65536).ok());
        EXPECT_EQ(guest->instance->charge(1).error().code, ErrorCode::kLimitExceeded);
        EXPECT_EQ(guest->instance->charge(UINT64_MAX).error().code, ErrorCode::kLimitExceeded);
        EXPECT_EQ(guest->instance->call(grow, 1).value(), -1);
        EXPECT_EQ(guest->instance->refused_growths(), 3u);
      }
      EXPECT_EQ(guest->instance->call(grow, 2).value(), -1);
      EXPECT_EQ(guest->instance->call(grow, 1).value(), 2);
    }
    EXPECT_EQ(guest->instance->call(grow, 1).value(), 3);
    // A limit that is set lower than what there is leaves no room.
    guest->instance->set_memory_bytes_max(65536);
    EXPECT_TRUE(guest->instance->charge(kFree).ok());
    EXPECT_EQ(guest->instance->charge(1).error().code, ErrorCode::kLimitExceeded);
  });
}

TEST(Instance, HostGrowsMemoryTheGuestsWay) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter);
    ASSERT_TRUE(guest->instance->grow_memory_to(3 * 65536 + 1).ok());
    EXPECT_EQ(guest->instance->memory().size(), 4u * 65536);
    const auto set = find<void(std::int32_t, std::int32_t)>(*guest, "set");
    EXPECT_TRUE(guest->instance->call(set, 4 * 65536 - 4, 1).ok());
  });
}

constexpr std::string_view kHostCaller = R"((module
  (import "env" "f" (func $f (param i32 i64 f64) (result i64)))
  (memory (export "memory") 1)
  (func (export "run") (result i64) (call $f (i32.const -1) (i64.const 7) (f64.const 0.5)))))";

TEST(Linker, PassesValuesAndReachesMemoryAndState) {
  on_guest_thread([] {
    auto guest = make_guest(
        kHostCaller, {.define = [](Linker& linker) {
          ASSERT_TRUE(linker
                          .define("env", "f",
                                  [](Caller& caller, std::uint32_t a, std::int64_t b, double c) {
                                    EXPECT_EQ(a, 0xFFFFFFFFu);
                                    EXPECT_EQ(c, 0.5);
                                    EXPECT_TRUE(caller.memory().store<std::uint32_t>(0, 99));
                                    EXPECT_FALSE(caller.memory().store<std::uint32_t>(65533, 99));
                                    EXPECT_FALSE(caller.memory().range(a, 2).has_value());
                                    return b * 6;
                                  })
                          .ok());
        }});
    EXPECT_EQ(guest->instance->call(find<std::int64_t()>(*guest, "run")).value(), 42);
    EXPECT_EQ(guest->instance->memory().load<std::uint32_t>(0), 99u);
  });
}

TEST(Linker, AnErrorOfAHostFunctionEndsTheRunWithThatError) {
  on_guest_thread([] {
    auto guest = make_guest(
        kHostCaller, {.define = [](Linker& linker) {
          ASSERT_TRUE(
              linker
                  .define("env", "f",
                          [](Caller&, std::int32_t, std::int64_t, double) -> Result<std::int64_t> {
                            return Error{ErrorCode::kGuestExit, "exit", 3};
                          })
                  .ok());
        }});
    const auto result = guest->instance->call(find<std::int64_t()>(*guest, "run"));
    EXPECT_EQ(result.error().code, ErrorCode::kGuestExit);
    EXPECT_EQ(result.error().exit_code, 3);
  });
}

TEST(Linker, AnExceptionOfAHostFunctionDoesNotCrossTheGuest) {
  on_guest_thread([] {
    auto guest = make_guest(
        kHostCaller, {.define = [](Linker& linker) {
          ASSERT_TRUE(linker
                          .define("env", "f",
                                  [](Caller&, std::int32_t, std::int64_t, double) -> std::int64_t {
                                    throw std::runtime_error("oops");
                                  })
                          .ok());
        }});
    const auto result = guest->instance->call(find<std::int64_t()>(*guest, "run"));
    EXPECT_EQ(result.error().code, ErrorCode::kInternal);
    EXPECT_THAT(result.error().message, HasSubstr("oops"));
  });
}

TEST(Linker, AMissingImportIsNamed) {
  const auto prepared = prepare_module(wat_to_wasm(kHostCaller).value()).value();
  const auto module = Module::compile(shared_engine(), prepared.wasm).value();
  const Linker linker(shared_engine());
  const auto pre = InstancePre::create(shared_engine(), linker, module, prepared.facts, nullptr);
  EXPECT_THAT(pre.error().message, HasSubstr("env::f"));
}

TEST(Linker, ASecondDefinitionIsRefused) {
  Linker linker(shared_engine());
  ASSERT_TRUE(linker.define("env", "f", [](Caller&) {}).ok());
  EXPECT_FALSE(linker.define("env", "f", [](Caller&) {}).ok());
}

TEST(Image, PreservesContentAndLeavesHoles) {
  Bytes memory(16 * kWasmPageBytes);
  memory[5 * kPageBytes + 3] = std::byte{7};
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-image-").value();
  ASSERT_TRUE(Image::write(folder.path() / "image", memory).ok());
  const auto image = Image::open(folder.path() / "image").value();
  EXPECT_TRUE(std::ranges::equal(image->bytes(), memory));
  struct stat info = {};
  ASSERT_EQ(::fstat(image->fd(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 64 * 1024);
}

TEST(Image, RefusesASizeNoMemoryHas) {
  const auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-image-").value();
  ASSERT_TRUE(write_file_atomically(folder.path() / "image", as_bytes("short")).ok());
  EXPECT_EQ(Image::open(folder.path() / "image").error().code, ErrorCode::kCorrupt);
}

TEST(Reset, PutsMemoryBackAndKeepsTheInstance) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    const auto set = find<void(std::int32_t, std::int32_t)>(*guest, "set");
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
      ASSERT_TRUE(guest->instance->call(set, 16, 7).ok());
      ASSERT_TRUE(guest->instance->call(set, 70000, 7).ok());
      const ResetStats stats = guest->instance->reset();
      EXPECT_EQ(stats.verdict, KeepVerdict::kKept);
      EXPECT_EQ(stats.pages_put_back, 2u);
      EXPECT_EQ(guest->instance->call(get, 70000).value(), 0);
    }
  });
}

TEST(Reset, DropsAnInstanceWhoseMemoryGrew) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    ASSERT_EQ(guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "grow"), 1).value(),
              2);
    ASSERT_TRUE(
        guest->instance->call(find<void(std::int32_t, std::int32_t)>(*guest, "set"), 2 * 65536, 5)
            .ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kMemoryGrew);
    // The slot itself is used again, at its size at rest and clean.
    guest->instance.reset();
    guest->instance = guest->pre->instantiate(guest->host, {}).value();
    EXPECT_EQ(guest->instance->memory().size(), 2u * 65536);
    ASSERT_EQ(guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "grow"), 1).value(),
              2);
    EXPECT_EQ(
        guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "get"), 2 * 65536).value(),
        0);
  });
}

TEST(Reset, DropsAnInstanceWithAChangedGlobal) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto set_global = find<void(std::int32_t)>(*guest, "set_global");
    ASSERT_TRUE(guest->instance->call(set_global, 1).ok());
    EXPECT_THAT(guest->instance->reason_not_at_rest(), HasSubstr("global"));
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kGlobalChanged);
    ASSERT_TRUE(guest->instance->call(set_global, 4096).ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
  });
}

TEST(Reset, DropsAnInstanceThatTrapped) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    EXPECT_FALSE(guest->instance->call(find<void()>(*guest, "trap")).ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kEndedAbnormally);
  });
}

TEST(Reset, DropsAnInstanceOfAModuleThatWritesTables) {
  on_guest_thread([] {
    auto guest = make_guest(
        R"((module (memory (export "memory") 1) (table 1 funcref)
             (func (export "f") (table.set (i32.const 0) (ref.null func)))))",
        {.with_image = true});
    ASSERT_TRUE(guest->instance->call(find<void()>(*guest, "f")).ok());
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kNotKeepable);
  });
}

TEST(Reset, AManyPageRunIsPutBackToo) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (memory (export "memory") 64)
        (func (export "fill") (memory.fill (i32.const 0) (i32.const 255) (i32.const 4194304)))
        (func (export "get") (param i32) (result i32) (i32.load (local.get 0)))))",
                            {.with_image = true});
    ASSERT_TRUE(guest->instance->call(find<void()>(*guest, "fill")).ok());
    const ResetStats stats = guest->instance->reset();
    EXPECT_EQ(stats.verdict, KeepVerdict::kKept);
    EXPECT_EQ(stats.pages_put_back, 1024u);
    EXPECT_EQ(
        guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "get"), 4194300).value(), 0);
  });
}

TEST(Reset, ATinyRunAfterALargeOneTouchesAsFewPagesAsBefore) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (memory (export "memory") 128)
        (func (export "fill") (memory.fill (i32.const 65536) (i32.const 255) (i32.const 4194304)))
        (func (export "tiny") (i32.store (i32.const 0) (i32.const 1)))))",
                            {.with_image = true});
    const auto tiny = find<void()>(*guest, "tiny");
    const auto touched = [&] {
      EXPECT_TRUE(guest->instance->call(tiny).ok());
      std::vector<ByteRange> ranges;
      EXPECT_TRUE(guest->instance->dirty_pages(ranges).ok());
      EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
      std::size_t pages = 0;
      for (const ByteRange& range : ranges) pages += (range.end - range.begin) / kPageBytes;
      return pages;
    };
    EXPECT_EQ(touched(), 1u);
    ASSERT_TRUE(guest->instance->call(find<void()>(*guest, "fill")).ok());
    ASSERT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
    EXPECT_EQ(touched(), 1u);
  });
}

TEST(Reset, PagesThatNoRunChangesAnyMoreAreGivenBackInTheEnd) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto set = find<void(std::int32_t, std::int32_t)>(*guest, "set");
    std::vector<ByteRange> ranges;
    ASSERT_TRUE(guest->instance->call(set, 70000, 7).ok());
    for (int round = 0; round < 250; ++round) {
      ASSERT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
      ASSERT_TRUE(guest->instance->call(set, 16, round).ok());
    }
    ASSERT_TRUE(guest->instance->dirty_pages(ranges).ok());
    EXPECT_THAT(ranges, ElementsAre(ByteRange{0, kPageBytes}));
  });
}

// What else is present is clean, and would make every scan for dirty pages longer.
TEST(Slots, ReadingBringsInTheTouchedPagesOnly) {
  const UniqueFd probe(
      static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = 1 << 15;
  if (!probe || ::ioctl(probe.get(), UFFDIO_API, &api) != 0) {
    GTEST_SKIP() << "no asynchronous write protection here: the kernel maps pages in groups";
  }
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    const auto get = find<std::int32_t(std::int32_t)>(*guest, "get");
    EXPECT_EQ(guest->instance->call(get, 16).value(), 42);
    EXPECT_EQ(guest->instance->call(get, 70000).value(), 0);
    const auto bytes = guest->instance->memory().bytes();
    std::vector<std::uint64_t> entries(bytes.size() / kPageBytes);
    const UniqueFd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / kPageBytes;
    const std::size_t length = entries.size() * sizeof entries[0];
    ASSERT_EQ(::pread(pagemap.get(), entries.data(), length,
                      static_cast<off_t>(first * sizeof entries[0])),
              static_cast<ssize_t>(length));
    EXPECT_EQ(std::ranges::count_if(entries, [](std::uint64_t entry) { return entry >> 63 != 0; }),
              2);
  });
}

// Exceptions allocate in the GC heap, whose memory is not the module's own.
TEST(Instance, ExceptionsWorkInAKeptInstance) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (memory (export "memory") 1) (tag $t (param i32))
        (func $throw (param i32) (throw $t (local.get 0)))
        (func (export "f") (param i32) (result i32)
          (block $caught (result i32) (try_table (catch $t $caught) (call $throw (local.get 0))) (i32.const -1)))))",
                            {.with_image = true});
    const auto f = find<std::int32_t(std::int32_t)>(*guest, "f");
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(guest->instance->call(f, i).value(), i);
      ASSERT_EQ(guest->instance->reset().verdict, KeepVerdict::kKept);
    }
  });
}

/// Calls `stop` until the call in the background is over.
Result<void> stop_while_running(Guest& guest, const Function<void()>& function) {
  Mutex mutex;
  CondVar changed;
  bool over = false;  // guarded by `mutex`
  std::thread stopper([&] {
    MutexLock lock(mutex);
    // A try that meets host code is undone by it, so there is a pause in which the host code can go
    // on.
    while (!over) {
      if (!changed.wait_for(lock, std::chrono::milliseconds(1))) guest.instance->stop();
    }
  });
  auto result = guest.instance->call(function);
  {
    const MutexLock lock(mutex);
    over = true;
  }
  changed.notify_one();
  stopper.join();
  return result;
}

struct StopCase {
  const char* name;
  const char* body;
};
class Stop : public ::testing::TestWithParam<std::tuple<StopMeans, StopCase>> {};

TEST_P(Stop, EndsALoopAndTheSlotIsUsableAgain) {
  on_guest_thread([] {
    const std::string wat = std::string(R"((module (import "env" "touch" (func $touch))
        (memory (export "memory") 64) (func (export "loop") (loop $l )") +
                            std::get<StopCase>(GetParam()).body + R"( (br $l)))
        (func (export "get") (result i32) (i32.load (i32.const 0)))))";
    auto guest =
        make_guest(wat, {.define =
                             [](Linker& linker) {
                               ASSERT_TRUE(linker
                                               .define("env", "touch",
                                                       [](Caller& caller) {
                                                         // Host code meets the blocked memory as
                                                         // well.
                                                         std::ranges::fill(
                                                             caller.memory().bytes().first(10'000),
                                                             std::byte{1});
                                                       })
                                               .ok());
                             },
                         .with_image = true,
                         .stop_means = std::get<StopMeans>(GetParam())});
    const auto result = stop_while_running(*guest, find<void()>(*guest, "loop"));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kGuestStopped);
    EXPECT_EQ(guest->instance->reset().verdict, KeepVerdict::kEndedAbnormally);
    guest->instance.reset();
    guest->instance = guest->pre->instantiate(guest->host, {}).value();
    EXPECT_EQ(guest->instance->call(find<std::int32_t()>(*guest, "get")).value(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, Stop,
    ::testing::Combine(
        ::testing::Values(StopMeans::kFault, StopMeans::kEpoch),
        ::testing::Values(
            StopCase{"Load", "(drop (i32.load (i32.const 8)))"},
            StopCase{"Store", "(i32.store (i32.const 8) (i32.const 1))"},
            // memory.fill and memory.copy run in Wasmtime's own code, where a fault must not end
            // the process. Most tries meet that code; were it more, a busy machine would take long
            // to come to one that does not.
            StopCase{"Fill",
                     "(memory.fill (i32.const 0) (i32.const 1) (i32.const 10000)) (drop (i32.load "
                     "(i32.const 8)))"},
            StopCase{"Copy",
                     "(memory.copy (i32.const 0) (i32.const 8) (i32.const 10000)) (drop (i32.load "
                     "(i32.const 8)))"},
            // A short copy is a few loads and stores in the guest's code, of which Wasmtime knows
            // that they cannot trap.
            StopCase{"ShortCopy",
                     "(memory.copy (i32.const 64) (i32.const 200) (i32.const 40)) (drop (i32.load "
                     "(i32.const 8)))"},
            StopCase{"HostFunction", "(call $touch)"})),
    [](const auto& param_info) {
      const bool is_epoch = std::get<StopMeans>(param_info.param) == StopMeans::kEpoch;
      return std::string(std::get<StopCase>(param_info.param).name) +
             (is_epoch ? "ByEpoch" : "ByFault");
    });

TEST(StopByEpoch, EndsALoopThatTouchesNoMemory) {
  on_guest_thread([] {
    auto guest = make_guest(R"((module (func (export "loop") (loop $l (br $l)))))",
                            {.stop_means = StopMeans::kEpoch});
    EXPECT_EQ(stop_while_running(*guest, find<void()>(*guest, "loop")).error().code,
              ErrorCode::kGuestStopped);
  });
}

TEST(StopByEpoch, LetsOtherInstancesOfTheEngineGoOn) {
  constexpr std::string_view kSum = R"((module (import "env" "at_work" (func $at_work))
      (func (export "loop") (loop $l (br $l)))
      (func (export "sum") (param $n i32) (result i64) (local $s i64)
        (call $at_work)
        (loop $l (local.set $s (i64.add (local.get $s) (i64.extend_i32_u (local.get $n))))
          (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.get $s))))";
  std::latch at_work(1);
  const auto define = [&](Linker& linker) {
    ASSERT_TRUE(linker.define("env", "at_work", [&](Caller&) { at_work.count_down(); }).ok());
  };
  std::thread beside([&] {
    on_guest_thread([&] {
      auto guest = make_guest(kSum, {.define = define, .stop_means = StopMeans::kEpoch});
      const auto sum =
          guest->instance->call(find<std::int64_t(std::int32_t)>(*guest, "sum"), 100'000'000);
      ASSERT_TRUE(sum.ok()) << sum.error().message;
      EXPECT_EQ(sum.value(), 5'000'000'050'000'000);
    });
  });
  at_work.wait();
  on_guest_thread([&] {
    for (int i = 0; i < 20; ++i) {
      auto guest = make_guest(kSum, {.define = define, .stop_means = StopMeans::kEpoch});
      EXPECT_EQ(stop_while_running(*guest, find<void()>(*guest, "loop")).error().code,
                ErrorCode::kGuestStopped);
    }
  });
  beside.join();
}

TEST(Stop, DoesNothingBetweenCalls) {
  on_guest_thread([] {
    auto guest = make_guest(kCounter, {.with_image = true});
    guest->instance->stop();
    EXPECT_FALSE(guest->instance->while_running([](MemoryView) { FAIL(); }));
    EXPECT_EQ(guest->instance->call(find<std::int32_t(std::int32_t)>(*guest, "get"), 16).value(),
              42);
  });
}

class DirtyPages : public ::testing::TestWithParam<DirtyMethod> {};

/// A private mapping of a random image, followed by anonymous memory, as a slot has it.
struct Mapping {
  std::shared_ptr<const Image> image;
  std::span<std::byte> memory;

  explicit Mapping(std::mt19937& random) {
    Bytes content(16 * kWasmPageBytes);
    for (std::byte& byte : content) byte = static_cast<std::byte>(random());
    image = image_of(content);
    const std::size_t size = 2 * content.size();
    auto* base = static_cast<std::byte*>(
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mmap(base, content.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                     image->fd(), 0),
              base);
    memory = {base, size};
  }
  ~Mapping() { ::munmap(memory.data(), memory.size()); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
};

std::vector<ByteRange> scan(DirtyMethod method, const Mapping& mapping) {
  std::vector<ByteRange> ranges;
  auto scanner = DirtyPageScanner::create(method);
  EXPECT_TRUE(scanner.ok() &&
              (*scanner)->scan(mapping.memory, mapping.image->bytes(), ranges).ok());
  return ranges;
}

bool covers(const std::vector<ByteRange>& outer, const std::vector<ByteRange>& inner) {
  return std::ranges::all_of(inner, [&](const ByteRange& range) {
    return std::ranges::any_of(
        outer, [&](const ByteRange& o) { return o.begin <= range.begin && range.end <= o.end; });
  });
}

TEST(DirtyPages, TheThreeMethodsAgree) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  if (!DirtyPageScanner::create(DirtyMethod::kPagemapScan).ok()) {
    // An older kernel: the fast method must say so and the others must still agree.
    EXPECT_NE(DirtyPageScanner::create()->method(), DirtyMethod::kPagemapScan);
  }
  for (int round = 0; round < 20; ++round) {
    const Mapping mapping(random);
    for (int i = 0; i < 40; ++i) {
      const std::size_t at = random() % mapping.memory.size();
      if (random() % 3 == 0) {
        [[maybe_unused]] volatile std::byte read_only = mapping.memory[at];
      } else if (random() % 3 == 0) {
        volatile std::byte* same = &mapping.memory[at];  // written with the value it has
        *same = *same;
      } else {
        mapping.memory[at] ^= std::byte{1};
      }
    }
    // Comparing comes last: reading anonymous memory maps it, which the kernel counts as written.
    const auto read = scan(DirtyMethod::kPagemapRead, mapping);
    if (DirtyPageScanner::create(DirtyMethod::kPagemapScan).ok()) {
      EXPECT_EQ(scan(DirtyMethod::kPagemapScan, mapping), read);
    }
    EXPECT_TRUE(covers(read, scan(DirtyMethod::kCompare, mapping)));
  }
}

TEST(DirtyPages, AnUntouchedMappingIsClean) {
  std::mt19937 random(1);
  const Mapping mapping(random);
  EXPECT_THAT(scan(DirtyMethod::kPagemapRead, mapping), IsEmpty());
  EXPECT_THAT(scan(DirtyMethod::kCompare, mapping), IsEmpty());
}

TEST(DirtyPages, MoreRangesThanOneRequestHolds) {
  std::mt19937 random(1);
  Bytes content(4096 * kPageBytes);
  const auto image = image_of(content);
  auto* base = static_cast<std::byte*>(
      ::mmap(nullptr, content.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, image->fd(), 0));
  for (std::size_t page = 0; page < 4096; page += 2) base[page * kPageBytes] = std::byte{1};
  std::vector<ByteRange> ranges;
  ASSERT_TRUE(
      DirtyPageScanner::create()->scan({base, content.size()}, image->bytes(), ranges).ok());
  EXPECT_EQ(ranges.size(), 2048u);
  ::munmap(base, content.size());
}

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
