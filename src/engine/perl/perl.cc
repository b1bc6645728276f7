// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/perl/perl.h"

#include <utility>

#include "engine/perl/perl_guest.h"
#include "engine/zone_info.h"
#include "sandbox_workers/wasi/archive.h"
#include "sandbox_workers/wasi/layout.h"

namespace sw::engine {

namespace {

// Perl has this path built in (guests/perl/build.py).
constexpr char kLibraryPath[] = "/usr/lib/perl";
constexpr char kLibraryFile[] = "perl-lib.zip";
constexpr std::uint64_t kLibraryInodes = std::uint64_t{1} << 40;

Result<void> add_library(wasi::LayoutBuilder& builder, wasi::SharedBytes library) {
  return builder.add_lazy_directory(
      kLibraryPath, [library = std::move(library)](wasi::Node& owner) -> Result<wasi::Directory> {
        SW_TRY(const auto archive, wasi::Archive::open(library));
        wasi::Directory directory;
        SW_CHECK_OK(archive->fill(directory, &owner, kLibraryInodes));
        return directory;
      });
}

class Perl final : public Language {
 public:
  explicit Perl(Manifest manifest) : Language(std::move(manifest)) {}

  Result<std::shared_ptr<const wasi::Layout>> make_layout(
      const std::filesystem::path& package) const override {
    SW_TRY(wasi::SharedBytes library, wasi::map_file(package / kLibraryFile));
    wasi::LayoutBuilder builder = wasi::standard_layout();
    SW_CHECK_OK(add_library(builder, std::move(library)));
    SW_CHECK_OK(add_zone_info(builder));
    return builder.build();
  }

  Result<void> add_imports(wasm::Linker& linker) const override {
    return define_driver_imports(linker);
  }

  std::unique_ptr<Guest> make_guest(std::shared_ptr<const wasi::Layout> layout,
                                    const wasi::Clocks& clocks) const override {
    return std::make_unique<PerlGuest>(manifest(), std::move(layout), clocks);
  }
};

}  // namespace

std::unique_ptr<Language> make_perl(Manifest manifest) {
  manifest.recipe = SW_BOOT_RECIPE;
  return std::make_unique<Perl>(std::move(manifest));
}

}  // namespace sw::engine
