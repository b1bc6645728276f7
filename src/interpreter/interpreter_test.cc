// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "interpreter/test_machine.h"
#include "sandbox_workers/wasi/file_system.h"
#include "storage/memory/memory_storage.h"

namespace sw::interpreter {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Programs {
  std::string one;       ///< sets n to 1
  std::string add;       ///< adds 1 to n; the value is n
  std::string add_fail;  ///< adds 1 to n and raises an error
  std::string loop;      ///< adds 1 to n and loops for ever
  std::string ends;      ///< adds 1 to n and does not react to being asked to stop
  std::string random;
  std::string write_fail;  ///< changes and makes files, then raises an error
};

const std::map<std::string, Programs>& programs() {
  static const std::map<std::string, Programs> all = {
      {"python",
       {.one = "n = 1",
        .add = "n += 1\nn",
        .add_fail = "n += 1\n1 / 0",
        .loop = "n += 1\nwhile True: pass",
        .ends = "n += 1\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass",
        .random = "import random\nstr(random.random())",
        .write_fail =
            "open('/workspace/a', 'w').write('changed'); open('/workspace/b', 'w').write('new'); 1 / 0"}},
      {"javascript",
       {.one = "let n = 1; undefined",
        .add = "n += 1",
        .add_fail = "n += 1; null.x",
        .loop = "n += 1; for (;;);",
        .ends = "n += 1; const a = new Uint8Array(64e6); for (;;) a.fill(1).sort()",
        .random = "String(Math.random())",
        .write_fail =
            "fs.writeFileSync('/workspace/a', 'changed'); fs.writeFileSync('/workspace/b', 'new'); null.x"}},
      {"perl",
       {.one = "my $n = 1; undef",
        .add = "use strict; $n += 1",
        .add_fail = "$n += 1; die 'no'",
        .loop = "$n += 1; 1 while 1",
        .ends = "$n += 1; while (1) { eval { 1 while 1 } }",
        .random = "rand",
        .write_fail =
            "for my $name ('a', 'b') { open my $f, '>', \"/workspace/$name\" or die; print $f 'new' } die 'no'"}},
  };
  return all;
}

class InterpreterTest : public ::testing::TestWithParam<std::string> {
 protected:
  TestMachine machine_;
  std::shared_ptr<engine::Engine> engine_ = machine_.load(GetParam());
  storage::MemoryDisk disk_;
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  std::unique_ptr<storage::ObjectStorage> object_ = storage_->open(kTestObject, {}).value();
  std::unique_ptr<Interpreter> interpreter_;
  const Programs& code_ = programs().at(GetParam());

  void on_guest_thread(const std::function<void()>& body) {
    ASSERT_TRUE(engine_
                    ->on_guest_thread([&] {
                      reopen();
                      ASSERT_TRUE(interpreter_->create_context("c", "/workspace").ok());
                      body();
                      interpreter_.reset();
                    })
                    .ok());
  }

  /// As another process would find it.
  void reopen(const Options& options = {}) {
    interpreter_.reset();
    interpreter_ = Interpreter::open(engine_, *object_, machine_.clocks, options).value();
  }

