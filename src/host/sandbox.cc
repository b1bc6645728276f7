// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/sandbox.h"

#include <utility>

#include "host/core.h"
#include "host/host_target.h"
#include "wasi/host_file.h"

namespace sw {

namespace {

TimePoint time_of(std::int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); }

ContextInfo info_of(const sandbox::ContextRecord& record) {
  ContextInfo info{.id = record.id,
                   .language = record.language,
                   .cwd = record.cwd,
                   .env = record.env,
                   .executions = record.executions,
                   .created_at = time_of(record.created_ms),
                   .last_used_at = time_of(record.last_used_ms),
                   .saved = {}};
  if (record.snapshot) {
    info.saved = SavedMemory{.build = record.snapshot->build,
                             .pages = record.snapshot->pages,
                             .bytes = record.snapshot->bytes,
                             .stored_bytes = record.snapshot->stored_bytes,
                             .taken_at = time_of(record.snapshot->taken_at_ms),
                             .stale = record.snapshot->stale};
  }
  return info;
}

}  // namespace

// --- Sandbox

RunHandle Sandbox::start(Run run, RunEvents& events, RunDone done) const {
  return core_->start_in(id_, std::move(run), events, std::move(done));
}

Result<Outcome> Sandbox::run(Run run, RunEvents& events) const {
  return start(std::move(run), events).wait();
}

Result<Outcome> Sandbox::run(Run run) const {
  return host::Core::collect([&](RunEvents& events) { return start(std::move(run), events); });
}

Result<void> Sandbox::interrupt() const {
  SW_TRY(const auto lease, core_->sandbox(id_));
  lease->interrupt_all();
  return {};
}

Context Sandbox::context(std::string id) const { return {*this, std::move(id)}; }

Result<Context> Sandbox::create_context(const ContextOptions& options) const {
  SW_TRY(const host::HostedLanguage* const language, core_->language(options.language));
  SW_TRY(const auto lease, core_->sandbox(id_));
  sandbox::NewContext wanted{.binding = language->binding,
                             .cwd = options.cwd,
                             .env = options.env,
                             .durability = options.durability};
  if (!options.id.empty()) wanted.id = options.id;
  SW_TRY(const sandbox::ContextRecord made, lease->create_context(wanted));
  return context(made.id);
}

Result<std::vector<ContextInfo>> Sandbox::contexts() const {
  SW_TRY(const auto lease, core_->sandbox(id_));
  SW_TRY(const auto records, lease->contexts());
  std::vector<ContextInfo> contexts;
  for (const sandbox::ContextRecord& record : records) contexts.push_back(info_of(record));
  return contexts;
}

Files Sandbox::files() const { return {core_, id_}; }

Result<void> Sandbox::set_env(const EnvChanges& changes) const {
  SW_TRY(const auto lease, core_->sandbox(id_));
  return lease->set_env(changes);
}

Result<void> Sandbox::set_durability(std::optional<Durability> durability) const {
  SW_TRY(const auto lease, core_->sandbox(id_));
  return lease->set_durability(durability);
}

Result<SandboxCheckpoint> Sandbox::checkpoint(const std::string& name) const {
  const std::optional<std::string> chosen = name.empty() ? std::nullopt : std::optional(name);
  SW_TRY(sandbox::SandboxCheckpoint made, core_->versions().checkpoint(id_, chosen));
  return SandboxCheckpoint{.name = std::move(made.name),
                           .sandbox = std::move(made.sandbox),
                           .taken_at = time_of(made.taken_at_ms),
                           .contexts = std::move(made.contexts)};
}

Result<void> Sandbox::restore(std::string_view checkpoint) const {
  return core_->versions().restore(id_, checkpoint);
}

Result<Sandbox> Sandbox::fork(std::string new_id) const {
  SW_CHECK_OK(core_->versions().fork(id_, new_id));
  return Sandbox(core_, std::move(new_id));
}

Result<void> Sandbox::export_to(const WriteBytes& write, const ExportOptions& options) const {
  return core_->transfers().export_sandbox(
      id_, {.contexts = options.contexts, .history = options.history}, write);
}

