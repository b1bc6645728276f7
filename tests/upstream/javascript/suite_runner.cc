// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Runs many small JavaScript programs, each in a fresh interpreter of the sandbox, in one process:
// starting a process each would take a hundred times as long as the programs do.
//
// stdin:  a line of JSON per program, {"cells": [path or {"code": text}…], "folder": path?}. The
// cells run one
// after
//         another in one session until one fails; the files of `folder` are its workspace.
// stdout: a line of JSON per program, in order, {"cell": index of the last that ran, "error":
// name?, "message": text?,
//         "ending": how it ended, "out": what was printed}.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "engine/embedded_engine.h"
#include "engine/result_json.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"

namespace sw {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr auto kWallMax = std::chrono::seconds(120);

Result<std::string> read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return Error{.code = ErrorCode::kNotFound, .message = "cannot read " + path.native()};
  return text;
}

class Runner {
 public:
  Runner(engine::Machine& machine, engine::EmbeddedEngine& engine)
      : machine_(machine), engine_(engine) {}

  Result<json::object> run(const json::object& program) {
    if (session_ && (session_->reset().verdict != wasm::KeepVerdict::kKept || session_->invalid()))
      session_.reset();
    if (!session_) {
      SW_TRY(session_, engine_.start_session());
    }
    sw::Run request;
    request.limits.wall_max = kWallMax;
    const json::value* folder = program.if_contains("folder");
    SW_TRY(request.files,
           files_of(folder == nullptr ? std::string() : std::string(folder->as_string())));
    RunOutput sink;
    json::object answer;
    std::int64_t number = -1;
    for (const json::value& cell : program.at("cells").as_array()) {
      ++number;
      SW_TRY(request.code, code_of(cell));
      auto outcome = session_->execute(request, sink);
      if (!outcome.ok()) {
        session_.reset();
        answer["ending"] = "crash";
        answer["message"] = outcome.error().message;
        break;
      }
      request.files.reset();  // later cells go on with the files as they are
      answer["ending"] = engine::ending_name(outcome->ending);
      if (outcome->error) {
        answer["error"] = outcome->error->name;
        answer["message"] = outcome->error->message;
        break;
      }
      if (session_->invalid()) break;
    }
    answer["cell"] = number;
    answer["out"] = sink.out;
    return answer;
  }

 private:
  Result<std::string> code_of(const json::value& cell) {
    if (cell.is_object()) return std::string(cell.as_object().at("code").as_string());
    std::string& text = sources_[std::string(cell.as_string())];
    if (text.empty()) {
      SW_TRY(text, read_text(std::string(cell.as_string())));
    }
    return text;
  }

  Result<std::shared_ptr<const RunFiles>> files_of(const std::string& folder) {
    std::shared_ptr<const RunFiles>& files = files_[folder];
    if (files) return files;
    const std::uint64_t now_ns = machine_.clocks().realtime_ns();
    Workspace workspace(wasi::TreeLimits{}, now_ns);
    const fs::directory_iterator entries =
        folder.empty() ? fs::directory_iterator() : fs::directory_iterator(folder);
    for (const auto& entry : entries) {
      if (!entry.is_regular_file()) continue;
      SW_TRY(const std::string text, read_text(entry.path()));
      const BytesView bytes = as_bytes(text);
      SW_CHECK_OK(workspace.write_bytes(entry.path().filename().native(),
                                        Bytes(bytes.begin(), bytes.end()), now_ns));
    }
    files = workspace.for_run();
    return files;
  }

  engine::Machine& machine_;
  engine::EmbeddedEngine& engine_;
  std::unique_ptr<engine::Session> session_;
  std::map<std::string, std::string> sources_;
  std::map<std::string, std::shared_ptr<const RunFiles>> files_;
};

Result<void> run_all() {
  SW_TRY(const auto machine, engine::Machine::create());
  SW_TRY(auto language, engine::find_language("javascript"));
  SW_TRY(const auto engine, engine::EmbeddedEngine::load(machine->environment(),
                                                         std::move(language), engine::no_progress));
  Result<void> result;
  SW_CHECK_OK(engine->on_guest_thread([&] {
    Runner runner(*machine, *engine);
    for (std::string line; std::getline(std::cin, line);) {
      auto answer = runner.run(json::parse(line).as_object());
      if (!answer.ok()) {
        result = std::move(answer).error();
        return;
      }
      std::cout << json::serialize(*answer) << '\n' << std::flush;
    }
  }));
  return result;
}

}  // namespace
}  // namespace sw

int main() {
  const auto ran = sw::run_all();
  if (ran.ok()) return 0;
  fmt::print(stderr, "{}\n", ran.error().message);
  return 1;
}
