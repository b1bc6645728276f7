// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <filesystem>
#include <map>

#include "cases/case_file.h"
#include "cli/units.h"
#include "engine/embedded_engine.h"
#include "engine/result_json.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "wasi/tree_state.h"

namespace sw::cases {
namespace {

namespace fs = std::filesystem;

/// Made once per process: engines are slow to load.
struct Engines {
  std::unique_ptr<engine::Machine> machine = engine::Machine::create().value();
  std::map<std::string, std::shared_ptr<engine::EmbeddedEngine>> engines;

  Result<std::shared_ptr<engine::EmbeddedEngine>> engine_of(const std::string& language) {
    auto& engine = engines[language];
    if (!engine) {
      SW_TRY(auto found, engine::find_language(language));
      SW_TRY(engine, engine::EmbeddedEngine::load(machine->environment(), std::move(found),
                                                  engine::no_progress));
    }
    return engine;
  }
};

Engines& engines() {
  static Engines the_machine;
  return the_machine;
}

sw::Run request_for(const Section& run) {
  sw::Run request;
  request.code = run.body;
  request.limits.wall_max = std::chrono::seconds(600);
  // a busy machine may take its time to hear that it is asked
  request.limits.grace = std::chrono::seconds(30);
  for (const std::string& word : run.words) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "timeout") request.limits.wall_max = cli::parse_duration(value).value();
    else if (key == "cpu") request.limits.cpu_max = cli::parse_duration(value).value();
    else if (key == "grace") request.limits.grace = cli::parse_duration(value).value();
    else if (key == "memory") request.limits.memory_bytes_max = cli::parse_bytes(value).value();
    else if (key == "output") request.limits.output_bytes_max = cli::parse_bytes(value).value();
    else if (key == "stdin") request.input = text_input(value + "\n");
    else if (key == "file") request.file_name = value;
    else if (key.starts_with("env:")) request.env.emplace_back(key.substr(4), value);
    else ADD_FAILURE() << "unknown option " << word;
  }
  return request;
}

void expect_text(const Step& step, std::string_view name, std::string actual) {
  const Section* expected = step.find(name);
  if (expected != nullptr && expected->any) return;
  if (actual.ends_with('\n')) actual.pop_back();
  if (expected == nullptr) {
    EXPECT_EQ(actual, "") << "unexpected " << name;
  } else if (!expected->contains) {
    EXPECT_EQ(actual, expected->body) << name;
  } else {
    std::size_t from = 0;
    std::istringstream lines(expected->body);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = actual.find(line, from);
      EXPECT_NE(at, std::string::npos) << name << " lacks '" << line << "' in:\n" << actual;
      if (at == std::string::npos) return;
      from = at + line.size();
    }
  }
}

void expect_value(const Step& step, const Outcome& outcome) {
  if (step.find("none") != nullptr) {
    EXPECT_FALSE(outcome.value.has_value()) << outcome.value->text;
  }
  for (const char* kind : {"text", "json"}) {
    const Section* expected = step.find(kind);
    if (expected == nullptr) continue;
    ASSERT_TRUE(outcome.value.has_value()) << "no value";
    const bool is_json = outcome.value->kind == Value::Kind::kJson;
    EXPECT_EQ(is_json, std::string_view(kind) == "json") << outcome.value->text;
    if (is_json && !expected->any) {
      EXPECT_EQ(boost::json::parse(outcome.value->text), boost::json::parse(expected->body))
          << outcome.value->text;
    } else {
      expect_text(step, kind, outcome.value->text);
    }
  }
}

void expect_error(const Step& step, const Outcome& outcome) {
  const Section* expected = step.find("error");
  if (expected == nullptr) {
    EXPECT_FALSE(outcome.error.has_value())
        << outcome.error->name << ": " << outcome.error->message << "\n"
        << (outcome.error->traceback.empty() ? ""
                                             : fmt::format("{}", outcome.error->traceback.back()));
    return;
  }
  ASSERT_TRUE(outcome.error.has_value()) << "no error";
  EXPECT_EQ(outcome.error->name,
            expected->words.empty() ? outcome.error->name : expected->words[0]);
  if (!expected->body.empty()) expect_text(step, "error", outcome.error->message);
  if (const Section* line = step.find("line")) {
    EXPECT_EQ(outcome.error->line_number, std::stoll(line->words.at(0)));
  }
  if (step.find("traceback") != nullptr) {
    std::string traceback;
    for (const std::string& line : outcome.error->traceback) traceback += line + '\n';
    expect_text(step, "traceback", traceback);
  }
}

