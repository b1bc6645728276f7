// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/embedded_sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

namespace sw::sandbox {

namespace {

constexpr storage::TableId kMetaTable = 0x01;
constexpr std::string_view kLanguagesKey = "languages";
// Each language has three tables of its own; which ones is decided by the order in which languages were first
// used.
constexpr storage::TableId kFirstLanguageTable = 0x30;
constexpr storage::TableId kTablesPerLanguage = 3;
constexpr std::size_t kLanguagesMax = 16;

interpreter::Options options_of(std::size_t number) {
  const auto base = static_cast<storage::TableId>(kFirstLanguageTable + number * kTablesPerLanguage);
  interpreter::Options options;
  options.contexts_table = base;
  options.snapshots.contexts_table = static_cast<storage::TableId>(base + 1);
  options.snapshots.packs_table = static_cast<storage::TableId>(base + 2);
  return options;
}

}  // namespace

Result<storage::ObjectName> EmbeddedSandbox::object_name(std::string_view id) { return sandbox::object_name(id); }

EmbeddedSandbox::EmbeddedSandbox(storage::ObjectStorage& storage, const wasi::Clocks& clocks, FileStore files)
    : storage_(storage), clocks_(clocks), files_(std::move(files)) {}
EmbeddedSandbox::~EmbeddedSandbox() = default;

Result<std::unique_ptr<EmbeddedSandbox>> EmbeddedSandbox::open(storage::ObjectStorage& storage,
                                                               const wasi::Clocks& clocks) {
  SW_TRY(FileStore files, FileStore::load(storage, {}, clocks.realtime_ns()));
  return std::unique_ptr<EmbeddedSandbox>(new EmbeddedSandbox(storage, clocks, std::move(files)));
}

Result<void> EmbeddedSandbox::save_files() {
  FileStore::Changes changes = files_.changes();
  if (changes.empty()) return {};
  SW_CHECK_OK(storage_.transact([&](storage::Transaction& transaction) { return changes.write(transaction); }));
  files_.written(std::move(changes));
  return {};
}

Result<std::vector<std::string>> EmbeddedSandbox::languages() {
  std::optional<Bytes> bytes;
  SW_CHECK_OK(storage_.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(bytes, reader.get(kMetaTable, kLanguagesKey));
    return {};
  }));
  if (!bytes) return std::vector<std::string>();
  try {
    return boost::json::value_to<std::vector<std::string>>(boost::json::parse(as_text(*bytes)));
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt, fmt::format("the list of languages is damaged: {}", problem.what()), 0};
  }
}

Result<interpreter::Options> EmbeddedSandbox::options_for(const std::string& language) {
  SW_TRY(std::vector<std::string> known, languages());
  const auto found = std::ranges::find(known, language);
  const auto number = static_cast<std::size_t>(found - known.begin());
  if (found != known.end()) return options_of(number);
  if (number == kLanguagesMax) return Error{ErrorCode::kLimitExceeded, "a sandbox has at most 16 languages", 0};
  known.push_back(language);
  const std::string text = boost::json::serialize(boost::json::value_from(known));
  SW_CHECK_OK(storage_.transact([&](storage::Transaction& transaction) {
    return transaction.put(kMetaTable, kLanguagesKey, as_bytes(text));
  }));
  return options_of(number);
}

Result<interpreter::Interpreter*> EmbeddedSandbox::interpreter(const std::shared_ptr<engine::Engine>& engine) {
  auto& interpreter = interpreters_[engine->info().language];
  if (!interpreter) {
    SW_TRY(const interpreter::Options options, options_for(engine->info().language));
    SW_TRY(interpreter, interpreter::Interpreter::open(engine, storage_, clocks_, options));
  }
  return interpreter.get();
}

Result<std::vector<ContextEntry>> EmbeddedSandbox::contexts() {
  SW_TRY(const std::vector<std::string> known, languages());
  std::vector<ContextEntry> entries;
  for (std::size_t number = 0; number < known.size(); ++number) {
    SW_TRY(auto rows, interpreter::read_contexts(storage_, options_of(number).contexts_table));
    for (auto& [id, row] : rows) entries.push_back({.id = id, .language = known[number], .row = std::move(row)});
  }
  std::ranges::sort(entries, {},
                    [](const ContextEntry& entry) { return std::pair(entry.row.created_ms, entry.id); });
  return entries;
}

Result<interpreter::ExecuteResult> EmbeddedSandbox::execute(const std::shared_ptr<engine::Engine>& engine,
                                                            std::string_view context, engine::RunRequest request,
                                                            wasi::OutputSink& output) {
  const std::string& language = engine->info().language;
  SW_TRY(const auto known, contexts());
  const auto found = std::ranges::find(known, context, &ContextEntry::id);
  if (found != known.end() && found->language != language) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the context '{}' is in {}, not in {}", context, found->language, language), 0};
  }
  SW_TRY(interpreter::Interpreter * interpreter, this->interpreter(engine));
  if (found == known.end()) SW_CHECK_OK(interpreter->create_context(context, "/workspace"));
  FileStore::Changes changes;
  SW_TRY(auto result, interpreter->execute(context, request, std::make_shared<Workspace>(files_.tree()), output,
                                           [&]() -> snapshot::Also {
                                             changes = files_.changes();
                                             return [&](storage::Transaction& transaction) {
                                               return changes.write(transaction);
                                             };
                                           }));
  files_.written(std::move(changes));
  return result;
}

}  // namespace sw::sandbox
