// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Runs that know the workspace as /home/user, in every language.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "interpreter/test_worker.h"
#include "storage/memory/memory_storage.h"

namespace sw::interpreter {
namespace {

using namespace std::chrono_literals;
using protocol::ExecuteResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct HomePrograms {
  std::string where;        ///< prints the working folder, a space, HOME or "none"
  std::string enter;        ///< makes the folder "d" and goes there
  std::string module_file;  ///< a path below /workspace
  std::string module_code;
  std::string use_module;  ///< lets the module fail
  std::string program_file;
  std::string failing;
  std::string open;    ///< opens the file "log" of the working folder and writes "one "
  std::string append;  ///< writes "two" to it, closes it, and prints what /workspace/log holds
};

const std::map<std::string, HomePrograms>& home_programs() {
  static const std::map<std::string, HomePrograms> all = {
      {"python",
       {.where = "import os; print(os.getcwd(), os.environ.get('HOME', 'none'))",
        .enter = "import os; os.mkdir('d'); os.chdir('d')",
        .module_file = "lib/failing.py",
        .module_code = "def fail(): raise ValueError('broken')\n",
        .use_module = "import lib.failing; lib.failing.fail()",
        .program_file = "main.py",
        .failing = "raise ValueError(__file__)",
        .open = "log = open('log', 'w'); log.write('one '); log.flush()",
        .append = "log.write('two'); log.close(); print(open('/workspace/log').read())"}},
      {"javascript",
       {.where = "console.log(process.cwd(), process.env.HOME ?? 'none')",
        .enter = "fs.mkdirSync('d'); process.chdir('d')",
        .module_file = "lib/failing.mjs",
        .module_code = "export function fail() { throw new Error('broken') }\n",
        .use_module = "import { fail } from './lib/failing.mjs'; fail()",
        .program_file = "main.js",
        .failing = "throw new Error('broken')",
        .open = "const log = fs.openSync('log', 'w'); fs.writeSync(log, 'one ')",
        .append = "fs.writeSync(log, 'two'); fs.closeSync(log); "
                  "console.log(fs.readFileSync('/workspace/log', 'utf8'))"}},
      {"perl",
       {.where = "use Cwd; print getcwd(), ' ', $ENV{HOME} // 'none', \"\\n\"",
        .enter = "mkdir 'd'; chdir 'd'",
        .module_file = "lib/Failing.pm",
        .module_code = "package Failing; sub fail { die 'broken' } 1;\n",
        .use_module = "use Cwd; use lib getcwd() . '/lib'; use Failing; Failing::fail()",
        .program_file = "main.pl",
        .failing = "die 'broken'",
        .open = "open(our $log, '>', 'log') or die $!; print $log 'one '; undef",
        .append = "print $log 'two'; close $log; open(my $in, '<', '/workspace/log'); "
                  "print scalar(<$in>), \"\\n\""}},
      {"ruby",
       {.where = "puts \"#{Dir.pwd} #{ENV.fetch('HOME', 'none')}\"",
        .enter = "Dir.mkdir('d'); Dir.chdir('d')",
        .module_file = "lib/failing.rb",
        .module_code = "def fail_there = raise('broken')\n",
        .use_module = "require 'lib/failing'; fail_there",
        .program_file = "main.rb",
        .failing = "raise 'broken'",
        .open = "log = File.open('log', 'w'); log.write('one '); log.flush; nil",
        .append = "log.write('two'); log.close; puts File.read('/workspace/log')"}},
  };
  return all;
}

std::string traceback(const Outcome& outcome) {
  if (!outcome.error) return "no error";
  const auto& lines = outcome.error->traceback;
  return std::accumulate(lines.begin(), lines.end(), outcome.error->message + "\n");
}

class HomeTest : public ::testing::TestWithParam<std::string> {
 protected:
  HomeTest() {
    restart();
    worker_->create("c");
  }