class Case : public ::testing::TestWithParam<fs::path> {
 protected:
  void run_step(engine::EmbeddedEngine& engine, const Step& step) {
    for (const Section& file : step.before) {
      wasi::FileSystem files(wasi::standard_layout().build(), engines().machine->clocks());
      files.mount(wasi::kWorkspaceMount, workspace_);
      ASSERT_EQ(files.write_file("/workspace/" + file.words.at(0), as_bytes(file.body)),
                wasi::Errno::kSuccess);
    }
    if (step.run.name == "reset") {
      if (session_ && session_->reset().verdict != wasm::KeepVerdict::kKept) session_.reset();
      return;
    }
    RunOutput sink;
    sw::Run request = request_for(step.run);
    Workspace files(workspace_);
    request.files = files.for_run();
    Result<Outcome> result = Error{};
    if (step.run.name == "one-shot") {
      result = engine.run(request, sink);
    } else {
      if (!session_ || session_->invalid()) {
        auto started = engine.start_session();
        ASSERT_TRUE(started.ok()) << started.error().message;
        session_ = *std::move(started);
      }
      result = session_->execute(request, sink);
    }
    ASSERT_TRUE(result.ok()) << result.error().message;
    ASSERT_TRUE(files.apply_diff(*result->files, engines().machine->clocks().realtime_ns()).ok());
    check(step, *result, sink);
  }

  void check(const Step& step, const Outcome& outcome, const RunOutput& sink) {
    expect_text(step, "stdout", sink.out);
    expect_text(step, "stderr", sink.err);
    expect_value(step, outcome);
    expect_error(step, outcome);
    const Section* exit = step.find("exit");
    if (exit == nullptr) {
      EXPECT_FALSE(outcome.exit_code.has_value()) << *outcome.exit_code;
    } else {
      EXPECT_EQ(outcome.exit_code, std::stoi(exit->words.at(0)));
    }
    if (const Section* ending = step.find("ending")) {
      EXPECT_EQ(engine::ending_name(outcome.ending), ending->words.at(0));
    }
    if (const Section* file = step.find("file")) {
      wasi::FileSystem files(wasi::standard_layout().build(), engines().machine->clocks());
      files.mount(wasi::kWorkspaceMount, workspace_);
      const auto content = files.read_file("/workspace/" + file->words.at(0));
      ASSERT_TRUE(content.ok()) << "no such file";
      expect_text(step, "file", std::string(as_text(content->bytes)));
    }
  }

  std::shared_ptr<wasi::Tree> workspace_ =
      std::make_shared<wasi::Tree>(wasi::TreeLimits{}, engines().machine->clocks().realtime_ns());
  std::unique_ptr<engine::Session> session_;
};

TEST_P(Case, GivesTheRightAnswer) {
  const auto file = read_case(GetParam());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto engine = engines().engine_of(file->language);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto ran = (*engine)->on_guest_thread([&] {
    int number = 0;
    for (const Step& step : file->steps) {
      SCOPED_TRACE(fmt::format("{}, run {}: {}", GetParam().filename().native(), ++number,
                               step.run.body.substr(0, 200)));
      run_step(**engine, step);
      if (HasFatalFailure()) return;
    }
    session_.reset();
  });
  ASSERT_TRUE(ran.ok());
}

std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(SW_CASES_FOLDER)) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string test_name(const ::testing::TestParamInfo<fs::path>& param_info) {
  std::string name =
      param_info.param.parent_path().filename().native() + "_" + param_info.param.stem().native();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Case, ::testing::ValuesIn(case_files()), test_name);

}  // namespace
}  // namespace sw::cases
