// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Every function that the host gives to the languages, beside those of WASI
// (src/wasi/largest_calls_test.cc), with the largest arguments that programs can give it: a run
// that is to end ends soon, and what the host takes for it stays within the run's memory.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/test_allocations.h"
#include "engine/bakeable_language.h"
#include "engine/embedded_engine.h"
#include "engine/javascript/host_api.h"
#include "engine/result_json.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30;
// Beside what counts against the guest's limit: blocks for input and output, the answer's head, the
// session itself.
constexpr std::uint64_t kHostBytesMax = std::uint64_t{64} << 20;
// From the limit to the end. The watchdog looks every few milliseconds, but on a busy machine it
// may have to wait. What cannot be stopped takes several times as long.
constexpr std::chrono::nanoseconds kCpuMax = 10ms;
constexpr std::chrono::nanoseconds kCpuPastLimitMax = 1s;

struct Case {
  std::string function;          ///< of the host, "module.name" where it is an import of its own
  std::string prepare;           ///< a cell that makes the arguments
  std::string call;              ///< a cell that reaches the function
  std::uint64_t file_bytes = 0;  ///< that the call writes: files have limits of their own
};

constexpr const char* kBytes = "var big = new Uint8Array(3e8).fill(255); 0";
constexpr const char* kText = "var text = 'x'.repeat(2e8) + ''; text.charCodeAt(5)";
constexpr const char* kLone = "var text = '\\ud800'.repeat(8e7); text.charCodeAt(5)";
constexpr const char* kFile =
    "{ const fd = fs.openSync('/workspace/f', 'w'), part = new Uint8Array(1e7).fill(255);"
    " for (let i = 0; i < 26; ++i) fs.writeSync(fd, part); fs.closeSync(fd) } 0";
constexpr const char* kOpen =
    "{ const fd = fs.openSync('/workspace/f', 'w'), part = new Uint8Array(1e7).fill(255);"
    " for (let i = 0; i < 26; ++i) fs.writeSync(fd, part); fs.closeSync(fd) }"
    " var open = fs.openSync('/workspace/f', 'r+'); 0";
constexpr const char* kFolder =
    "for (let i = 0; i < 50000; ++i) fs.writeFileSync(`/workspace/${i}${'x'.repeat(200)}`, ''); 0";
constexpr const char* kModule =
    "{ const fd = fs.openSync('/workspace/m.js', 'w'), part = '//' + 'x'.repeat(1e7) + '\\n';"
    " for (let i = 0; i < 25; ++i) fs.writeSync(fd, part); fs.closeSync(fd) } 0";
constexpr std::uint64_t kFileBytes = 300'000'000;

