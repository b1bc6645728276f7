// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "sandbox/sandbox_fixture.h"

namespace sw::sandbox {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(SandboxTest, AnEmptyFolderOfAGuestReachesTheOtherLanguage) {
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    ASSERT_TRUE(files.make_directory("empty", Depth::kOne, 0).ok());
  };
  execute("PYTHON");
  execute("JAVASCRIPT");
  EXPECT_THAT(manifest_of(*javascript->runs.back().run.files->state).dirs,
              ElementsAre("/workspace/empty"));
  const Reply list = files({{"op", "list"}, {"path", "/workspace"}});
  EXPECT_EQ(list.text("/files/0/type"), "directory");
  EXPECT_EQ(list.text("/files/0/mode"), "drwxr-xr-x");
  EXPECT_EQ(list.at("/files/0/permissions"),
            json::value({{"readable", true}, {"writable", true}, {"executable", true}}));
}

TEST_F(SandboxTest, EachOperationAnswersAsTheProtocolSays) {
  const Reply written = files({{"op", "write"}, {"path", "a.JSON"}, {"content", 5}});
  EXPECT_EQ(written.at(""), json::value({{"success", true},
                                         {"path", "/workspace/a.JSON"},
                                         {"timestamp", "2023-11-14T22:13:20.123Z"}}));
  EXPECT_EQ(files({{"op", "read"}, {"path", "/workspace/a.JSON"}}).at(""),
            json::value({{"success", true},
                         {"path", "/workspace/a.JSON"},
                         {"content", "5"},
                         {"encoding", "utf-8"},
                         {"isBinary", false},
                         {"mimeType", "application/json"},
                         {"size", 1},
                         {"timestamp", "2023-11-14T22:13:20.123Z"}}));
  EXPECT_EQ(files({{"op", "mkdir"}, {"path", "d/e"}, {"recursive", 1}}).at("/recursive"),
            json::value(true));
  EXPECT_EQ(files({{"op", "move"}, {"path", "a.JSON"}, {"newPath", "d/b"}}).text("/newPath"),
            "/workspace/d/b");
  EXPECT_TRUE(files({{"op", "exists"}, {"path", "d/b"}}).at("/exists").as_bool());
  EXPECT_FALSE(files({{"op", "exists"}, {"path", "d/b/c"}}).at("/exists").as_bool());
  EXPECT_EQ(files({{"op", "delete"}, {"path", "d"}}).text("/code"), "IS_DIRECTORY");
  EXPECT_EQ(files({{"op", "delete"}, {"path", "d"}, {"recursive", true}}).status, 200);
  EXPECT_EQ(files({{"op", "delete"}, {"path", "d"}, {"force", true}}).status, 200);
}

TEST_F(SandboxTest, ListsLeaveOutWhatIsHidden) {
  files({{"op", "mkdir"}, {"path", ".git/objects"}, {"recursive", true}});
  ASSERT_EQ(write("a.txt", "abc").status, 200);
  const Reply list = files({{"op", "list"}, {"path", "."}, {"recursive", true}});
  EXPECT_EQ(list.text("/path"), "/workspace");
  EXPECT_EQ(list.number("/count"), 1);
  EXPECT_EQ(list.at("/files/0"),
            json::value({{"name", "a.txt"},
                         {"absolutePath", "/workspace/a.txt"},
                         {"relativePath", "a.txt"},
                         {"type", "file"},
                         {"size", 3},
                         {"modifiedAt", "2023-11-14T22:13:20.123Z"},
                         {"mode", "-rw-r--r--"},
                         {"permissions",
                          {{"readable", true}, {"writable", true}, {"executable", false}}}}));
  EXPECT_EQ(files({{"op", "list"}, {"path", "."}, {"recursive", true}, {"includeHidden", true}})
                .number("/count"),
            3);
  EXPECT_EQ(files({{"op", "list"}, {"path", ".git"}}).text("/files/0/relativePath"), "objects");
}

TEST_F(SandboxTest, FileErrorsHaveCodeOperationErrnoAndThePathAsSent) {
  const Reply missing = files({{"op", "read"}, {"path", "./missing"}});
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.text("/code"), "FILE_NOT_FOUND");
  EXPECT_EQ(missing.text("/operation"), "file.read");
  EXPECT_EQ(missing.at("/context"),
            json::value({{"path", "./missing"}, {"operation", "file.read"}, {"errno", "ENOENT"}}));
  const Reply outside = files({{"op", "exists"}, {"path", "/etc/passwd"}});
  EXPECT_EQ(outside.refusal(), "403 PERMISSION_DENIED Path escapes /workspace: /etc/passwd");
  EXPECT_EQ(outside.text("/operation"), "file.stat");
  const Reply big = write("big", std::string(1'048'577, 'x').c_str());
  EXPECT_EQ(big.status, 413);
  EXPECT_EQ(big.text("/code"), "FILE_TOO_LARGE");
  EXPECT_EQ(big.number("/context/maxSize"), 1'048'576);
  EXPECT_EQ(big.number("/context/actualSize"), 1'048'577);
}

