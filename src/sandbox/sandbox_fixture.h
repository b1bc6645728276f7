// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sandbox over a storage in memory and bindings that no interpreter is behind.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/fake_worker.h"
#include "sandbox/names.h"
#include "sandbox/sandbox.h"
#include "storage/memory/memory_storage.h"

namespace sw::sandbox {

inline constexpr std::chrono::hours kTtl{24};
inline const Error kGone{ErrorCode::kUnreachable, "gone", 0};

/// An answer as a client sees it.
struct Reply {
  int status = 0;
  boost::json::value body;
  const boost::json::value& at(const char* pointer) const { return body.at_pointer(pointer); }
  std::string text(const char* pointer) const { return std::string(at(pointer).as_string()); }
  std::int64_t number(const char* pointer) const { return at(pointer).to_number<std::int64_t>(); }
  /// "404 CONTEXT_NOT_FOUND Code context 'x' not found"
  std::string refusal() const {
    return fmt::format("{} {} {}", status, text("/code"), text("/message"));
  }
};

struct SandboxTest : ::testing::Test {
  static constexpr object::Time kStart{std::chrono::milliseconds(1'700'000'000'123)};

  std::shared_ptr<FakeWorker> javascript = std::make_shared<FakeWorker>("javascript");
  std::shared_ptr<FakeWorker> python = std::make_shared<FakeWorker>("python");
  std::shared_ptr<FakeWorker> ruby = std::make_shared<FakeWorker>("ruby", false);
  object::ManualClock clock{kStart};
  executor::GuestPool guests{{.stack_bytes = std::size_t{1} << 20}};
  SandboxParts parts{.bindings = {{"JAVASCRIPT", javascript}, {"PYTHON", python}, {"RUBY", ruby}},
                     .clock = clock,
                     .guests = guests};
  protocol::Bindings& bindings = parts.bindings;
  SandboxOptions& options = parts.options;
  storage::MemoryDisk disk{storage::Bodies::kTwice};
  std::unique_ptr<storage::Storage> storage = storage::open_memory_storage(disk);
  const storage::ObjectName name = object_name("demo").value();
  std::unique_ptr<storage::ObjectStorage> object = storage->open(name, Sandbox::schema()).value();
  std::optional<Sandbox> sandbox_;

  Sandbox& sandbox() {
    if (!sandbox_) sandbox_.emplace(*object, parts);
    return *sandbox_;
  }
  /// A new sandbox over the same storage.
  void restart() {
    sandbox_.reset();
    object = storage->open(name, Sandbox::schema()).value();
  }
  Reply request(std::string method, std::string path, const std::string& body = {}) {
    const protocol::Response response = sandbox().fetch({.method = std::move(method),
                                                         .path = std::move(path),
                                                         .headers = {{"x-sandbox-id", "demo"}},
                                                         .body = body});
    EXPECT_EQ(protocol::find_header(response.headers, "cache-control"), "no-store");
    return {.status = response.status, .body = boost::json::parse(response.body)};
  }
  Reply post(std::string path, const boost::json::value& body) {
    return request("POST", std::move(path), boost::json::serialize(body));
  }
  Reply get(std::string path) { return request("GET", std::move(path)); }
  Reply remove(std::string path) { return request("DELETE", std::move(path)); }
  Reply files(const boost::json::value& body) { return post("/files", body); }
  Reply write(const char* path, const char* content) {
    return files({{"op", "write"}, {"path", path}, {"content", content}});
  }
  std::string read(const char* path) {
    const Reply reply = files({{"op", "read"}, {"path", path}});
    return reply.status == 200 ? reply.text("/content") : reply.text("/code");
  }
  std::string create(const char* binding) {
    return post("/contexts", {{"binding", binding}}).text("/id");
  }
  Reply execute(const char* binding, const char* code = "1") {
    return post("/execute", {{"binding", binding}, {"code", code}});
  }
  std::vector<std::string> context_ids() {
    std::vector<std::string> ids;
    const Reply reply = get("/contexts");
    for (const boost::json::value& context : reply.at("/contexts").as_array()) {
      ids.emplace_back(context.at("id").as_string());
    }
    return ids;
  }
  std::size_t rows(storage::TableId table) {
    std::size_t count = 0;
    EXPECT_TRUE(object
                    ->read([&](storage::Reader& reader) {
                      count = 0;
                      return reader.scan_keys(
                          {.table = table, .from = {}, .to = {}}, storage::Order::kAscending,
                          [&](std::string_view, std::size_t) -> Result<storage::Scan> {
                            ++count;
                            return storage::Scan::kContinue;
                          });
                    })
                    .ok());
    return count;
  }
  std::optional<object::Time> alarm() {
    std::optional<object::Time> time;
    EXPECT_TRUE(object
                    ->read([&](storage::Reader& reader) -> Result<void> {
                      SW_TRY(time, reader.alarm());
                      return {};
                    })
                    .ok());
    return time;
  }
  static void fail_run(Workspace& files, protocol::ExecuteResponse& response) {
    ASSERT_TRUE(files.write("by-the-run", "x", FileEncoding::kUtf8, 0).ok());
    response.outcome.error =
        GuestError{.name = "Error", .message = "oops", .traceback = {}, .line_number = {}};
  }
};

}  // namespace sw::sandbox
