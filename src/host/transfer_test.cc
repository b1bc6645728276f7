// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Exporting and importing sandboxes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <string>

#include "sandbox/archive.h"
#include "sandbox/file_store.h"
#include "sandbox/stored_sandbox.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/host.h"

namespace sw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ReadBytes reading(const Bytes& bytes) {
  return
      [&bytes, used = std::size_t{0}](std::span<std::byte> buffer) mutable -> Result<std::size_t> {
        const std::size_t now = std::min(buffer.size(), bytes.size() - used);
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(used), now, buffer.begin());
        used += now;
        return now;
      };
}

/// In memory, and over a data folder.
class Transfer : public testing::TestWithParam<bool> {
 protected:
  Transfer() : from_(open("from")), to_(open("to")) {}

  Host open(const std::string& name, const SandboxSettings& settings = {}) {
    return Host::open(
               {.data_folder = GetParam() ? folder_.path() / name : "", .sandboxes = settings})
        .value();
  }

  static std::string run(const Host& host, const std::string& sandbox, const std::string& language,
                         const std::string& code, const std::string& context = "") {
    const auto outcome =
        host.sandbox(sandbox).run({.language = language, .code = code, .context = context});
    if (!outcome.ok()) return outcome.error().message;
    if (outcome->error) return outcome->error->name;
    return outcome->value ? outcome->value->text : "";
  }

  Bytes exported(const std::string& sandbox, const ExportOptions& options = {}) {
    Bytes bytes;
    const auto done = from_.sandbox(sandbox).export_to(
        [&](BytesView part) -> Result<void> {
          bytes.insert(bytes.end(), part.begin(), part.end());
          return {};
        },
        options);
    EXPECT_TRUE(done.ok()) << done.error().message;
    return bytes;
  }

  /// The error's text, or nothing.
  static std::string import(const Host& host, const std::string& sandbox, const Bytes& bytes) {
    const auto imported = host.import_sandbox(sandbox, reading(bytes));
    return imported.ok() ? "" : imported.error().message;
  }

  void fill(const std::string& sandbox) {
    run(from_, sandbox, "javascript", "var x = 1; fs.writeFileSync('file', 'one')");
    run(from_, sandbox, "javascript", "x = 2; fs.writeFileSync('file', 'two')");
    run(from_, sandbox, "python", "y = [1, 2]");
    run(from_, sandbox, "perl", "our $z = 'perl'; $z");
    run(from_, sandbox, "ruby", "r = {a: 1}");
    EXPECT_TRUE(from_.sandbox(sandbox).set_env({{"NAME", "value"}}).ok());
  }

  const TemporaryDirectory folder_ =
      *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-transfer-");
  Host from_;
  Host to_;
};

TEST_P(Transfer, ASandboxGoesOnElsewhereWithMemoryFilesEnvironmentAndHistory) {
  fill("a");
  const Bytes bytes = exported("a");
  ASSERT_EQ(import(to_, "b", bytes), "");
  EXPECT_EQ(run(to_, "b", "javascript", "x + fs.readFileSync('file', 'utf8')"), "'2two'");
  EXPECT_EQ(run(to_, "b", "python", "y"), "[1,2]");
  EXPECT_THAT(run(to_, "b", "perl", "$z"), HasSubstr("perl"));
  EXPECT_THAT(run(to_, "b", "ruby", "r[:a] + 1"), HasSubstr("2"));
  EXPECT_EQ(run(to_, "b", "javascript", "process.env.NAME"), "'value'");
  ASSERT_TRUE(to_.sandbox("b").context("javascript").restore(1, {.files = true}).ok());
  EXPECT_EQ(run(to_, "b", "javascript", "x + fs.readFileSync('file', 'utf8')"), "'1one'");
  // The original knows nothing of it.
  EXPECT_EQ(run(from_, "a", "javascript", "x"), "2");
}

