// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/embedded_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "bake/bake.h"
#include "engine/bakeable_language.h"
#include "sandbox_workers/wasm/guest_thread.h"

namespace sw::engine {

namespace {

// Each holds the pages it has ever written: about as many as run at once are worth keeping.
constexpr std::size_t kIdleMax = 16;

EngineInfo info_of(const Manifest& about, std::string build) {
  return {.language = about.language,
          .engine_name = about.engine,
          .build = std::move(build),
          .limits = {.memory_bytes = about.memory_bytes_max,
                     .code_bytes = kCodeBytesMax,
                     // JSON escapes at most double the code of most programs, and stdin comes
                     // along.
                     .request_bytes = 2 * kCodeBytesMax + (std::uint64_t{1} << 20)},
          .aliases = about.aliases};
}

}  // namespace

EmbeddedEngine::EmbeddedEngine(const Environment& environment, std::unique_ptr<Language> language,
                               std::string build)
    : environment_(environment),
      language_(std::move(language)),
      info_(info_of(manifest(), std::move(build))) {}

Result<EngineInfo> EmbeddedEngine::describe(const Environment& environment,
                                            const Language& language) {
  SW_TRY(const bake::ArtifactNames names,
         bake::artifact_names(environment.wasm, language.manifest()));
  return info_of(language.manifest(), std::move(names.image));
}

Result<std::shared_ptr<EmbeddedEngine>> EmbeddedEngine::load(const Environment& environment,
                                                             std::unique_ptr<Language> language,
                                                             const bake::Progress& progress) {
  SW_TRY(bake::ArtifactNames names, bake::artifact_names(environment.wasm, language->manifest()));
  const BakeableLanguage bakeable(environment.wasm, environment.clocks, *language);
  SW_TRY(bake::Baked baked,
         bake::bake(environment.wasm, environment.cache, bakeable, names, progress));
  std::shared_ptr<EmbeddedEngine> engine(
      new EmbeddedEngine(environment, std::move(language), std::move(names.image)));
  SW_TRY(engine->layout_, engine->language_->make_layout(baked.package));
  SW_TRY(const wasm::Linker linker, make_linker(environment.wasm, *engine->language_));
  engine->image_ = baked.image;
  engine->facts_ = std::move(baked.facts);
  SW_TRY(engine->pre_, wasm::InstancePre::create(environment.wasm, linker, baked.code,
                                                 baked.state_facts, baked.image));
  return engine;
}

Result<EmbeddedEngine::Parts> EmbeddedEngine::instantiate(std::uint64_t memory_bytes_max) {
  auto guest = language_->make_guest(layout_, environment_.clocks);
  SW_TRY(auto instance, pre_->instantiate(*guest, {.memory_bytes_max = memory_bytes_max}));
  guest->set_instance(*instance);
  SW_CHECK_OK(guest->bind(facts_));
  return Parts{std::move(guest), std::move(instance)};
}

Result<std::unique_ptr<Session>> EmbeddedEngine::start_session() {
  SW_TRY(Parts parts, instantiate(manifest().memory_bytes_max));
  return Session::create(std::move(parts.guest), std::move(parts.instance), environment_.watchdog);
}

Result<std::unique_ptr<SessionInstance>> EmbeddedEngine::boot() {
  SW_TRY(auto session, start_session());
  return std::unique_ptr<SessionInstance>(std::move(session));
}

Result<std::unique_ptr<SessionInstance>> EmbeddedEngine::restore(SnapshotSource& source) {
  SW_TRY(Parts parts, instantiate(std::max(manifest().memory_bytes_max, source.memory_bytes())));
  SW_TRY(auto session, Session::restore(std::move(parts.guest), std::move(parts.instance),
                                        environment_.watchdog, source));
  return std::unique_ptr<SessionInstance>(std::move(session));
}

Result<void> EmbeddedEngine::on_guest_thread(const std::function<void()>& body) {
  return wasm::run_on_guest_thread(environment_.wasm.options(), body);
}

Result<std::unique_ptr<Session>> EmbeddedEngine::take_idle() {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Session> session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  return start_session();
}

Result<Outcome> EmbeddedEngine::run(const Run& run, RunEvents& events) {
  SW_TRY(auto session, take_idle());
  auto outcome = session->run_once(run, events);
  const wasm::ResetStats stats = session->reset();
  if (outcome.ok()) outcome->usage.pages_written = stats.pages_put_back;
  if (stats.verdict == wasm::KeepVerdict::kKept) {
    const MutexLock lock(mutex_);
    if (idle_.size() < kIdleMax) idle_.push_back(std::move(session));
  }
  return outcome;
}

}  // namespace sw::engine