const std::vector<Case>& javascript_cases() {
  static const std::vector<Case> all = {
      {"print", kText, "console.log(text)"},
      {"print", kLone, "console.log(text)"},
      {"write", kLone, "process.stdout.write(text)"},
      {"writeBytes", kBytes, "process.stdout.write(big)"},
      {"now", "", "performance.now()"},
      {"start", "", "performance.timeOrigin"},
      {"arm", "", "for (;;) setTimeout(() => 0, 1e9)"},
      {"environment", "", "Object.keys(process.env).length"},
      {"argumentList", "", "process.argv.length"},
      {"fileName", "", "process.argv[1]"},
      {"cwd", "", "process.cwd()"},
      {"chdir", kText, "process.chdir(text)"},
      {"exit", "", "process.exit(1e9)"},
      {"setExitCode", "", "process.exitCode = 7"},
      {"classId", kBytes, "require('util').inspect(big).length"},
      {"isProxy", "", "require('util').inspect(new Proxy({}, {}), { showProxy: true })"},
      {"proxyTarget", "", "require('util').inspect(new Proxy({}, {}), { showProxy: true })"},
      {"proxyHandler", "", "require('util').inspect(new Proxy({}, {}), { showProxy: true })"},
      {"promiseState", "", "require('util').inspect(Promise.resolve(1))"},
      {"promiseResult", kText, "require('util').inspect(Promise.resolve(text)).length"},
      {"memorySize", "", "process.memoryUsage().rss"},
      {"memoryUsed", "", "process.memoryUsage().heapUsed"},
      {"evalScript", kModule, "require('/workspace/m.js')"},
      {"utf8Encode", kText, "new TextEncoder().encode(text).length"},
      {"utf8Encode", kLone, "new TextEncoder().encode(text).length"},
      {"utf8Decode", kBytes, "new TextDecoder().decode(big).length"},
      {"utf8Valid", "var big = new Uint8Array(3e8); 0",
       "new TextDecoder('utf-8', { fatal: true }).decode(big).length"},
      {"randomFill", kBytes, "require('crypto').randomFillSync(big).length"},
      {"digest", kBytes, "await crypto.subtle.digest('SHA-512', big)"},
      {"readAll", kFile, "fs.readFileSync('/workspace/f').length"},
      {"readAll", "", "fs.readFileSync('/dev/zero').length"},
      {"readText", kFile, "fs.readFileSync('/workspace/f', 'utf8').length"},
      {"readAllFd", kOpen, "fs.readFileSync(open).length"},
      {"readTextFd", kOpen, "fs.readFileSync(open, 'utf8').length"},
      {"writeText", kLone, "fs.writeFileSync('/workspace/g', text)", kFileBytes},
      {"writeText", kText, "fs.appendFileSync('/workspace/g', text)", 2 * kFileBytes},
      {"writeData", kBytes, "fs.writeFileSync('/workspace/g', big.subarray(0, 2.6e8))", kFileBytes},
      {"open", kText, "fs.openSync(text)"},
      {"close", kOpen, "fs.unlinkSync('/workspace/f'); fs.closeSync(open)"},
      {"read", kBytes, "fs.readSync(fs.openSync('/dev/urandom'), big)"},
      {"writeAt", kBytes, "fs.writeSync(fs.openSync('/workspace/g', 'w'), big)", 2 * kFileBytes},
      {"stat", kText, "fs.statSync(text)"},
      {"fstat", kOpen, "fs.fstatSync(open).size"},
      {"readdir", kFolder, "fs.readdirSync('/workspace').length"},
      {"readlink", kText, "fs.readlinkSync(text)"},
      {"realpath", kText, "fs.realpathSync(text)"},
      {"mkdir", kText, "fs.mkdirSync(text)"},
      {"rmdir", kText, "fs.rmdirSync(text)"},
      {"unlink", kText, "fs.unlinkSync(text)"},
      {"rename", kText, "fs.renameSync(text, text)"},
      {"link", kText, "fs.linkSync(text, text)"},
      {"symlink", kText, "fs.symlinkSync(text, text)"},
      {"truncate", "fs.writeFileSync('/workspace/g', 'x')",
       "fs.truncateSync('/workspace/g', 268435456)", kFileBytes},
      {"ftruncate", "var open = fs.openSync('/workspace/g', 'w'); 0",
       "fs.ftruncateSync(open, 268435456)", kFileBytes},
      {"utimes", kText, "fs.utimesSync(text, 1, 1)"},
      {"env.host_call", "", "console.log(1)"},
      {"env.host_interrupt", "", "for (;;) {}"},
      {"env.host_promise_rejection", "", "for (;;) Promise.reject(1).catch(() => 0)"},
      {"env.host_module_normalize", kModule, "await import('/workspace/m.js')"},
      {"env.host_module_load", kModule, "await import('/workspace/m.js')"},
      {"env.host_get_timezone_offset", "", "for (;;) new Date(8.64e15).getHours()"},
      {"the value", kText, "text"},
      {"the value", "var text = \"'\".repeat(2e8); text.charCodeAt(5)", "text"},
      {"the value", "var list = new Array(1e7).fill(12345678); 0", "list"},
  };
  return all;
}

