// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A guest for tests: a module that imports all 46 functions and exports each again, so that a test
// can call them one by one as a guest does, through Wasm.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/wasi/wasi.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/wasm/linker.h"
#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"
#include "wasi/descriptors.h"
#include "wasi/test_support.h"

namespace sw::wasi {

struct FunctionSignature {
  const char* name;
  const char* params;  ///< i: i32, I: i64
};

inline constexpr FunctionSignature kFunctions[] = {
    {"args_get", "ii"},
    {"args_sizes_get", "ii"},
    {"clock_res_get", "ii"},
    {"clock_time_get", "iIi"},
    {"environ_get", "ii"},
    {"environ_sizes_get", "ii"},
    {"fd_advise", "iIIi"},
    {"fd_allocate", "iII"},
    {"fd_close", "i"},
    {"fd_datasync", "i"},
    {"fd_fdstat_get", "ii"},
    {"fd_fdstat_set_flags", "ii"},
    {"fd_fdstat_set_rights", "iII"},
    {"fd_filestat_get", "ii"},
    {"fd_filestat_set_size", "iI"},
    {"fd_filestat_set_times", "iIIi"},
    {"fd_pread", "iiiIi"},
    {"fd_prestat_dir_name", "iii"},
    {"fd_prestat_get", "ii"},
    {"fd_pwrite", "iiiIi"},
    {"fd_read", "iiii"},
    {"fd_readdir", "iiiIi"},
    {"fd_renumber", "ii"},
    {"fd_seek", "iIii"},
    {"fd_sync", "i"},
    {"fd_tell", "ii"},
    {"fd_write", "iiii"},
    {"path_create_directory", "iii"},
    {"path_filestat_get", "iiiii"},
    {"path_filestat_set_times", "iiiiIIi"},
    {"path_link", "iiiiiii"},
    {"path_open", "iiiiiIIii"},
    {"path_readlink", "iiiiii"},
    {"path_remove_directory", "iii"},
    {"path_rename", "iiiiii"},
    {"path_symlink", "iiiii"},
    {"path_unlink_file", "iii"},
    {"poll_oneoff", "iiii"},
    {"proc_exit", "i"},
    {"proc_raise", "i"},
    {"random_get", "ii"},
    {"sched_yield", ""},
    {"sock_accept", "iii"},
    {"sock_recv", "iiiiii"},
    {"sock_send", "iiiii"},
    {"sock_shutdown", "ii"},
};
static_assert(std::size(kFunctions) == 46);

inline constexpr std::uint64_t kGuestMemoryBytes = 65536;

/// Arguments are passed in memory, eight bytes each from address 0, so that one way to call fits
/// all signatures.
inline std::string guest_wat() {
  std::string imports;
  std::string exports;
  for (const FunctionSignature& function : kFunctions) {
    std::string params;
    std::string loads;
    for (std::size_t i = 0; function.params[i] != '\0'; ++i) {
      const std::string type = function.params[i] == 'i' ? "i32" : "i64";
      params += " " + type;
      loads += " (" + type + ".load (i32.const " + std::to_string(8 * i) + "))";
    }
    const std::string name = function.name;
    const bool returns = name != "proc_exit";
    imports += "(import \"wasi_snapshot_preview1\" \"" + name + "\" (func $" + name +
               (params.empty() ? "" : " (param" + params + ")") + (returns ? " (result i32)" : "") +
               "))\n";
    exports += "(func (export \"" + name + "\") (result i32) (call $" + name + loads + ")" +
               (returns ? "" : " (unreachable)") + ")\n";
  }
  return "(module\n" + imports + "(memory (export \"memory\") 1)\n" + exports + ")";
}

class GuestTest : public ::testing::Test {
 protected:
  struct Host final : wasm::HostState {
    Host(std::shared_ptr<const Layout> layout, const Clocks& clocks, WasiOptions options)
        : wasi(std::move(layout), clocks, std::move(options)) {}
    Wasi wasi;
  };

  GuestTest() { start({}); }

  /// A new instance. Called again, it replaces the first.
  void start(RunOptions run, WasiOptions options = {}) {
    instance_.reset();
    host_ = std::make_unique<Host>(standard_layout().build(), clocks(), std::move(options));
    if (!run.workspace)
      run.workspace = std::make_shared<Tree>(TreeLimits{}, clocks().realtime_ns());
    workspace_ = run.workspace;
    if (!run.output) run.output = &output_;
    const auto started = host_->wasi.start_run(std::move(run));
    ASSERT_TRUE(started.ok()) << started.error().message;
    auto instance = pre().instantiate(*host_, {.memory_bytes_max = kGuestMemoryBytes});
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    instance_ = *std::move(instance);
  }

  /// Tests that need time to pass give other clocks.
  virtual const Clocks& clocks() { return fixed_clocks_; }

  Wasi& wasi() { return host_->wasi; }
  FileSystem& files() { return host_->wasi.files(); }

