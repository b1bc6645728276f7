// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/check.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "storage/directory.h"
#include "storage/journal/journal.h"
#include "storage/layered_transaction.h"
#include "storage/sqlite/data_folder.h"
#include "storage/sqlite/file_pool.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::storage {

namespace {

class Checker {
 public:
  explicit Checker(DataFolder folder)
      : folder_(std::move(folder)), files_(folder_, "", 1), layers_(files_) {}

  Result<StorageCheck> run() {
    SW_CHECK_OK(check_journal());
    const bool stored = files_.exists(kDirectoryLayer);
    directory_ = layers_.get(kDirectoryLayer, stored ? Stored::kYes : Stored::kNo);
    note_leftovers(rows_[kDirectoryLayer]);
    directory_->recover(std::move(rows_[kDirectoryLayer]));
    if (stored) check_database(kDirectoryLayer);
    LayeredTransaction reader({directory_}, {});
    const auto read = scan_objects(reader, [&](const ObjectName& name, const ObjectEntry& entry) {
      ++report_.objects;
      for (const LayerNumber number : entry.layers) check_layer(reader, name, number);
      return Result<Scan>(Scan::kContinue);
    });
    if (!read.ok()) problem(read.error().message);
    const auto merging = read_counter(reader, Counter::kMerging);
    if (!merging.ok()) problem(merging.error().message);
    else leftovers_.insert(*merging);
    report_.layers = seen_.size();
    SW_CHECK_OK(look_for_orphans());
    return std::move(report_);
  }

 private:
  void problem(std::string text) { report_.problems.push_back(std::move(text)); }

  Result<void> check_journal() {
    std::array<Bytes, 2> contents;
    std::array<std::optional<JournalHeader>, 2> headers;
    std::error_code error;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      if (!std::filesystem::exists(folder_.journal(i), error)) continue;
      SW_TRY(contents[i], read_file(folder_.journal(i)));
      SW_TRY(headers[i], decode_journal_header(contents[i]));
    }
    const auto first = [&](std::size_t i) { return headers[i] ? headers[i]->first_sequence : 0; };
    const std::size_t newer = first(1) > first(0) ? 1 : 0;
    for (const std::size_t i : {1 - newer, newer}) {
      if (headers[i]) add(read_frames(contents[i], *headers[i], i == newer ? 0 : first(newer)));
    }
    return {};
  }

  void add(const JournalContent& content) {
    for (const std::string& damage : content.damage) problem("journal: " + damage);
    for (const Frame& frame : content.frames) {
      ++report_.frames;
      report_.journal_bytes += frame.bytes;
      for (const FramePart& part : frame.parts) {
        if (!part.rows) continue;  // told already
        for (const auto& [name, value] : *part.rows)
          rows_[part.layer].insert_or_assign(name, value);
      }
    }
  }

  void check_layer(Reader& directory, const ObjectName& name, LayerNumber number) {
    if (!seen_.insert(number).second) return;
    const auto entry = find_layer(directory, number);
    if (!entry.ok()) return problem(entry.error().message);
    if (!*entry) return problem(fmt::format("{}: layer {} is missing", to_string(name), number));
    if ((*entry)->damaged) {
      problem(fmt::format("{}: something that was committed to layer {} is lost", to_string(name),
                          number));
    }
    if ((*entry)->stored) check_database(number);
  }

  void check_database(LayerNumber number) {
    const auto checked = files_.use(number, [&](LayerDatabase& database) -> Result<void> {
      SW_TRY(Statement check, database.connection().prepare_once("PRAGMA integrity_check(1)"));
      SW_TRY(const bool row, check.step());
      if (!row || check.text(0) != "ok") {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{} is damaged: {}", files_.path(number).native(),
                                 row ? check.text(0) : "it cannot be checked")};
      }
      return {};
    });
    if (!checked.ok()) problem(checked.error().message);
  }

  /// Layers that are deleted, of which there may still be files.
  void note_leftovers(const Rows& directory) {
    for (const auto& [name, value] : directory) {
      const auto number = number_of_key(name.second);
      if (name.first == kLayersTable && !value && number) leftovers_.insert(*number);
    }
  }

  Result<void> look_for_orphans() {
    SW_TRY(const auto numbers, folder_.object_files());
    for (const std::int64_t number : numbers) {
      const auto layer = static_cast<LayerNumber>(number);
      if (seen_.contains(layer) || leftovers_.contains(layer)) continue;
      problem(fmt::format("{} belongs to no object", folder_.object(number).native()));
    }
    return {};
  }

  const DataFolder folder_;
  FilePool files_;
  FileLayers layers_;
  LayerPtr directory_;  // shared with the layers
  std::map<LayerNumber, Rows> rows_;
  std::set<LayerNumber> seen_;
  std::set<LayerNumber> leftovers_;  // that the next start deletes
  StorageCheck report_;
};

}  // namespace

Result<StorageCheck> check_data_folder(const std::filesystem::path& folder) {
  if (!is_data_folder(folder)) {
    return Error{ErrorCode::kNotFound, fmt::format("{} is not a data folder", folder.native())};
  }
  SW_TRY(DataFolder owned, DataFolder::own(folder));
  return Checker(std::move(owned)).run();
}

}  // namespace sw::storage