TEST_P(Transfer, NothingIsLeftInBetween) {
  fill("a");
  const Bytes bytes = exported("a");
  ASSERT_EQ(import(from_, "b", bytes), "");
  ASSERT_TRUE(from_.sandbox("a").destroy().ok());
  ASSERT_TRUE(from_.sandbox("b").destroy().ok());
  if (!GetParam()) return;
  from_ = to_;
  const auto check = check_data_folder(folder_.path() / "from");
  ASSERT_TRUE(check.ok()) << check.error().message;
  EXPECT_THAT(check->problems, ElementsAre());
  EXPECT_EQ(check->objects, 0U);
}

TEST_P(Transfer, WithoutHistoryOnlyTheLastStepIsThereAndItIsSmaller) {
  for (int i = 0; i < 30; ++i) {
    run(from_, "a", "javascript",
        "var big = Array.from({length: 20000}, () => Math.random()); var x = 5;"
        "fs.writeFileSync('file', String(big))");
  }
  run(from_, "a", "javascript", "big = 0; fs.writeFileSync('file', 'last')");
  const Bytes whole = exported("a");
  const Bytes small = exported("a", {.history = false});
  EXPECT_LT(small.size() * 3, whole.size());
  ASSERT_EQ(import(to_, "b", small), "");
  EXPECT_EQ(run(to_, "b", "javascript", "x + fs.readFileSync('file', 'utf8')"), "'5last'");
  EXPECT_LE(to_.sandbox("b").context("javascript").history()->size(), 2U);
  EXPECT_EQ(from_.sandbox("a").context("javascript").history()->size(), 31U);
}

TEST_P(Transfer, OnlyTheContextsThatAreWanted) {
  fill("a");
  run(from_, "a", "javascript", "var secret = 'never leaves'", "other");
  const Bytes bytes = exported("a", {.contexts = {"javascript"}, .history = false});
  EXPECT_EQ(as_text(bytes).find("never leaves"), std::string_view::npos);
  ASSERT_EQ(import(to_, "b", bytes), "");
  ASSERT_EQ(to_.sandbox("b").contexts()->size(), 1U);
  EXPECT_EQ(run(to_, "b", "javascript", "x"), "2");
  EXPECT_EQ(from_.sandbox("a").contexts()->size(), 5U);
  const auto unknown = from_.sandbox("a").export_to([](BytesView) { return Result<void>(); },
                                                    {.contexts = {"none"}});
  EXPECT_EQ(unknown.error().code, ErrorCode::kContextNotFound);
}

TEST_P(Transfer, NamesAreCheckedAndDamageMakesNoSandbox) {
  fill("a");
  const Bytes bytes = exported("a");
  EXPECT_THAT(import(from_, "a", bytes), HasSubstr("'a' already exists"));
  EXPECT_NE(import(to_, "no name", bytes), "");
  EXPECT_EQ(from_.sandbox("none").export_to([](BytesView) { return Result<void>(); }).error().code,
            ErrorCode::kNotFound);
  Bytes damaged = bytes;
  damaged[damaged.size() / 2] ^= std::byte{1};
  EXPECT_NE(import(to_, "b", damaged), "");
  const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2));
  EXPECT_THAT(import(to_, "b", part), HasSubstr("ends too early"));
  EXPECT_TRUE(to_.sandboxes()->empty());
  ASSERT_EQ(import(to_, "b", bytes), "");
}

/// An archive with a right checksum whose rows are others. `change` may alter a row.
Bytes rewritten(const Bytes& bytes, const std::function<void(sandbox::ArchiveRow&)>& change) {
  Bytes out;
  const WriteBytes write = [&](BytesView part) -> Result<void> {
    out.insert(out.end(), part.begin(), part.end());
    return {};
  };
  const ReadBytes read = reading(bytes);
  sandbox::ArchiveReader from(read);
  sandbox::ArchiveWriter to(write);
  while (true) {
    auto record = from.next().value();
    if (std::holds_alternative<sandbox::ArchiveEnd>(record)) break;
    if (const auto* const object = std::get_if<sandbox::ArchiveObject>(&record)) {
      EXPECT_TRUE(to.object(object->binding, object->schema).ok());
    } else if (auto* const row = std::get_if<sandbox::ArchiveRow>(&record)) {
      change(*row);
      EXPECT_TRUE(to.row(row->table, row->key, row->value).ok());
    }
  }
  EXPECT_TRUE(to.end().ok());
  return out;
}

