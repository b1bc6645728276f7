// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/host.h"

#include <fmt/format.h>

#include <utility>

#include "bake/bake.h"
#include "engine/completeness.h"
#include "engine/embedded_engine.h"
#include "engine/result_json.h"
#include "host/core.h"
#include "host/lazy_engine.h"
#include "sandbox/names.h"
#include "sandbox_workers/engine/all_languages.h"
#include "storage/sqlite/check.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw {

Result<Host> Host::open(HostOptions options) {
  auto core = std::make_shared<host::Core>(std::move(options));
  SW_CHECK_OK(core->open());
  return Host(std::move(core));
}

RunHandle Host::start(Run run, RunEvents& events, RunDone done) const {
  return core_->start(std::move(run), events, std::move(done));
}

Result<Outcome> Host::run(Run run, RunEvents& events) const {
  return start(std::move(run), events).wait();
}

Result<Outcome> Host::run(Run run) const {
  return host::Core::collect([&](RunEvents& events) { return start(std::move(run), events); });
}

Sandbox Host::sandbox(std::string id) const { return {core_, std::move(id)}; }

Result<bool> Host::has_sandbox(const std::string& id) const {
  SW_TRY(const storage::ObjectName name, sandbox::object_name(id));
  SW_TRY(const auto found, core_->storage().find(name));
  return found.has_value();
}

Result<std::vector<std::string>> Host::sandboxes(const std::string& after,
                                                 std::size_t count_max) const {
  SW_TRY(const auto found, core_->storage().list(sandbox::kSandboxClass, after, count_max));
  std::vector<std::string> ids;
  for (const storage::ObjectInfo& object : found) ids.push_back(object.name.id);
  return ids;
}

Result<std::vector<SandboxCheckpoint>> Host::checkpoints(const std::string& after,
                                                         std::size_t count_max) const {
  SW_TRY(auto found, core_->versions().checkpoints(after, count_max));
  std::vector<SandboxCheckpoint> checkpoints;
  for (sandbox::SandboxCheckpoint& one : found) {
    checkpoints.push_back({.name = std::move(one.name),
                           .sandbox = std::move(one.sandbox),
                           .taken_at = TimePoint(std::chrono::milliseconds(one.taken_at_ms)),
                           .contexts = std::move(one.contexts)});
  }
  return checkpoints;
}

Result<Sandbox> Host::import_sandbox(std::string new_id, const ReadBytes& read) const {
  SW_CHECK_OK(core_->transfers().import_sandbox(new_id, read));
  return sandbox(std::move(new_id));
}

Result<Sandbox> Host::fork_checkpoint(std::string_view checkpoint, std::string new_id) const {
  SW_CHECK_OK(core_->versions().fork_checkpoint(checkpoint, new_id));
  return sandbox(std::move(new_id));
}

Result<void> Host::remove_checkpoint(std::string_view name) const {
  return core_->versions().remove_checkpoint(name);
}

// --- languages

std::vector<LanguageInfo> Host::languages() const {
  std::vector<LanguageInfo> languages;
  for (const host::HostedLanguage& language : core_->languages()) {
    languages.push_back(language.info);
  }
  return languages;
}

Result<LanguageInfo> Host::language(std::string_view name) const {
  SW_TRY(const host::HostedLanguage* const found, core_->language(name));
  return found->info;
}

Result<std::shared_ptr<engine::Engine>> Host::load(std::string_view language,
                                                   const bake::Progress& progress) const {
  SW_TRY(const host::HostedLanguage* const found, core_->language(language));
  if (auto* const lazy = dynamic_cast<host::LazyEngine*>(found->engine.get())) {
    return progress ? lazy->load(progress) : lazy->load();
  }
  return found->engine;
}

Result<std::vector<PreparedLanguage>> Host::prepared() const {
  SW_TRY(const auto languages, engine::all_languages());
  std::vector<PreparedLanguage> prepared;
  for (const auto& language : languages) {
    const engine::Manifest& about = language->manifest();
    engine::Machine& machine = core_->machine();
    const bake::BakeStatus status =
        bake::bake_status(machine.wasm(), machine.environment().cache, about);
    prepared.push_back({.id = about.language,
                        .name = about.name,
                        .engine = about.engine,
                        .version = about.version,
                        .licence = about.licence,
                        .build = status.build,
                        .prepared = status.baked,
                        .package_bytes = status.package_bytes,
                        .code_bytes = status.code_bytes,
                        .image_bytes = status.image_bytes});
  }
  return prepared;
}

namespace {

Result<BackupReport> told(Result<storage::BackupReport> report) {
  if (!report.ok()) return std::move(report).error();
  return BackupReport{.objects = report->objects, .damaged = std::move(report->damaged)};
}

}  // namespace

Result<BackupReport> Host::back_up(const std::filesystem::path& destination) const {
  return told(core_->storage().back_up(destination));
}

bool Host::is_complete(std::string_view language, std::string_view code) const {
  const auto found = core_->language(language);
  if (!found.ok()) return true;
  std::optional<Run> check = engine::completeness_check((*found)->info.id, code);
  if (!check) return true;
  const auto outcome = run(*std::move(check));
  return !outcome.ok() || engine::says_complete(*outcome);
}

// --- without a host

bool is_in_use(const Error& error) { return error.context.contains("usedBy"); }

namespace {

LanguageInfo info_of(const engine::Language& language) {
  const engine::Manifest& about = language.manifest();
  return {.id = about.language,
          .aliases = about.aliases,
          .engine = about.engine,
          .memory_bytes_max = about.memory_bytes_max};
}

}  // namespace

Result<LanguageInfo> find_language(std::string_view name) {
  SW_TRY(const auto found, engine::find_language(name));
  return info_of(*found);
}

Result<LanguageInfo> guess_language(std::string_view file_name, std::string_view code) {
  SW_TRY(const auto guessed, engine::guess_language(file_name, code));
  return info_of(*guessed);
}

std::string outcome_json(const LanguageInfo& language, const Run& run, const Outcome& outcome,
                         const std::optional<WriteBackReport>& files) {
  return engine::execution_result_json(language.id, language.engine, run, outcome,
                                       {.expires_at_ms = {}, .files = files});
}

Result<void> check_sandbox_id(std::string_view id) { return sandbox::check_sandbox_id(id); }

Result<BackupReport> back_up(const std::filesystem::path& folder,
                             const std::filesystem::path& destination) {
  if (!storage::is_data_folder(folder)) {
    return Error{ErrorCode::kNotFound, fmt::format("{} is not a data folder", folder.native()), 0};
  }
  SW_TRY(const auto storage, storage::open_sqlite_storage(folder, {}));
  return told(storage->back_up(destination));
}

Result<DataFolderCheck> check_data_folder(const std::filesystem::path& folder) {
  SW_TRY(storage::StorageCheck check, storage::check_data_folder(folder));
  return DataFolderCheck{.objects = check.objects,
                         .layers = check.layers,
                         .frames = check.frames,
                         .journal_bytes = check.journal_bytes,
                         .problems = std::move(check.problems)};
}

}  // namespace sw