  /// As another process would find it.
  void restart() {
    worker_ = nullptr;
    worker_ = std::make_unique<TestWorker>(TestWorker::engine(GetParam()), *storage_, files_);
    worker_->home = true;
  }
  ExecuteResponse run(const std::string& code, const std::string& id = "c") {
    return worker_->run(id, code, {.wall_max = 600s});
  }
  std::string printed(const std::string& code, const std::string& id = "c") {
    const ExecuteResponse response = run(code, id);
    return response.outcome.error ? response.outcome.error->message : worker_->printed.out;
  }
  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(files_.write(path, text, FileEncoding::kUtf8, 1).ok());
  }
  Outcome run_once(const sw::Run& run, RunOutput& output) {
    const auto engine = TestWorker::engine(GetParam());
    Result<Outcome> outcome = Error{};
    EXPECT_TRUE(engine->on_guest_thread([&] { outcome = engine->run(run, output); }).ok());
    return outcome.value();
  }

  const HomePrograms& code_ = home_programs().at(GetParam());
  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  Workspace files_{kWorkspaceLimits, 1};
  std::unique_ptr<TestWorker> worker_;
};

TEST_P(HomeTest, IsWhereRunsBeginAndGoOnAfterARestart) {
  EXPECT_EQ(printed(code_.where), "/home/user /home/user\n");
  restart();
  EXPECT_EQ(printed(code_.where), "/home/user /home/user\n");
  EXPECT_EQ(run(code_.enter).outcome.cwd, "/workspace/d") << "what others are told";
  restart();
  EXPECT_EQ(printed(code_.where), "/home/user/d /home/user\n");
  worker_->create("in_d", "/workspace/d");
  EXPECT_EQ(printed(code_.where, "in_d"), "/home/user/d /home/user\n");
  restart();
  EXPECT_EQ(printed(code_.where, "in_d"), "/home/user/d /home/user\n");
}

TEST_P(HomeTest, NamesTheModulesOfTheWorkspace) {
  ASSERT_TRUE(files_.make_directory("lib", Depth::kOne, 1).ok());
  write(code_.module_file, code_.module_code);
  for (const bool again : {false, true}) {
    if (again) restart();
    EXPECT_THAT(traceback(run(code_.use_module).outcome),
                AllOf(HasSubstr("broken"), HasSubstr("/home/user/" + code_.module_file),
                      Not(HasSubstr("/workspace"))));
  }
}

TEST_P(HomeTest, HasTheFilesOfTheWorkspaceOpenOnesToo) {
  ASSERT_FALSE(run(code_.open).outcome.error);
  restart();
  EXPECT_EQ(printed(code_.append), "one two\n");
  EXPECT_EQ(files_.read("/workspace/log", FileEncoding::kUtf8)->content, "one two");
}

TEST_P(HomeTest, IsForRunsOutsideOfSandboxesToo) {
  RunOutput output;
  sw::Run run{.code = code_.where, .home = true, .files = files_.for_run()};
  EXPECT_EQ(run_once(run, output).cwd, "/workspace");
  EXPECT_EQ(output.out, "/home/user /home/user\n");
  run.env = {{"HOME", "/tmp"}};
  run_once(run, output);
  EXPECT_THAT(output.out, HasSubstr("\n/home/user /tmp\n"));
  run.code = code_.failing;
  run.file_name = "/workspace/" + code_.program_file;
  run.args = {run.file_name};
  EXPECT_THAT(traceback(run_once(run, output)),
              AllOf(HasSubstr("/home/user/" + code_.program_file), Not(HasSubstr("/workspace"))));
}

TEST_P(HomeTest, IsOnlyAnotherPathForRunsThatDoNotAskForIt) {
  worker_->home = false;
  ASSERT_TRUE(files_.make_directory("lib", Depth::kOne, 1).ok());
  write(code_.module_file, code_.module_code);
  EXPECT_EQ(printed(code_.where), "/workspace none\n");
  EXPECT_THAT(traceback(run(code_.use_module).outcome),
              AllOf(HasSubstr("/workspace/" + code_.module_file), Not(HasSubstr("/home"))));
  worker_->create("user");
  ASSERT_FALSE(run(code_.open, "user").outcome.error);
  EXPECT_EQ(printed(code_.append, "user"), "one two\n");
}

INSTANTIATE_TEST_SUITE_P(Languages, HomeTest,
                         ::testing::Values("javascript", "perl", "python", "ruby"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace sw::interpreter