TEST_P(Transfer, WhatCannotBeASandboxIsRefusedThoughItsChecksumIsRight) {
  fill("a");
  const Bytes bytes = exported("a");
  ASSERT_EQ(import(to_, "same", rewritten(bytes, [](auto&) {})), "");
  for (const char* path : {"..", ".", "../file", "/file", "d/../file", "d//file"}) {
    EXPECT_NE(import(to_, "b",
                     rewritten(bytes,
                               [&](sandbox::ArchiveRow& row) {
                                 if (row.table == sandbox::kEntriesTable && row.key == "file")
                                   row.key = path;
                               })),
              "")
        << path;
  }
  EXPECT_THAT(import(to_, "b",
                     rewritten(bytes,
                               [](sandbox::ArchiveRow& row) {
                                 if (row.table == sandbox::kEntriesTable) row.table = 0x50;
                               })),
              HasSubstr("of no table"));
  EXPECT_THAT(import(to_, "b",
                     rewritten(bytes,
                               [](sandbox::ArchiveRow& row) {
                                 if (row.table == sandbox::kContextsTable && row.key == "ruby")
                                   row.key = "x";
                               })),
              HasSubstr("contexts of 'RUBY'"));
  EXPECT_THAT(import(to_, "b",
                     rewritten(bytes,
                               [](sandbox::ArchiveRow& row) {
                                 const auto at = as_text(row.value).find("\"language\":\"perl\"");
                                 if (at != std::string_view::npos)
                                   row.value[at + 12] = std::byte{'q'};
                               })),
              HasSubstr("contexts of 'perl'"));
  EXPECT_THAT(import(to_, "b",
                     rewritten(bytes,
                               [](sandbox::ArchiveRow& row) {
                                 if (row.table == sandbox::kContextsTable)
                                   row.value.resize(2 << 20);
                               })),
              HasSubstr("too large"));
  EXPECT_THAT(*to_.sandboxes(), ElementsAre("same"));
}

TEST_P(Transfer, AnExportReplacesFilesOnly) {
  fill("a");
  const auto pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(from_.sandbox("a").export_to(pipe).error().code, ErrorCode::kFileExists);
  EXPECT_EQ(from_.sandbox("a").files().copy_out("file", pipe, IfThere::kReplace).error().code,
            ErrorCode::kFileExists);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  const auto file = folder_.path() / "file";
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(from_.sandbox("a").export_to(file).ok());
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  }
  EXPECT_EQ(import(to_, "b", read_file(file).value()), "");
}

TEST_P(Transfer, AReaderOrWriterThatFailsEndsIt) {
  fill("a");
  const auto full = from_.sandbox("a").export_to([](BytesView) -> Result<void> {
    return Error{ErrorCode::kNoSpace, "the disk is full"};
  });
  EXPECT_EQ(full.error().message, "the disk is full");
  const auto gone = to_.import_sandbox("b", [](std::span<std::byte>) -> Result<std::size_t> {
    return Error{ErrorCode::kUnavailable, "gone"};
  });
  EXPECT_EQ(gone.error().message, "gone");
  EXPECT_TRUE(to_.sandboxes()->empty());
}

TEST_P(Transfer, MoreThanASandboxMayHaveIsRefused) {
  fill("a");
  run(from_, "a", "javascript", "fs.writeFileSync('big', 'x'.repeat(100000))");
  const Bytes bytes = exported("a");
  SandboxSettings few;
  few.contexts_max = 2;
  EXPECT_THAT(import(open("few", few), "b", bytes), HasSubstr("2 contexts"));
  SandboxSettings small;
  small.files.tree_bytes_max = 50'000;
  small.file_history.bytes_max = 0;
  EXPECT_THAT(import(open("small", small), "b", bytes), HasSubstr("50000 bytes"));
}

INSTANTIATE_TEST_SUITE_P(Storages, Transfer, testing::Bool(),
                         [](const auto& of) { return of.param ? "DataFolder" : "Memory"; });

}  // namespace
}  // namespace sw
