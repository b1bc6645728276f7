// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "bake/bake.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bake/facts_file.h"
#include "bake/packages.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/sha256.h"

namespace sw::bake {

namespace {

namespace fs = std::filesystem;

// Part of every code and image name: change it when baking itself changes.
constexpr std::string_view kRecipe = "1";
constexpr char kFactsFile[] = "facts.json";
constexpr std::size_t kFactsBytesMax = std::size_t{1} << 20;
// For the progress bar: CPython's 75 MB take 40 s on two cores.
constexpr std::size_t kBytesCompiledPerSecond = 2'000'000;

/// Code with checks, and its images, are kept apart: making one variant's does not push the other's
/// out.
std::string_view variant(const wasm::Runtime& runtime) {
  return runtime.options().stop_means == wasm::StopMeans::kEpoch ? "epoch-" : "";
}

std::string short_name(std::string_view kind, std::string_view language, Sha256& hash) {
  return fmt::format("{}-{}-{}", kind, language, hash.hex().substr(0, 32));
}

/// What `parse` makes of a file of facts.
template <class Facts>
Result<Facts> read_facts(const fs::path& path, Result<Facts> (*parse)(std::string_view)) {
  SW_TRY(const std::string text, read_text_file(path, kFactsBytesMax));
  auto facts = parse(text);
  if (!facts.ok())
    return std::move(facts).error().while_doing(fmt::format("reading {}", path.native()));
  return facts;
}

/// What a package's folder must have.
std::vector<std::string> files_of(const Manifest& manifest) {
  std::vector<std::string> names;
  const auto add = [&](const Package& package) {
    if (!package.archive.empty()) names.push_back(package.archive);
    for (const PackageFile& file : package.files) names.push_back(file.name);
  };
  add(manifest.package);
  std::ranges::for_each(manifest.libraries, add);
  return names;
}

Result<void> compile_code(wasm::Runtime& runtime, const Bakeable& bakeable, const fs::path& package,
                          const fs::path& folder, const Progress& progress) {
  SW_TRY(const Bytes wasm, bakeable.read_module(package));
  SW_TRY(const wasm::PreparedModule prepared, wasm::prepare_module(wasm));
  progress(fmt::format("compiling {}", bakeable.manifest().engine),
           std::chrono::seconds(1 + prepared.wasm.size() / kBytesCompiledPerSecond));
  SW_TRY(const wasm::Module module, wasm::Module::compile(runtime, prepared.wasm));
  SW_TRY(const Bytes code, module.serialize());
  SW_CHECK_OK(write_file_atomically(folder / kCodeFile, code));
  return write_file_atomically(folder / kFactsFile, as_bytes(to_json(prepared.facts)));
}

/// Leaves the booted guest's memory in `folder`.
Result<void> boot_image(const Bakeable& bakeable, const fs::path& package, const wasm::Module& code,
                        const wasm::StateFacts& state_facts, const fs::path& folder,
                        const Progress& progress) {
  const Manifest& manifest = bakeable.manifest();
  progress(fmt::format("booting {}", manifest.engine), std::chrono::seconds(5));
  if (!state_facts.keepable()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} cannot have a memory image: {}", manifest.module,
                             state_facts.reason_not_keepable()),
                 0};
  }
  SW_TRY(const Bytes wasm, bakeable.read_module(package));
  SW_TRY(const wasm::PreparedModule prepared, wasm::prepare_module(wasm));
  SW_TRY(const BakeFacts facts,
         bakeable.boot({.package = package, .prepared = prepared, .code = code},
                       [&](BytesView memory) {
                         progress(fmt::format("writing the image of {}", manifest.engine),
                                  std::chrono::seconds(1));
                         return wasm::Image::write(folder / kImageFile, memory);
                       }));
  return write_file_atomically(folder / kFactsFile, as_bytes(to_json(facts)));
}

std::uint64_t folder_bytes(const Result<fs::path>& folder) {
  if (!folder.ok()) return 0;
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(*folder, error)) bytes += entry.file_size(error);
  return bytes;
}

}  // namespace

