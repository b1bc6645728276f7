// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A driver needs nothing that a program can use up or replace; saboteurs/README.md has the form of
// the tables.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/embedded_engine.h"
#include "engine/result_json.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::engine {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Saboteur {
  std::string language;
  std::string name;
  std::string code;
  std::string undo;
  std::uint64_t memory_bytes_max = 0;  // 0: the language's own
  bool odd = false;
  bool ends = false;
};

void PrintTo(const Saboteur& saboteur, std::ostream* out) {
  *out << saboteur.language << ' ' << saboteur.name;
}

struct Probes {
  std::string print;  ///< prints "out" and has the value 42
  std::string json;   ///< has the value {"a":[1,"x"]}
  std::string fail;   ///< on line 2, with an error named `error`
  std::string error;
  std::string endless;
};

const std::map<std::string, Probes>& probes() {
  static const std::map<std::string, Probes> all = {
      {"python",
       {"print('out'); 6 * 7", R"({"a": [1, "x"]})", "\n1 / 0", "ZeroDivisionError",
        "while True: pass"}},
      {"perl",
       {"print qq(out\\n); 6 * 7", R"({ a => [1, 'x'] })", "\ndie qq(broken\\n)", "PerlError",
        "1 while 1"}},
      {"ruby",
       {"puts 'out'; 6 * 7", R"({ a: [1, "x"] })", "\n1 / 0", "ZeroDivisionError",
        "nil while true"}}};
  return all;
}

std::string with_line_ends(std::string_view text) {
  constexpr std::string_view kLineEnd = "¶";
  std::string code(text);
  for (std::size_t at = 0; (at = code.find(kLineEnd, at)) != std::string::npos; ++at) {
    code.replace(at, kLineEnd.size(), "\n");
  }
  return code;
}

void set_option(Saboteur& saboteur, std::string_view option) {
  constexpr std::string_view kMemory = "memory=";
  if (option == "odd") saboteur.odd = true;
  else if (option == "ends") saboteur.ends = true;
  else if (option.starts_with(kMemory))
    saboteur.memory_bytes_max = std::stoull(std::string(option.substr(kMemory.size()))) << 20;
  else ADD_FAILURE() << "unknown option " << option;
}

std::vector<Saboteur> read_table(const fs::path& path) {
  std::vector<Saboteur> table;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    const std::string code = with_line_ends(std::string_view(line).substr(colon + 2));
    std::istringstream words(line.substr(0, colon));
    std::string name;
    words >> name;
    if (name == "undo") {
      table.back().undo = code;
      continue;
    }
    Saboteur& saboteur = table.emplace_back();
    saboteur.language = path.stem().native();
    saboteur.name = name;
    saboteur.code = code;
    for (std::string option; words >> option;) set_option(saboteur, option);
  }
  return table;
}

std::vector<Saboteur> saboteurs() {
  std::vector<Saboteur> all;
  for (const auto& [language, of_language] : probes()) {
    const auto table = read_table(fs::path(SW_SABOTEURS_FOLDER) / (language + ".txt"));
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

/// Made once per process: engines are slow to load.
struct Engines {
  std::unique_ptr<Machine> machine = Machine::create().value();
  std::map<std::string, std::shared_ptr<EmbeddedEngine>> engines;

  EmbeddedEngine& of(const std::string& language) {
    auto& engine = engines[language];
    if (!engine) {
      engine =
          EmbeddedEngine::load(machine->environment(), find_language(language).value(), no_progress)
              .value();
    }
    return *engine;
  }
  static Engines& get() {
    static Engines the_engines;
    return the_engines;
  }
};

// A busy machine may take its time.
constexpr RunLimits kAmple{.wall_max = 600s, .cpu_max = 60s, .grace = 10s};

class Sabotage : public ::testing::TestWithParam<Saboteur> {
 protected:
  Outcome run(const std::string& code, RunLimits limits = kAmple) {
    sink_ = {};
    sw::Run request;
    request.code = code;
    request.limits = limits;
    if (GetParam().memory_bytes_max != 0)
      request.limits.memory_bytes_max = GetParam().memory_bytes_max;
    auto outcome = session_->execute(request, sink_);
    if (outcome.ok()) return *std::move(outcome);
    ADD_FAILURE() << code << ": " << outcome.error().message;
    return Outcome();
  }

  /// The cell went well, or `may_fail` and it has an error of its own.
  bool is_good(const Outcome& outcome, bool may_fail) {
    if (!outcome.error) return true;
    const bool is_own =
        outcome.ending == Ending::kGuestError || outcome.ending == Ending::kMemoryLimit;
    EXPECT_TRUE(may_fail && is_own) << ending_name(outcome.ending) << ", " << outcome.error->name
                                    << ": " << outcome.error->message;
    return false;
  }

  void expect_right_answers(bool may_fail) {
    const Probes& probe = probes().at(GetParam().language);
    const Outcome printed = run(probe.print);
    if (is_good(printed, may_fail) && !may_fail) {
      EXPECT_EQ(sink_.out, "out\n");
      EXPECT_EQ(printed.value ? printed.value->text : "none", "42");
    }
    const Outcome json = run(probe.json);
    if (is_good(json, may_fail) && !may_fail) {
      ASSERT_TRUE(json.value && json.value->kind == Value::Kind::kJson);
      EXPECT_EQ(boost::json::parse(json.value->text), boost::json::parse(R"({"a":[1,"x"]})"));
    }
    const Outcome failed = run(probe.fail);
    ASSERT_TRUE(failed.error.has_value());
    EXPECT_TRUE(failed.ending == Ending::kGuestError || may_fail) << ending_name(failed.ending);
    if (!may_fail) {
      EXPECT_EQ(failed.error->name, probe.error) << failed.error->message;
      EXPECT_EQ(failed.error->line_number, 2);
      EXPECT_FALSE(failed.error->traceback.empty());
    }
    const Outcome stopped = run(probe.endless, {.wall_max = 600s, .cpu_max = 30ms, .grace = 60s});
    EXPECT_TRUE(stopped.ending == Ending::kTimeLimit || may_fail) << ending_name(stopped.ending);
    EXPECT_FALSE(session_->invalid());
  }

  std::unique_ptr<Session> session_;
  RunOutput sink_;
};

TEST_P(Sabotage, DoesNotStopTheCellsAfterIt) {
  EmbeddedEngine& engine = Engines::get().of(GetParam().language);
  const auto ran = engine.on_guest_thread([&] {
    session_ = engine.start_session().value();
    const Outcome sabotage = run(GetParam().code);
    const std::string told =
        sabotage.error ? sabotage.error->name + ": " + sabotage.error->message : "";
    SCOPED_TRACE(
        fmt::format("the saboteur's own ending: {} {}", ending_name(sabotage.ending), told));
    if (GetParam().ends && session_->invalid()) session_ = engine.start_session().value();
    ASSERT_FALSE(session_->invalid());
    expect_right_answers(GetParam().odd);
    if (GetParam().odd) {
      SCOPED_TRACE("after the undoing");
      const Outcome undone = run(GetParam().undo);
      EXPECT_FALSE(undone.error.has_value()) << undone.error->name << ": " << undone.error->message;
      if (!session_->invalid()) expect_right_answers(false);
    }
    session_.reset();
  });
  ASSERT_TRUE(ran.ok());
}

std::string test_name(const ::testing::TestParamInfo<Saboteur>& row) {
  std::string name = row.param.language + "_" + row.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rows, Sabotage, ::testing::ValuesIn(saboteurs()), test_name);

}  // namespace
}  // namespace sw::engine
