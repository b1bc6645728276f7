// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runtime Worker over a storage in memory, with an engine without Wasm.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "interpreter/fake_engine.h"
#include "interpreter/test_worker.h"
#include "interpreter/worker.h"
#include "object/clock.h"
#include "storage/memory/memory_storage.h"

namespace sw::interpreter {

inline boost::json::object json(const protocol::Response& response) {
  return boost::json::parse(response.body).as_object();
}
inline std::string message(const protocol::Response& response) {
  return boost::json::value_to<std::string>(json(response).at("message"));
}

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() { restart(); }

  void restart(const RuntimeWorkerOptions& options = {}) {
    worker_.reset();
    parts_.reset();
    parts_.emplace(*storage_, clock_, options.residency, options.runs_at_once);
    worker_.emplace(engine_, options, parts_->parts());
    parts_->objects.start_alarms();
  }

  protocol::Response fetch(std::string method, std::string path, std::string body = {}) {
    protocol::Request request{
        .method = std::move(method), .path = std::move(path), .body = std::move(body)};
    if (!request.body.empty())
      request.headers = {{"Content-Type", "application/json; charset=utf-8"}};
    return worker_->fetch(request);
  }
  std::string refused(const std::string& body) { return message(fetch("POST", "/execute", body)); }

  Result<protocol::ExecuteResponse> run(const std::string& key, const std::string& code,
                                        std::stop_token cancel = {}) {
    protocol::ExecuteArgs args;
    args.run.context = "c";
    args.run.code = code;
    args.run.cancel = std::move(cancel);
    RunOutput printed;
    SW_TRY(const auto interpreter, worker_->interpreter(key));
    return interpreter->execute(args, printed);
  }
  std::string value(const std::string& key, const std::string& code) {
    const auto answer = run(key, code);
    return answer.ok() ? answer->outcome.value->text : answer.error().message;
  }

  std::shared_ptr<FakeEngine> engine_ = std::make_shared<FakeEngine>();
  storage::MemoryDisk disk_{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage_ = storage::open_memory_storage(disk_);
  object::ManualClock clock_{object::Time(std::chrono::milliseconds(1'700'000'000'000))};
  std::optional<TestParts> parts_;
  std::optional<Worker> worker_;
};

}  // namespace sw::interpreter