  ExecuteResult run(const std::string& code, const std::string& id = "c", std::chrono::nanoseconds limit = 1min) {
    auto result = machine_.execute(*interpreter_, id, code, limit);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return *std::move(result);
  }
  std::string value(const std::string& code, const std::string& id = "c") {
    const ExecuteResult result = run(code, id);
    if (result.outcome.error) return result.outcome.error->name + ": " + result.outcome.error->message;
    return result.outcome.value ? result.outcome.value->text : "";
  }
};

TEST_P(InterpreterTest, StateIsLiveThenRestored) {
  on_guest_thread([&] {
    const ExecuteResult first = run(code_.one);
    EXPECT_EQ(first.origin, Origin::kFresh);
    EXPECT_THAT(first.note, HasSubstr("new"));
    EXPECT_TRUE(first.saved);
    EXPECT_EQ(run(code_.add).origin, Origin::kLive);
    reopen();
    const ExecuteResult restored = run(code_.add);
    EXPECT_EQ(restored.origin, Origin::kRestored);
    EXPECT_THAT(restored.note, IsEmpty());
    EXPECT_EQ(restored.outcome.value->text, "3");
    EXPECT_EQ(restored.row.executions, 3u);
    EXPECT_FALSE(restored.row.stale());
  });
}

TEST_P(InterpreterTest, ASmallStepWritesKilobytes) {
  on_guest_thread([&] {
    run(code_.one);
    run(code_.add);
    const std::uint64_t bytes_max = GetParam() == "javascript" ? 8'000 : 24'000;
    for (int i = 0; i < 5; ++i) EXPECT_LT(run(code_.add).saved->bytes_written, bytes_max);
  });
}

TEST_P(InterpreterTest, AnErrorKeepsMemoryAndPutsFilesBack) {
  on_guest_thread([&] {
    wasi::FileSystem files(wasi::standard_layout().build(), machine_.clocks);
    files.mount(wasi::kWorkspaceMount, machine_.workspace->tree());
    ASSERT_EQ(files.write_file("/workspace/a", as_bytes("before")), wasi::Errno::kSuccess);
    run(code_.one);
    EXPECT_TRUE(run(code_.add_fail).outcome.error);
    EXPECT_TRUE(run(code_.write_fail).outcome.error);
    EXPECT_EQ(as_text(files.read_file("/workspace/a")->bytes), "before");
    EXPECT_FALSE(files.exists("/workspace/b"));
    reopen();
    EXPECT_EQ(value(code_.add), "3");
  });
}

TEST_P(InterpreterTest, ASoftLimitKeepsTheInterpreterAndIsToldAfterARestart) {
  on_guest_thread([&] {
    run(code_.one);
    const ExecuteResult limited = run(code_.loop, "c", 50ms);
    EXPECT_EQ(limited.outcome.error->name, engine::kExecutionLimitError);
    EXPECT_FALSE(limited.saved);
    EXPECT_TRUE(limited.row.stale());
    reopen();
    const ExecuteResult restored = run(code_.add);
    EXPECT_EQ(restored.outcome.value->text, "2");  // the limited run's own change is lost
    EXPECT_EQ(restored.origin, Origin::kRestored);
    EXPECT_THAT(restored.note, HasSubstr("run 1"));
    EXPECT_EQ(run(code_.loop, "c", 50ms).origin, Origin::kLive);
    EXPECT_EQ(value(code_.add), "4");  // it is not lost while the interpreter lives
  });
}

TEST_P(InterpreterTest, AnInterpreterThatEndedIsDroppedAndGoesOnFromWhatIsSaved) {
  on_guest_thread([&] {
    run(code_.one);
    engine::RunRequest request;
    request.code = code_.ends;
    request.limits.memory_bytes_max = std::uint64_t{400} << 20;
    request.limits.wall_max = 50ms;
    request.limits.grace = 50ms;
    wasi::BufferSink sink;
    const auto ended = interpreter_->execute("c", request, machine_.workspace, sink);
    ASSERT_TRUE(ended.ok());
    ASSERT_TRUE(ended->outcome.error);
    EXPECT_FALSE(ended->saved);
    EXPECT_TRUE(ended->row.stale());
    EXPECT_FALSE(interpreter_->contexts()->at(0).resident);
    const ExecuteResult restored = run(code_.add);
    EXPECT_EQ(restored.origin, Origin::kRestored);
    EXPECT_THAT(restored.note, HasSubstr("could not be saved"));
    EXPECT_EQ(restored.outcome.value->text, "2");
  });
}

TEST_P(InterpreterTest, ContextsAreIsolatedAndForksGoTheirOwnWay) {
  on_guest_thread([&] {
    run(code_.one);
    ASSERT_TRUE(interpreter_->create_context("other", "/workspace").ok());
    EXPECT_THAT(value(code_.add, "other"), HasSubstr("Error"));
    ASSERT_TRUE(interpreter_->fork("c", "fork").ok());
    EXPECT_EQ(value(code_.add, "fork"), "2");
    EXPECT_EQ(value(code_.add, "fork"), "3");
    EXPECT_EQ(value(code_.add), "2");
    EXPECT_NE(value(code_.random, "fork"), value(code_.random));
  });
}

TEST_P(InterpreterTest, UndoAndCheckpointsGoBack) {
  on_guest_thread([&] {
    run(code_.one);
    EXPECT_EQ(value(code_.add), "2");
    ASSERT_TRUE(interpreter_->add_checkpoint("c", "two").ok());
    EXPECT_EQ(value(code_.add), "3");
    EXPECT_EQ(value(code_.add), "4");
    ASSERT_TRUE(interpreter_->undo("c", 1).ok());
    EXPECT_EQ(value(code_.add), "4");
    ASSERT_TRUE(interpreter_->restore_checkpoint("c", "two").ok());
    EXPECT_EQ(value(code_.add), "3");
    EXPECT_EQ(interpreter_->restore_checkpoint("c", "absent").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(interpreter_->checkpoints("c")->size(), 1u);
    ASSERT_TRUE(interpreter_->remove_checkpoint("c", "two").ok());
    EXPECT_THAT(*interpreter_->checkpoints("c"), IsEmpty());
  });
}

TEST_P(InterpreterTest, EvictionCostsNothingButTime) {
  on_guest_thread([&] {
    for (int i = 0; i < 4; ++i) {
      const std::string id = "c" + std::to_string(i);
      ASSERT_TRUE(interpreter_->create_context(id, "/workspace").ok());
      run(code_.one, id);
    }
    interpreter_->evict_down_to(0);
    for (int i = 0; i < 4; ++i) {
      const ExecuteResult result = run(code_.add, "c" + std::to_string(i));
      EXPECT_EQ(result.origin, Origin::kRestored);
      EXPECT_EQ(result.outcome.value->text, "2");
    }
    Options options;
    options.resident_bytes_max = 1;
    reopen(options);
    EXPECT_EQ(run(code_.add, "c0").origin, Origin::kRestored);
    EXPECT_EQ(run(code_.add, "c0").origin, Origin::kRestored);
  });
}

TEST_P(InterpreterTest, DeletingWipesAndUnknownContextsAreToldApart) {
  on_guest_thread([&] {
    run(code_.one);
    ASSERT_TRUE(interpreter_->delete_context("c").ok());
    EXPECT_EQ(interpreter_->delete_context("c").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(machine_.execute(*interpreter_, "c", "1").error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(interpreter_->create_context("c", "/workspace").ok());
    EXPECT_EQ(run(code_.one).origin, Origin::kFresh);
    ASSERT_TRUE(interpreter_->destroy().ok());
    EXPECT_THAT(*interpreter_->contexts(), IsEmpty());
  });
}

TEST_P(InterpreterTest, IdsAndNumbersOfContextsHaveLimits) {
  on_guest_thread([&] {
    EXPECT_EQ(interpreter_->create_context("", "/workspace").error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(interpreter_->create_context(std::string(129, 'x'), "/workspace").error().code,
              ErrorCode::kInvalidArgument);
    EXPECT_THAT(interpreter_->create_context("c", "/workspace").error().message, HasSubstr("already exists"));
    for (int i = 1; i < 8; ++i) ASSERT_TRUE(interpreter_->create_context(std::to_string(i), "/workspace").ok());
    EXPECT_THAT(interpreter_->create_context("ninth", "/workspace").error().message,
                HasSubstr("Cannot create more than 8"));
  });
}

INSTANTIATE_TEST_SUITE_P(Languages, InterpreterTest, ::testing::Values("javascript", "perl", "python"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace sw::interpreter
