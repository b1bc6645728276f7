// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// wasi-run: runs any WASI preview 1 command module on our host, so that outside test suites can be
// run
// against it. Folders given with --dir are read into memory first and written back at the end.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/unique_fd.h"
#include "sandbox_workers/wasi/wasi.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"
#include "wasi/host_folder.h"

namespace sw {
namespace {

constexpr int kWrongUse = 2;
constexpr int kTrapped = 134;  // as a process that aborted
constexpr int kFailed = 125;   // we could not run it

struct Arguments {
  std::string module;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::vector<std::string> dirs;
  std::string stdin_file;
};

/// Our own standard streams.
class ProcessOutput final : public wasi::OutputSink {
 public:
  wasi::Errno write(wasi::Stream stream, BytesView bytes) override {
    const int failed = write_all(static_cast<int>(stream), bytes);
    if (failed == 0) return wasi::Errno::kSuccess;
    if (stream == wasi::Stream::kStdout && !stdout_failure_) stdout_failure_ = failed;
    return wasi::errno_from_host(failed);
  }
  std::optional<int> stdout_failure() const { return stdout_failure_; }

 private:
  std::optional<int> stdout_failure_;
};

class ProcessInput final : public wasi::InputSource {
 public:
  explicit ProcessInput(UniqueFd file) : file_(std::move(file)) {}
  wasi::ErrnoOr<std::size_t> read(std::span<std::byte> to) override {
    for (;;) {
      const ssize_t count = ::read(poll_fd(), to.data(), to.size());
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) return wasi::errno_from_host(errno);
    }
  }
  int poll_fd() const override { return file_ ? file_.get() : STDIN_FILENO; }

 private:
  UniqueFd file_;
};

struct Host final : wasm::HostState {
  explicit Host(std::shared_ptr<const wasi::Layout> layout, wasi::WasiOptions options)
      : wasi(std::move(layout), clocks, std::move(options)) {}
  wasi::SystemClocks clocks;
  wasi::Wasi wasi;
};

/// The folders of --dir HOST::GUEST, each a tree of its own.
struct Folders {
  wasi::LayoutBuilder layout;
  std::vector<wasi::Preopen> preopens;
  std::vector<wasi::HostFolder> folders;