Result<void> Sandbox::export_to(const std::filesystem::path& file,
                                const ExportOptions& options) const {
  SW_TRY(const auto target, host::HostTarget::create(file));
  SW_TRY(const UniqueFd out, target.create_file());
  SW_CHECK_OK(export_to(
      [&](BytesView bytes) { return wasi::write_content(out.get(), bytes, file.native()); },
      options));
  SW_CHECK_OK(wasi::sync_to_disk(out.get(), file.native()));
  return target.put(IfThere::kReplace);
}

Result<SandboxInfo> Sandbox::info() const {
  SW_TRY(const auto lease, core_->sandbox(id_));
  SW_TRY(const sandbox::SandboxInfo known, lease->info());
  SandboxInfo info{.id = known.id,
                   .created_at = time_of(known.record.created_ms),
                   .last_used_at = time_of(known.record.last_used_ms),
                   .expires_at = {},
                   .env = known.record.env,
                   .contexts = {},
                   .files = known.files,
                   .file_bytes = known.bytes};
  if (known.expires_at_ms) info.expires_at = time_of(*known.expires_at_ms);
  for (const sandbox::ContextRecord& record : known.contexts) {
    info.contexts.push_back(info_of(record));
  }
  return info;
}

Result<void> Sandbox::destroy() const {
  sandbox::NoOutput nobody_reads;
  return destroy(nobody_reads);
}

Result<void> Sandbox::destroy(RunEvents& events) const {
  SW_TRY(const auto lease, core_->sandbox(id_));
  return lease->destroy(events);
}

// --- Context

RunHandle Context::start(Run run, RunEvents& events, RunDone done) const {
  run.context = id_;
  return sandbox_.start(std::move(run), events, std::move(done));
}

Result<Outcome> Context::run(Run run, RunEvents& events) const {
  run.context = id_;
  return sandbox_.run(std::move(run), events);
}

Result<Outcome> Context::run(Run run) const {
  run.context = id_;
  return sandbox_.run(std::move(run));
}

Result<void> Context::interrupt() const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  return lease->interrupt(id_);
}

Result<ContextInfo> Context::info() const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  SW_TRY(const sandbox::ContextRecord record, lease->context(id_));
  return info_of(record);
}

Result<std::vector<HistoryEntry>> Context::history() const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  SW_TRY(auto known, lease->history(id_));
  std::vector<HistoryEntry> entries;
  for (protocol::HistoryEntry& one : known) {
    entries.push_back({.step = one.step,
                       .taken_at = time_of(one.taken_at_ms),
                       .code = std::move(one.code),
                       .bytes = one.bytes,
                       .files = std::move(one.files),
                       .files_changed = one.files_changed,
                       .current = one.current,
                       .checkpoints = std::move(one.checkpoints)});
  }
  return entries;
}

Result<Fork> Context::fork(std::string new_id, const ContextVersion& from,
                           const VersionOptions& options) const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  SW_TRY(sandbox::Fork made, lease->fork(id_, std::move(new_id), from, options));
  return Fork{.context = Context(sandbox_, std::move(made.context.id)),
              .files = std::move(made.files)};
}

Result<VersionFiles> Context::undo(std::uint32_t runs, const VersionOptions& options) const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  return lease->undo(id_, runs, options);
}

Result<void> Context::checkpoint(std::string_view name) const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  return lease->add_checkpoint(id_, name);
}

Result<VersionFiles> Context::restore(const ContextVersion& version,
                                      const VersionOptions& options) const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  return lease->restore(id_, version, options);
}

Result<std::vector<Checkpoint>> Context::checkpoints() const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  SW_TRY(const auto known, lease->checkpoints(id_));
  std::vector<Checkpoint> checkpoints;
  for (const protocol::Checkpoint& one : known) {
    checkpoints.push_back({.name = one.name, .taken_at = time_of(one.taken_at_ms)});
  }
  return checkpoints;
}

Result<void> Context::remove_checkpoint(std::string_view name) const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  return lease->remove_checkpoint(id_, name);
}

Result<void> Context::remove() const {
  sandbox::NoOutput nobody_reads;
  return remove(nobody_reads);
}

Result<void> Context::remove(RunEvents& events) const {
  SW_TRY(const auto lease, sandbox_.core_->sandbox(sandbox_.id_));
  return lease->delete_context(id_, events);
}

}  // namespace sw