Result<ArtifactNames> artifact_names(const wasm::Runtime& runtime, const Manifest& manifest) {
  Sha256 package;
  std::string module_digest;
  for (const PackageFile& file : manifest.package.files) {
    package.field(file.name).field(file.sha256);
    if (file.name == manifest.module) module_digest = file.sha256;
  }
  Sha256 libraries;
  for (const Package& library : manifest.libraries) {
    libraries.field(library.archive).field(library.sha256);
    for (const PackageFile& file : library.files) libraries.field(file.name).field(file.sha256);
    for (const std::string& members : library.members) libraries.field(members);
  }
  const std::string library_digest = manifest.libraries.empty() ? std::string() : libraries.hex();
  if (!library_digest.empty()) package.field(library_digest);
  const std::string fingerprint = runtime.fingerprint();
  Sha256 code;
  code.field(kRecipe).field(module_digest).field(fingerprint);
  Sha256 image;
  image.field(kRecipe).field(manifest.recipe).field(fingerprint).field(manifest.package.sha256);
  if (!library_digest.empty()) image.field(library_digest);
  for (const auto& [name, content] : manifest.drivers) image.field(name).field(content);
  for (const std::string& name : manifest.imports) image.field(name);
  return ArtifactNames{
      .package = short_name("package", manifest.language, package),
      .code = short_name(fmt::format("{}code", variant(runtime)), manifest.language, code),
      .image = short_name(fmt::format("{}image", variant(runtime)), manifest.language, image)};
}

Result<Baked> bake(wasm::Runtime& runtime, const ArtifactCache& cache, const Bakeable& bakeable,
                   const ArtifactNames& names, const Progress& progress) {
  const Manifest& manifest = bakeable.manifest();
  SW_TRY(fs::path package, cache.get(
                               names.package, files_of(manifest),
                               [&](const fs::path& folder) -> Result<void> {
                                 SW_CHECK_OK(fetch_package(manifest.package, folder, progress));
                                 for (const Package& library : manifest.libraries) {
                                   SW_CHECK_OK(fetch_package(library, folder, progress));
                                 }
                                 return {};
                               },
                               progress));
  SW_TRY(const fs::path code_folder,
         cache.get(
             names.code, std::vector<std::string>{kCodeFile, kFactsFile},
             [&](const fs::path& folder) {
               return compile_code(runtime, bakeable, package, folder, progress);
             },
             progress));
  SW_TRY(wasm::Module code, wasm::Module::load(runtime, code_folder / kCodeFile));
  SW_TRY(const wasm::StateFacts state_facts,
         read_facts(code_folder / kFactsFile, &parse_state_facts));
  bool made = false;
  SW_TRY(const fs::path image_folder,
         cache.get(
             names.image, std::vector<std::string>{kImageFile, kFactsFile},
             [&](const fs::path& folder) {
               made = true;
               return boot_image(bakeable, package, code, state_facts, folder, progress);
             },
             progress));
  if (made) {
    // Drivers change often while they are written; packages and code hardly ever.
    cache.prune(fmt::format("{}image-{}-", variant(runtime), manifest.language), 4);
    cache.prune(fmt::format("{}code-{}-", variant(runtime), manifest.language), 3);
  }
  SW_TRY(auto image, wasm::Image::open(image_folder / kImageFile));
  SW_TRY(BakeFacts facts, read_facts(image_folder / kFactsFile, &parse_bake_facts));
  return Baked{.package = std::move(package),
               .code = std::move(code),
               .state_facts = state_facts,
               .image = std::move(image),
               .facts = std::move(facts)};
}

BakeStatus bake_status(const wasm::Runtime& runtime, const ArtifactCache& cache,
                       const Manifest& manifest) {
  BakeStatus status;
  const auto names = artifact_names(runtime, manifest);
  if (!names.ok()) return status;
  const auto image = cache.find(names->image);
  status.build = names->image;
  status.package_bytes = folder_bytes(cache.find(names->package));
  status.code_bytes = folder_bytes(cache.find(names->code));
  status.image_bytes = folder_bytes(image);
  status.baked = image.ok() && status.code_bytes != 0 && status.package_bytes != 0;
  return status;
}

}  // namespace sw::bake
