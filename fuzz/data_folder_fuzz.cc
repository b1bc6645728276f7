// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A data folder of which some files are damaged or missing. That is told, object by object: those
// whose files are whole are as they were, also when the catalog of them is lost.

#include <map>
#include <set>

#include "fuzz/fuzz.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::fuzz {
namespace {

namespace fs = std::filesystem;
using namespace storage;

constexpr int kChangesMax = 8;
constexpr storage::TableId kTable = 7;
constexpr Time kAlarm{std::chrono::milliseconds(1'700'000'000'123)};
const char* const kIds[] = {"one", "two", "three"};
constexpr char kCatalog[] = "catalog.sqlite";

ObjectName name_of(const std::string& id) { return {.class_name = "thing", .id = id}; }

/// Grows by `row` steps; some rows take several pages.
Bytes value_of(int row) {
  return Bytes(static_cast<std::size_t>(row * row * 20), static_cast<std::byte>(row));
}

using Content = std::map<std::string, Bytes>;

Content good_content() {
  Content content;
  for (int row = 0; row < 8; ++row) content["key " + std::to_string(row)] = value_of(row);
  return content;
}

/// By path within the folder.
using Files = std::map<std::string, Bytes>;

Files good_files() {
  const auto folder = TemporaryDirectory::create(memory_folder(), "sw-fuzz-").value();
  {
    // At the end everything is in the databases.
    const auto storage = open_sqlite_storage(folder.path(), {.journal_bytes_left = 0}).value();
    for (const char* id : kIds) {
      const auto object = storage->open(name_of(id), {}).value();
      const auto written = object->transact([](Transaction& transaction) -> Result<void> {
        for (const auto& [key, value] : good_content())
          SW_CHECK_OK(transaction.put(kTable, key, value));
        return transaction.set_alarm(kAlarm);
      });
      require(written.ok(), "objects are made");
    }
  }
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    const std::string path = fs::relative(entry.path(), folder.path());
    const bool is_database = path.ends_with(".sqlite");
    if (entry.is_regular_file() && is_database) files[path] = read_file(entry.path()).value();
  }
  require(files.size() == 1 + std::size(kIds), "each object has a file");
  return files;
}

struct Damage {
  std::set<std::string> objects;  ///< paths of files that are not what they were
  bool of_catalog = false;        ///< unless it is missing, which is noticed in any case
};

Damage do_damage(Files& files, Choices& choices) {
  Damage damage;
  std::vector<std::string> paths;
  for (const auto& [path, bytes] : files) paths.push_back(path);
  for (int i = 0; i < kChangesMax && !choices.empty(); ++i) {
    const std::string& path = paths[choices.below(paths.size())];
    const bool missing = choices.below(8) == 7;
    if (missing) files.erase(path);
    else if (files.contains(path)) change(files[path], choices);
    if (path != kCatalog) damage.objects.insert(path);
    else damage.of_catalog = !missing && files.contains(path);
  }
  return damage;
}

void write(const fs::path& folder, const Files& files) {
  for (const auto& [path, bytes] : files) {
    fs::create_directories((folder / path).parent_path());
    require(write_file_atomically(folder / path, bytes).ok(), "files are written");
  }
}

/// What an object has, read in two ways.
Result<Content> content_of(ObjectStorage& object) {
  Content content;
  SW_CHECK_OK(object.read([&](Reader& reader) -> Result<void> {
    content.clear();
    SW_CHECK_OK(reader.scan({.table = kTable, .from = {}, .to = {}}, Order::kDescending,
                            [&](std::string_view key, BytesView value) -> Result<Scan> {
                              content.emplace(key, copy_of(value));
                              return Scan::kContinue;
                            }));
    for (const auto& [key, value] : content) {
      SW_TRY([[maybe_unused]] const auto found, reader.get(kTable, key));
    }
    SW_TRY([[maybe_unused]] const auto alarm, reader.alarm());
    return {};
  }));
  return content;
}

/// Also of those that are damaged.
void use(Storage& storage, const std::string& id) {
  const auto object = storage.open(name_of(id), {}).value();
  (void)content_of(*object);
  const auto written = object->transact([](Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(transaction.put(kTable, "key 3", value_of(9)));
    SW_CHECK_OK(transaction.erase(kTable, "key 4"));
    return transaction.set_alarm(std::nullopt);
  });
  if (!written.ok()) note(written.error().message);
}

void check_whole(Storage& storage, const std::string& id) {
  const auto object = storage.open(name_of(id), {}).value();
  const auto content = content_of(*object);
  require(content.ok(), "an object can be read whose file is whole",
          content.ok() ? "" : content.error().message);
  require(*content == good_content(), "it is as it was");
  const auto found = storage.find(name_of(id));
  require(found.ok() && *found && (*found)->alarm == kAlarm, "so is its alarm");
}

}  // namespace

SW_FUZZ(data_folder) {
  static const Files good = good_files();
  Choices choices(input);
  Files files = good;
  const Damage damage = do_damage(files, choices);
  const auto folder = TemporaryDirectory::create(memory_folder(), "sw-fuzz-").value();
  write(folder.path(), files);
  for (int start = 0; start < 2; ++start) {
    const auto storage = open_sqlite_storage(folder.path(), {});
    if (!storage.ok()) {
      note(storage.error().message);
      require(damage.of_catalog, "damage of an object does not keep others from being used",
              storage.error().message);
      return;
    }
    for (std::size_t i = 0; i < std::size(kIds); ++i) {
      const std::string number = std::to_string(i + 1);
      const bool damaged = damage.objects.contains("objects/0" + number + "/" + number + ".sqlite");
      if (damaged || damage.of_catalog) use(**storage, kIds[i]);
      else check_whole(**storage, kIds[i]);
    }
    (void)(*storage)->list("thing", "", 10);
    (void)(*storage)->alarms_until(kAlarm, 10);
  }
}

}  // namespace sw::fuzz
