// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/ruby/ruby.h"

#include <utility>

#include "engine/ruby/ruby_guest.h"
#include "engine/zone_info.h"
#include "sandbox_workers/wasi/archive.h"
#include "sandbox_workers/wasi/layout.h"

namespace sw::engine {

namespace {

// Ruby has this path built in (API_VERSION in guests/ruby/build.py).
constexpr char kLibraryPath[] = "/usr/lib/ruby/3.3.0";
constexpr char kLibraryFile[] = "ruby-lib.zip";
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

// The copy of the code that runs on the main stack still names asyncify's functions, and never
// calls them.
Result<void> refuse_to_unwind(wasm::Linker& linker) {
  const auto refuse = []() -> Result<void> {
    return Error{ErrorCode::kGuestTrap, "attempt to unwind the main stack", 0};
  };
  const auto refuse_buffer = [refuse](wasm::Caller&, std::uint32_t) { return refuse(); };
  const auto refuse_end = [refuse](wasm::Caller&) { return refuse(); };
  SW_CHECK_OK(linker.define("asyncify", "start_unwind", refuse_buffer));
  SW_CHECK_OK(linker.define("asyncify", "start_rewind", refuse_buffer));
  SW_CHECK_OK(linker.define("asyncify", "stop_unwind", refuse_end));
  return linker.define("asyncify", "stop_rewind", refuse_end);
}

class Ruby final : public Language {
 public:
  explicit Ruby(Manifest manifest) : Language(std::move(manifest)) {}

  Result<std::shared_ptr<const wasi::Layout>> make_layout(
      const std::filesystem::path& package) const override {
    SW_TRY(wasi::SharedBytes library, wasi::map_file(package / kLibraryFile));
    wasi::LayoutBuilder builder = wasi::standard_layout();
    SW_CHECK_OK(add_library(builder, std::move(library)));
    SW_CHECK_OK(add_zone_info(builder));
    return builder.build();
  }

  Result<void> add_imports(wasm::Linker& linker) const override {
    SW_CHECK_OK(refuse_to_unwind(linker));
    return define_driver_imports(linker);
  }

  std::unique_ptr<Guest> make_guest(std::shared_ptr<const wasi::Layout> layout,
                                    const wasi::Clocks& clocks) const override {
    return std::make_unique<RubyGuest>(manifest(), std::move(layout), clocks);
  }
};

}  // namespace

std::unique_ptr<Language> make_ruby(Manifest manifest) {
  manifest.recipe = SW_BOOT_RECIPE;
  return std::make_unique<Ruby>(std::move(manifest));
}

}  // namespace sw::engine
