// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "host/core.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <set>
#include <utility>

#include "executor/slot_events.h"
#include "host/lazy_engine.h"
#include "sandbox_workers/engine/all_languages.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::host {

namespace {

/// "PYTHON"; what a binding's name cannot hold becomes an underscore.
std::string binding_of(std::string_view language) {
  std::string name = boost::algorithm::to_upper_copy(std::string(language));
  std::ranges::replace_if(
      name, [](char c) { return !((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'); },
      '_');
  return name;
}

}  // namespace

Core::Core(HostOptions options)
    : options_(std::move(options)),
      guests_({.slots = options_.runs_at_once,
               .guests_max = options_.guests_max,
               .memory_bytes_max = options_.guest_memory_bytes_max,
               .queue_max = options_.queue_max}),
      residency_(options_.residency) {}

Core::~Core() {
  closing_.request_stop();
  guests_.shut_down();
  sandboxes_.reset();
  if (objects_) objects_->shut_down();
}

Result<void> Core::check_options() const {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message), 0};
  };
  if (options_.guests_max == 0) return invalid("HostOptions::guests_max must be at least 1");
  if (options_.queue_max == 0) return invalid("HostOptions::queue_max must be at least 1");
  std::set<std::string_view> names;
  for (const auto& engine : options_.engines) {
    if (!engine) return invalid("HostOptions::engines has a null engine");
    const std::string& name = engine->info().language;
    if (name.empty() || name != boost::algorithm::to_lower_copy(name)) {
      return invalid(
          fmt::format("an engine's language must be a name in lower case, not '{}'", name));
    }
    if (!names.insert(name).second) {
      return invalid(fmt::format("HostOptions::engines has two engines for '{}'", name));
    }
  }
  return {};
}

Result<void> Core::open() {
  SW_CHECK_OK(check_options());
  SW_CHECK_OK(open_storage());
  SW_TRY(machine_, engine::Machine::create(
                       {.cache_folder = options_.cache_folder, .stop_means = options_.stop_means}));
  clock_ = object::make_system_clock();
  objects_.emplace(*storage_, *clock_, object::HostOptions{.on_notice = options_.on_notice});
  SW_CHECK_OK(add_languages());
  const SandboxSettings& settings = options_.sandboxes;
  parts_.emplace(
      sandbox::SandboxParts{.bindings = {},
                            .clock = *clock_,
                            .guests = guests_,
                            .options = {.files = settings.files,
                                        .file_history = settings.file_history,
                                        .idle_ttl = settings.idle_ttl,
                                        .contexts_max = settings.contexts_max,
                                        .run_limits = {},
                                        .home = settings.home,
                                        .durability = settings.durability,
                                        .profile = settings.profile},
                            .storage = storage_.get(),
                            .interpreter_object = [this](const auto& binding, const auto& key) {
                              return interpreter_object(binding, key);
                            }});
  for (const HostedLanguage& language : languages_) {
    parts_->bindings.emplace(language.binding, language.worker);
  }
  sandboxes_.emplace(*objects_, *parts_);
  versions_.emplace(*storage_, *sandboxes_, *parts_);
  transfers_.emplace(*storage_, *sandboxes_, *versions_, *parts_);
  SW_CHECK_OK(transfers_->remove_leftovers());
  objects_->start_alarms();
  return {};
}

Result<void> Core::open_storage() {
  const std::filesystem::path& folder = options_.data_folder;
  if (folder.empty()) {
    storage_ = storage::open_memory_storage(memory_);
    return {};
  }
  std::error_code failed;
  if (options_.must_exist && !std::filesystem::exists(folder, failed) && !failed) {
    return Error{ErrorCode::kNotFound, fmt::format("no data folder at {}", folder.native()), 0};
  }
  SW_TRY(storage_,
         storage::open_sqlite_storage(folder, {.on_notice = options_.on_notice, .waiting = [this] {
                                                 return guests_.stats().queued;
                                               }}));
  return {};
}

Result<void> Core::add_languages() {
  for (const auto& engine : options_.engines) add_language(engine);
  SW_TRY(auto built_in, engine::all_languages());
  for (auto& language : built_in) {
    const std::string& id = language->manifest().language;
    const bool replaced = std::ranges::any_of(
        languages_, [&](const HostedLanguage& known) { return known.info.id == id; });
    if (replaced) continue;
    SW_TRY(auto engine, LazyEngine::create(*machine_, std::move(language), options_.on_progress));
    add_language(std::move(engine));
  }
  return {};
}

void Core::add_language(std::shared_ptr<engine::Engine> engine) {
  const SandboxSettings& settings = options_.sandboxes;
  interpreter::RuntimeWorkerOptions options;
  options.idle_ttl = settings.idle_ttl;
  options.contexts_max = settings.contexts_max;
  options.history = settings.history;
  const engine::EngineInfo& about = engine->info();
  HostedLanguage hosted{.info = {.id = about.language,
                                 .aliases = about.aliases,
                                 .engine = about.engine_name,
                                 .memory_bytes_max = about.limits.memory_bytes},
                        .binding = binding_of(about.language),
                        .engine = engine,
                        .worker = nullptr};
  hosted.worker = std::make_shared<interpreter::Worker>(
      std::move(engine), std::move(options),
      interpreter::WorkerParts{
          .objects = *objects_, .clock = *clock_, .guests = guests_, .residency = residency_});
  languages_.push_back(std::move(hosted));
}