  /// On a thread where guests may run.
  Result<Errno> call_here(std::string_view name, const std::vector<std::uint64_t>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      EXPECT_TRUE(memory().store(static_cast<std::uint32_t>(8 * i), arguments[i]));
    }
    SW_TRY(const auto function, instance_->function<std::uint32_t()>(name));
    SW_TRY(const std::uint32_t answer, instance_->call(function));
    return static_cast<Errno>(answer);
  }
  /// From the test's own thread, whose stack is too small for guests.
  Result<Errno> call_raw(std::string_view name, const std::vector<std::uint64_t>& arguments) {
    Result<Errno> answer = Error{};
    const auto ran =
        wasm::run_on_guest_thread(engine().options(), [&] { answer = call_here(name, arguments); });
    EXPECT_TRUE(ran.ok());
    return answer;
  }
  Errno call(std::string_view name, const std::vector<std::uint64_t>& arguments) {
    auto answer = call_raw(name, arguments);
    EXPECT_TRUE(answer.ok()) << name << ": " << answer.error().message;
    return answer.ok() ? *answer : Errno::kIo;
  }

  wasm::MemoryView memory() { return instance_->memory(); }
  template <class T>
  T load(std::uint32_t address) {
    return memory().load<T>(address).value();
  }
  std::uint32_t u32(std::uint32_t address) { return load<std::uint32_t>(address); }
  std::uint64_t u64(std::uint32_t address) { return load<std::uint64_t>(address); }
  std::string text(std::uint32_t address, std::size_t length) {
    return std::string(as_text(memory().range(address, length).value()));
  }
  void put(std::uint32_t address, std::string_view bytes) {
    const auto to = memory().range(address, bytes.size()).value();
    std::copy(as_bytes(bytes).begin(), as_bytes(bytes).end(), to.begin());
  }
  template <class T>
  void store(std::uint32_t address, T value) {
    ASSERT_TRUE(memory().store(address, value));
  }

  // Addresses that tests use; the arguments lie below 128.
  static constexpr std::uint32_t kResult = 128;
  static constexpr std::uint32_t kIovs = 256;
  static constexpr std::uint32_t kPath = 1024;
  static constexpr std::uint32_t kPath2 = 6144;
  static constexpr std::uint32_t kBuffer = 16384;

  /// One buffer at kBuffer, described at kIovs.
  void buffer(std::uint32_t length) {
    store(kIovs, kBuffer);
    store(kIovs + 4, length);
  }
  void buffer(std::string_view bytes) {
    put(kBuffer, bytes);
    buffer(static_cast<std::uint32_t>(bytes.size()));
  }

  struct Open {
    std::uint32_t oflags = 0;
    Rights base = rights::kFile;
    Rights inheriting = 0;
    std::uint32_t flags = 0;
    std::uint32_t lookup = 1;
    std::uint32_t at = 3;
  };
  Errno open_errno(std::string_view path, const Open& open) {
    put(kPath, path);
    return call("path_open", {open.at, open.lookup, kPath, path.size(), open.oflags, open.base,
                              open.inheriting, open.flags, kResult});
  }
  std::uint32_t open(std::string_view path, const Open& how) {
    EXPECT_EQ(open_errno(path, how), Errno::kSuccess) << path;
    return u32(kResult);
  }
  std::uint32_t open(std::string_view path) { return open(path, Open{}); }
  std::uint32_t open_directory(std::string_view path) {
    return open(
        path,
        {.oflags = 2, .base = rights::kDirectory, .inheriting = rights::kDirectoryInheriting});
  }
  Errno write(std::uint32_t fd, std::string_view bytes) {
    buffer(bytes);
    return call("fd_write", {fd, kIovs, 1, kResult});
  }
  /// What a read of at most `length` bytes gives, or the error's name.
  std::string read(std::uint32_t fd, std::uint32_t length = 100) {
    buffer(length);
    const Errno answer = call("fd_read", {fd, kIovs, 1, kResult});
    return answer == Errno::kSuccess ? text(kBuffer, u32(kResult))
                                     : std::string(errno_name(answer));
  }
  Errno host_write(std::string_view path, std::string_view bytes) {
    return files().write_file(path, as_bytes(bytes));
  }
  std::string host_read(std::string_view path) {
    const auto bytes = files().read_file(path);
    return bytes.ok() ? std::string(as_text(bytes->bytes)) : std::string(errno_name(bytes.error()));
  }

  static wasm::Runtime& engine() {
    static const auto engine = wasm::Runtime::create({.stack_bytes_max = 1 << 20}).value();
    return *engine;
  }
  static wasm::InstancePre& pre() {
    static const auto pre = [] {
      wasm::Linker linker(engine());
      const auto added = add_to_linker(
          linker, [](wasm::HostState& host) -> Wasi& { return static_cast<Host&>(host).wasi; });
      EXPECT_TRUE(added.ok()) << added.error().message;
      const auto module =
          wasm::Module::compile(engine(), wasm::wat_to_wasm(guest_wat()).value()).value();
      return wasm::InstancePre::create(engine(), linker, module, {}, nullptr).value();
    }();
    return *pre;
  }

  FixedClocks fixed_clocks_;
  BufferSink output_;
  std::shared_ptr<Tree> workspace_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<wasm::Instance> instance_;
};

}  // namespace sw::wasi