  Result<void> add(const std::string& dir);
  Result<void> write_back();
};

Result<void> Folders::add(const std::string& dir) {
  const std::size_t split = dir.find("::");
  const std::string host = dir.substr(0, split);
  const std::string guest = split == std::string::npos ? "/" : dir.substr(split + 2);
  const std::string path = wasi::FileSystem::normalize("/", guest);
  SW_TRY(const std::size_t number, layout.add_mount(path));
  (void)number;  // mounts are numbered as they come, as `folders` is
  // Outside suites may use more room than a sandbox gets.
  const wasi::TreeLimits limits{.file_bytes_max = std::uint64_t{4} << 30,
                                .tree_bytes_max = std::uint64_t{16} << 30};
  SW_TRY(wasi::HostFolder folder,
         wasi::HostFolder::load(host, limits, wasi::SystemClocks().realtime_ns()));
  for (const std::string& skipped : folder.skipped()) tell("wasi-run: not loaded: {}\n", skipped);
  folders.push_back(std::move(folder));
  preopens.push_back({guest, path});
  return {};
}

Result<void> Folders::write_back() {
  for (wasi::HostFolder& folder : folders) {
    SW_TRY(const auto done, folder.write_back());
    for (const std::string& reason : done.refused) tell("wasi-run: not written back: {}\n", reason);
    for (const std::string& reason : done.left) tell("wasi-run: {}\n", reason);
  }
  return {};
}

Result<Bytes> read_module(const std::string& path) {
  if (!path.ends_with(".wat")) return read_file(path);
  SW_TRY(const std::string text, read_text_file(path));
  return wasm::wat_to_wasm(text);
}

Result<std::unique_ptr<Host>> make_host(const Arguments& arguments, Folders& folders) {
  for (const std::string& dir : arguments.dirs) SW_CHECK_OK(folders.add(dir));
  // "/" need not be preopened here, so links that begin with it have no meaning to such guests.
  wasi::WasiOptions options{.preopens = folders.preopens,
                            .absolute_links = wasi::AbsoluteLinks::kRefuse};
  return std::make_unique<Host>(folders.layout.build(), std::move(options));
}

wasi::RunOptions run_options(const Arguments& arguments, const Folders& folders) {
  wasi::RunOptions run;
  run.args.push_back(std::filesystem::path(arguments.module).filename());
  run.args.insert(run.args.end(), arguments.args.begin(), arguments.args.end());
  run.env = arguments.env;
  run.limits.output_bytes_max = UINT64_MAX;
  for (std::size_t i = 0; i < folders.folders.size(); ++i) {
    if (i == 0) run.workspace = folders.folders[i].tree();
    else run.more_mounts.push_back(folders.folders[i].tree());
  }
  return run;
}

Result<void> call_start(wasm::Runtime& engine, const Bytes& wasm, Host& host) {
  SW_TRY(const wasm::Module module, wasm::Module::compile(engine, wasm));
  wasm::Linker linker(engine);
  SW_CHECK_OK(wasi::add_to_linker(linker, [](wasm::HostState& state) -> wasi::Wasi& {
    return static_cast<Host&>(state).wasi;
  }));
  // The module as it is, with its data and its start function: nothing is kept or put back.
  SW_TRY(const auto pre,
         wasm::InstancePre::create(engine, linker, module, wasm::StateFacts{}, nullptr));
  SW_TRY(const auto instance, pre->instantiate(host, {.memory_bytes_max = std::uint64_t{4} << 30}));
  SW_TRY(const auto start, instance->function<void()>("_start"));
  return instance->call(start);
}

Result<int> run(const Arguments& arguments) {
  SW_TRY(const Bytes wasm, read_module(arguments.module));
  UniqueFd stdin_file;
  if (!arguments.stdin_file.empty()) {
    stdin_file = UniqueFd(::open(arguments.stdin_file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!stdin_file) return errno_error(errno, "open " + arguments.stdin_file);
  }
  Folders folders;
  SW_TRY(const auto host, make_host(arguments, folders));
  ProcessOutput output;
  ProcessInput input(std::move(stdin_file));
  wasi::RunOptions options = run_options(arguments, folders);
  options.output = &output;
  options.input = &input;
  SW_CHECK_OK(host->wasi.start_run(std::move(options)));
  SW_TRY(const auto engine, wasm::Runtime::create({}));
  Result<void> ended;
  SW_CHECK_OK(wasm::run_on_guest_thread(engine->options(),
                                        [&] { ended = call_start(*engine, wasm, *host); }));
  SW_CHECK_OK(folders.write_back());
  const bool exited = !ended.ok() && ended.error().code == ErrorCode::kGuestExit;
  if (ended.ok() || exited) {
    const int status = exited ? ended.error().exit_code : 0;
    // A module may not look whether its output came through.
    if (status == 0 && output.stdout_failure()) return cannot_print(*output.stdout_failure());
    return status;
  }
  const Error& error = ended.error();
  if (error.code != ErrorCode::kGuestTrap && error.code != ErrorCode::kGuestStackOverflow)
    return error;
  tell("wasi-run: {}: {}\n", code_name(error.code), error.message);
  return kTrapped;
}

int fail(const Error& error) {
  tell("wasi-run: {}\n", error.message);
  return kFailed;
}

int run_program(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Run a WASI preview 1 command module. Folders are read into memory and written back at the "
      "end.");
  app.add_option("module", arguments.module, "MODULE.wasm, or .wat")->required();
  app.add_option("--arg", arguments.args, "Argument for the module")->allow_extra_args(false);
  app.add_option("--env", arguments.env, "NAME=VALUE for the module's environment")
      ->allow_extra_args(false);
  app.add_option("--dir", arguments.dirs,
                 "HOST::GUEST: a folder the module sees as GUEST (default /)")
      ->allow_extra_args(false);
  app.add_option("--stdin", arguments.stdin_file,
                 "File to use as the module's stdin, instead of this process's own");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) != 0) return kWrongUse;
    const auto printed = flush_stdout();
    return printed.ok() ? 0 : fail(printed.error());
  }
  const Result<int> status = run(arguments);
  if (status.ok()) return *status;
  return fail(status.error());
}

int main_with(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& problem) {
    return fail({ErrorCode::kInternal, problem.what(), 0});
  }
}

}  // namespace
}  // namespace sw

int main(int argc, char** argv) {
  sw::occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT: a closed pipe is an errno for the guest
  return sw::main_with(argc, argv);
}