TEST_F(SandboxTest, FailuresOfMkdirAreFilesystemErrors) {
  files({{"op", "mkdir"}, {"path", "d"}});
  const Reply existing = files({{"op", "mkdir"}, {"path", "d"}});
  EXPECT_EQ(existing.status, 500);
  EXPECT_EQ(existing.text("/code"), "FILESYSTEM_ERROR");
  EXPECT_EQ(existing.text("/context/errno"), "EEXIST");
  EXPECT_EQ(files({{"op", "mkdir"}, {"path", "/etc"}}).text("/code"), "PERMISSION_DENIED");
}

TEST_F(SandboxTest, FileRequestsAreValidated) {
  const auto refusal = [&](const json::value& body) { return files(body).refusal(); };
  EXPECT_EQ(refusal({{"op", "chmod"}, {"path", "a"}}), "400 VALIDATION_FAILED Unknown op");
  EXPECT_EQ(refusal({{"op", "read"}, {"path", ""}}), "400 VALIDATION_FAILED path is required");
  EXPECT_EQ(refusal({{"op", "rename"}, {"path", "a"}}),
            "400 VALIDATION_FAILED newPath is required for rename");
  EXPECT_EQ(refusal({{"op", "read"}, {"path", "a"}, {"encoding", "utf8"}}),
            "400 VALIDATION_FAILED encoding must be utf-8 or base64");
  EXPECT_EQ(request("POST", "/files", "{").refusal(), "400 VALIDATION_FAILED Invalid JSON");
  EXPECT_EQ(request("POST", "/files", std::string(2'097'153, ' ')).refusal(),
            "413 VALIDATION_FAILED Request too large");
}

TEST_F(SandboxTest, FilesThatWereAllowedWhenTheyWereStoredCanStillBeRead) {
  options.files.file_bytes_max = 3'000'000;
  const std::string big(2'000'000, 'x');
  ASSERT_TRUE(sandbox()
                  .with_files(FileUse::kChange, "file.write", "big",
                              [&](Workspace& files, std::uint64_t now) {
                                return files.write("big", big, FileEncoding::kUtf8, now);
                              })
                  .ok());
  options = {};
  restart();
  EXPECT_EQ(read("big"), big);
  EXPECT_EQ(write("big2", std::string(1'048'577, 'x').c_str()).status, 413);
}

// --- no files at all

TEST_F(SandboxTest, DisabledTheFileApiIsRefusedBeforeAnythingElse) {
  options.file_api = false;
  const Reply reply = request("POST", "/files", "{ not JSON");
  EXPECT_EQ(
      reply.refusal(),
      "403 NOT_SUPPORTED The File API is disabled for this sandbox (SANDBOX_FILE_API=disabled)");
  EXPECT_EQ(reply.text("/context/feature"), "files");
}

TEST_F(SandboxTest, DisabledNothingOfFilesIsSentOrStored) {
  ASSERT_EQ(write("f", "kept").status, 200);
  const std::size_t stored = rows(0x20);
  options.file_api = false;
  restart();
  python->during_run = [](Workspace& files, protocol::ExecuteResponse&) {
    files.set_disabled(false);  // a runtime that does not keep to it
    ASSERT_TRUE(files.write("by-the-run", "x", FileEncoding::kUtf8, 0).ok());
  };
  EXPECT_EQ(execute("PYTHON").number("/executionCount"), 1);
  EXPECT_EQ(execute("PYTHON").number("/executionCount"), 2);
  const RunFiles& given = *python->runs.back().run.files;
  EXPECT_TRUE(given.disabled && !given.state && given.manifest.files.empty());
  EXPECT_THAT(python->asked_for, IsEmpty());
  EXPECT_FALSE(get("/").at("/fileApi").as_bool());
  EXPECT_EQ(get("/").at("/workspace"), json::value({{"files", 0}, {"bytes", 0}}));
  EXPECT_EQ(rows(0x20), stored);
  options.file_api = true;
  restart();
  EXPECT_EQ(read("f"), "kept");
}

}  // namespace
}  // namespace sw::sandbox
