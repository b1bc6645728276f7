// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of data folders share.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>

#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/faulty_disk.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::storage {

inline Time at(std::int64_t ms) { return Time(std::chrono::milliseconds(ms)); }

inline TemporaryDirectory temporary() {
  return *TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-sqlite-");
}

/// At its end everything is in the databases, unless `options` say otherwise.
inline std::unique_ptr<Storage> open_storage(const std::filesystem::path& folder,
                                             SqliteOptions options = {}) {
  options.journal_bytes_left = 0;
  auto opened = open_sqlite_storage(folder, std::move(options));
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return opened.ok() ? *std::move(opened) : nullptr;
}

/// How a program ends before its time.
enum class Ending { kProcessDies, kPowerLost, kPowerLostTorn };

inline auto all_endings() {
  return testing::Values(Ending::kProcessDies, Ending::kPowerLost, Ending::kPowerLostTorn);
}

inline std::string name_of(const testing::TestParamInfo<Ending>& ending) {
  return ending.param == Ending::kProcessDies ? "ProcessDies"
         : ending.param == Ending::kPowerLost ? "PowerLost"
                                              : "PowerLostTorn";
}

inline void end(FaultyDisk& disk, Ending ending, std::mt19937& random) {
  if (ending == Ending::kProcessDies) return;
  disk.lose_power(
      ending == Ending::kPowerLost ? FaultyDisk::Unsynced::kLost : FaultyDisk::Unsynced::kTorn,
      random);
}

inline Result<void> put(Storage& storage, const ObjectName& name, std::string key,
                        std::string value) {
  SW_TRY(auto object, storage.open(name, {}));
  return object->transact(
      [&](Transaction& transaction) { return transaction.put(1, key, as_bytes(value)); });
}

inline Result<std::string> get(Storage& storage, const ObjectName& name, std::string key) {
  SW_TRY(auto object, storage.open(name, {}));
  std::string text = "(nothing)";
  SW_CHECK_OK(object->read([&](Reader& reader) -> Result<void> {
    SW_TRY(const auto value, reader.get(1, key));
    if (value) text = as_text(*value);
    return {};
  }));
  return text;
}

inline std::string due(Storage& storage) {
  auto alarms = storage.alarms_until(Time::max(), 1000);
  EXPECT_TRUE(alarms.ok()) << alarms.error().message;
  std::string text;
  for (const DueAlarm& alarm : *alarms) {
    text += alarm.name.id + "@" + std::to_string(alarm.time.time_since_epoch().count()) + " ";
  }
  return text;
}

inline std::vector<std::filesystem::path> object_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  const DataFolder data = DataFolder::look_at(folder);
  const auto numbers = data.object_files();
  for (const std::int64_t file : *numbers) {
    files.push_back(data.object(file));
  }
  return files;
}

inline std::string whole_file(const std::filesystem::path& path) {
  return read_text_file(path).value();
}

// The words about alarms, in an order of their own.
inline std::string alarms_of(const std::string& picture) {
  std::istringstream words(picture);
  std::vector<std::string> alarms{std::istream_iterator<std::string>(words), {}};
  std::erase_if(alarms,
                [](const std::string& word) { return word.find('@') == std::string::npos; });
  std::sort(alarms.begin(), alarms.end());
  std::string text;
  for (const std::string& alarm : alarms) text += alarm + " ";
  return text;
}

// In the child: commits for ever, and says so for each commit.
[[noreturn]] inline void commit_until_killed(const std::filesystem::path& folder, int report) {
  auto storage = open_sqlite_storage(folder, {.idle_open_max = 2, .vfs = {}, .on_notice = {}});
  if (!storage.ok()) ::_exit(2);
  std::vector<std::unique_ptr<ObjectStorage>> objects;
  for (int i = 0; i < 4; ++i) objects.push_back(*(*storage)->open({"k", std::to_string(i)}, {}));
  for (unsigned step = 0;; ++step) {
    const unsigned which = step % 4;
    unsigned number = 0;
    const auto done = objects[which]->transact([&](Transaction& transaction) -> Result<void> {
      SW_TRY(const auto before, transaction.get(1, "0"));
      number = before ? static_cast<unsigned>(std::stoul(std::string(as_text(*before)))) + 1 : 1;
      for (const char* key : {"0", "1", "2"}) {
        SW_CHECK_OK(transaction.put(1, key, as_bytes(std::to_string(number))));
      }
      SW_CHECK_OK(transaction.put(2, "large", Bytes(number * 7919 % 9000, std::byte{1})));
      return transaction.set_alarm(at(number % 2 == 0 ? number : 1000 - number));
    });
    if (!done.ok()) ::_exit(3);
    const unsigned message[2] = {which, number};
    if (::write(report, message, sizeof message) != sizeof message) ::_exit(4);
  }
}

}  // namespace sw::storage