std::optional<sandbox::TypedObject> Core::interpreter_object(const std::string& binding,
                                                             const std::string& key) const {
  const auto found = std::ranges::find(languages_, binding, &HostedLanguage::binding);
  if (found == languages_.end()) return std::nullopt;
  return sandbox::TypedObject{.name = found->worker->object_of(key),
                              .schema = interpreter::Worker::schema(),
                              .tables = interpreter::Worker::tables()};
}

Result<const HostedLanguage*> Core::language(std::string_view name) const {
  const std::string lower = boost::algorithm::to_lower_copy(std::string(name));
  std::vector<std::string_view> known;
  for (const HostedLanguage& language : languages_) {
    const auto& aliases = language.info.aliases;
    if (language.info.id == lower || std::ranges::find(aliases, lower) != aliases.end()) {
      return &language;
    }
    known.push_back(language.info.id);
  }
  const std::string what =
      name.empty() ? "no language is given" : fmt::format("unknown language '{}'", name);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} (available: {})", what, fmt::join(known, ", ")), 0};
}

// --- runs

/// A run under way: who may stop it, and who hears of its end.
struct Core::Started {
  using Callback = std::stop_callback<std::function<void()>>;

  Started(const std::stop_token& asked, const std::stop_token& closing, RunDone hears)
      : done(std::move(hears)),
        outcome(promise.get_future().share()),
        on_cancel(asked, [this] { stop.request_stop(); }),
        on_close(closing, [this] { stop.request_stop(); }) {}

  /// Called once.
  void finish(Result<Outcome> result) {
    if (const RunDone hears = std::exchange(done, nullptr)) hears(result);
    promise.set_value(std::move(result));
  }
  RunHandle handle() const;

  std::stop_source stop;
  RunDone done;
  std::promise<Result<Outcome>> promise;
  const std::shared_future<Result<Outcome>> outcome;
  const Callback on_cancel;
  const Callback on_close;
};

std::shared_ptr<Core::Started> Core::begin(Run& run, RunDone done) {
  // Shared by the run and the function that starts it.
  auto started = std::make_shared<Started>(run.cancel, closing_.get_token(), std::move(done));
  run.cancel = started->stop.get_token();
  return started;
}

RunHandle Core::start(Run run, RunEvents& events, RunDone done) {
  const auto started = begin(run, std::move(done));
  const RunHandle handle(started->stop, started->outcome);
  const auto language = this->language(run.language);
  Result<void> valid = language.ok() ? validate(run) : Result<void>(language.error());
  if (valid.ok() && !run.context.empty()) {
    valid = Error{ErrorCode::kInvalidArgument,
                  "a run outside of a sandbox has no context: Run::context must be empty", 0};
  }
  if (!valid.ok()) {
    started->finish(std::move(valid).error());
    return handle;
  }
  interpreter::Worker& worker = *(*language)->worker;
  executor::GuestPool::Request request{.memory_bytes = run.limits.memory_bytes_max,
                                       .cancel = run.cancel};
  guests_.submit(std::move(request), [&worker, &events, started, run = std::move(run)](
                                         const Result<executor::GuestPool::Slot*>& slot) {
    if (slot.ok()) {
      executor::SlotEvents slotted(events, **slot);
      started->finish(worker.run(run, slotted));
    } else {
      started->finish(slot.error());
    }
  });
  return handle;
}

RunHandle Core::start_in(const std::string& sandbox, Run run, RunEvents& events, RunDone done) {
  const auto started = begin(run, std::move(done));
  const RunHandle handle(started->stop, started->outcome);
  if (auto sent = send(sandbox, std::move(run), events, started); !sent.ok()) {
    started->finish(std::move(sent).error());
  }
  return handle;
}

Result<void> Core::send(const std::string& sandbox, Run run, RunEvents& events,
                        const std::shared_ptr<Started>& started) {
  SW_CHECK_OK(validate(run));
  SW_TRY(const auto lease, this->sandbox(sandbox));
  if (run.context.empty()) {
    SW_TRY(const HostedLanguage* const language, this->language(run.language));
    run.context = language->info.id;
  }
  SW_CHECK_OK(ensure_context(*lease, run.context, run.language));
  lease->start(std::move(run), {}, events, [started, lease](Result<sandbox::Finished> finished) {
    if (finished.ok()) started->finish(std::move(finished->outcome));
    else started->finish(std::move(finished).error());
  });
  return {};
}

Result<void> Core::ensure_context(sandbox::Sandbox& sandbox, const std::string& id,
                                  const std::string& language) {
  const auto known = sandbox.context(id);
  if (!known.ok() && known.error().code != ErrorCode::kContextNotFound) return known.error();
  if (language.empty()) return known.ok() ? Result<void>() : known.error();
  SW_TRY(const HostedLanguage* const hosted, this->language(language));
  if (!known.ok()) {
    const auto made = sandbox.create_context({.binding = hosted->binding, .id = id});
    // Somebody else may have made it meanwhile.
    return made.ok() || sandbox.context(id).ok() ? Result<void>() : made.error();
  }
  if (known->language == hosted->info.id) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("context '{}' is a {} context, not {}", id, known->language, hosted->info.id), 0};
}

}  // namespace sw::host