const std::map<std::string, std::vector<Case>>& driver_cases() {
  static const std::map<std::string, std::vector<Case>> all = {
      {"python", {{"host.call", "text = 'x' * 200_000_000; 0", "text"}}},
      {"perl",
       {{"sw.answer", "our $size = 200_000_000; our $text = 'x' x $size; 0", "$text"},
        {"sw.alarm", "", "alarm 4e9; 1 while 1"},
        {"sw.fd_dup", "", "my @all; while (open my $f, '>&', \\*STDOUT) { push @all, $f } 1"}}},
      {"ruby",
       {{"sw.answer", "$text = 'x' * 200_000_000; 0", "$text"},
        {"sw.alarm", "", "require 'timeout'; Timeout.timeout(10 ** 9) { loop { } }"},
        {"sw.fd_dup", "", "all = []; loop { all << $stdout.dup }"},
        // The guest's own, which are refused.
        {"asyncify.start_unwind", "", "1"},
        {"asyncify.start_rewind", "", "1"},
        {"asyncify.stop_unwind", "", "1"},
        {"asyncify.stop_rewind", "", "1"}}},
  };
  return all;
}

const std::vector<Case>& cases_of(const std::string& language) {
  return language == "javascript" ? javascript_cases() : driver_cases().at(language);
}

class HostCalls : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_end(const Case& one) {
    SCOPED_TRACE(fmt::format("{}: {}", one.function, one.call));
    auto session = engine_->start_session().value();
    RunOutput output;
    sw::Run request;
    request.files = Workspace(wasi::TreeLimits{}, 0).for_run();
    request.limits = {.wall_max = 600s, .grace = 0s, .memory_bytes_max = kMemoryBytes};
    request.limits.result_bytes_max = kMemoryBytes;
    if (!one.prepare.empty()) {
      request.code = one.prepare;
      const auto prepared = session->execute(request, output);
      ASSERT_TRUE(prepared.ok() && prepared->ending == Ending::kCompleted)
          << (prepared.ok() && prepared->error ? prepared->error->message : "");
    }
    request.code = one.call;
    request.limits.cpu_max = kCpuMax;
    Outcome outcome;
    const std::size_t host_bytes = allocation_peak([&] {
      auto ran = session->execute(request, output);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      outcome = *std::move(ran);
    });
    EXPECT_LT(outcome.usage.cpu, kCpuMax + kCpuPastLimitMax) << ending_name(outcome.ending);
    EXPECT_LT(outcome.usage.memory_bytes + host_bytes,
              kMemoryBytes + kHostBytesMax + one.file_bytes);
    EXPECT_NE(ending_name(outcome.ending), ending_name(Ending::kCrashed)) << outcome.error->message;
  }

  std::unique_ptr<Machine> machine_ = Machine::create().value();
  std::shared_ptr<EmbeddedEngine> engine_ =
      EmbeddedEngine::load(machine_->environment(), find_language(GetParam()).value(), no_progress)
          .value();
};

TEST_P(HostCalls, EachFunctionHasItsCases) {
  std::set<std::string> given;
  const auto language = find_language(GetParam()).value();
  const wasm::Linker linker = make_linker(machine_->wasm(), *language).value();
  for (const auto& definition : linker.definitions()) {
    if (definition.module != "wasi_snapshot_preview1")
      given.insert(definition.module + "." + definition.name);
  }
  if (GetParam() == "javascript") {
    for (const auto part : {javascript::run_functions(), javascript::value_functions(),
                            javascript::file_functions()}) {
      for (const auto& entry : part) given.emplace(entry.name);
    }
  }
  std::set<std::string> in_table;
  for (const Case& one : cases_of(GetParam())) in_table.insert(one.function);
  in_table.erase("the value");
  EXPECT_EQ(in_table, given);
}

TEST_P(HostCalls, EndSoonAfterTheLimitAndStayWithinTheMemory) {
  for (const Case& one : cases_of(GetParam())) {
    ASSERT_TRUE(engine_->on_guest_thread([&] { expect_end(one); }).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, HostCalls,
                         ::testing::Values("javascript", "perl", "python", "ruby"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace sw::engine
