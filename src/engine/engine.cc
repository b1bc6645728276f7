// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/bake.h"

namespace sw::engine {

namespace {

namespace fs = std::filesystem;

std::uint64_t folder_bytes(const Result<fs::path>& folder) {
  if (!folder.ok()) return 0;
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(*folder, error)) bytes += entry.file_size(error);
  return bytes;
}

}  // namespace

Engine::Engine(const Environment& environment, std::unique_ptr<Language> language, std::string build)
    : environment_(environment), language_(std::move(language)), build_(std::move(build)) {}

Result<std::shared_ptr<Engine>> Engine::load(const Environment& environment, std::unique_ptr<Language> language,
                                             const Progress& progress) {
  SW_TRY(ArtifactNames names, artifact_names(environment.wasm, language->manifest()));
  SW_TRY(Baked baked, bake(environment, *language, names, progress));
  std::shared_ptr<Engine> engine(new Engine(environment, std::move(language), std::move(names.image)));
  SW_TRY(engine->layout_, engine->language_->make_layout(baked.package));
  SW_TRY(const wasm::Linker linker, make_linker(environment, *engine->language_));
  engine->image_ = baked.image;
  engine->facts_ = std::move(baked.facts);
  SW_TRY(engine->pre_,
         wasm::InstancePre::create(environment.wasm, linker, baked.code, baked.state_facts, baked.image));
  return engine;
}

BakeStatus Engine::status(const Environment& environment, const Language& language) {
  BakeStatus status;
  const auto names = artifact_names(environment.wasm, language.manifest());
  if (!names.ok()) return status;
  const auto image = environment.cache.find(names->image);
  status.build = names->image;
  status.package_bytes = folder_bytes(environment.cache.find(names->package));
  status.code_bytes = folder_bytes(environment.cache.find(names->code));
  status.image_bytes = folder_bytes(image);
  status.baked = image.ok() && status.code_bytes != 0 && status.package_bytes != 0;
  return status;
}

Result<Engine::Parts> Engine::instantiate(std::uint64_t memory_bytes_max) {
  auto guest = language_->make_guest(layout_, environment_.clocks);
  SW_TRY(auto instance, pre_->instantiate(*guest, {.memory_bytes_max = memory_bytes_max}));
  guest->set_instance(*instance);
  SW_CHECK_OK(guest->bind(facts_));
  return Parts{std::move(guest), std::move(instance)};
}

Result<std::unique_ptr<Session>> Engine::start_session() {
  SW_TRY(Parts parts, instantiate(manifest().memory_bytes_max));
  return Session::create(std::move(parts.guest), std::move(parts.instance), environment_.watchdog);
}

Result<std::unique_ptr<Session>> Engine::restore_session(const SavedSession& saved) {
  SW_TRY(Parts parts, instantiate(std::max(manifest().memory_bytes_max, saved.memory_bytes)));
  return Session::restore(std::move(parts.guest), std::move(parts.instance), environment_.watchdog, saved);
}

Result<Outcome> StatelessRunner::run(const RunRequest& request, wasi::OutputSink& output) {
  if (!session_) {
    SW_TRY(session_, engine_->start_session());
  }
  auto outcome = session_->execute(request, output);
  session_->finish();
  const wasm::ResetStats stats = session_->reset();
  if (stats.verdict != wasm::KeepVerdict::kKept) session_.reset();
  if (outcome.ok()) outcome->usage.pages_written = stats.pages_put_back;
  return outcome;
}

}  // namespace sw::engine
