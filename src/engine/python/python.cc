// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/python.h"

#include <utility>

#include "engine/python/python_guest.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/wasi/archive.h"
#include "sandbox_workers/wasi/layout.h"

namespace sw::engine {

namespace {

// CPython computes its search path from the program's own place and finds the library here.
constexpr char kLibraryPath[] = "/usr/local/lib/python315.zip";
constexpr char kLibraryFile[] = "python-stdlib.zip";
// matplotlib opens its data as plain files beside its modules, which are inside the zip.
constexpr char kPlotDataPath[] = "/usr/local/lib/python315.zip/matplotlib/mpl-data";
constexpr char kPlotDataMember[] = "matplotlib/mpl-data.zip";

class Python final : public Language {
 public:
  explicit Python(Manifest manifest) : Language(std::move(manifest)) {}

  Result<std::shared_ptr<const wasi::Layout>> make_layout(
      const std::filesystem::path& package) const override {
    SW_TRY(const wasi::SharedBytes library, wasi::map_file(package / kLibraryFile));
    wasi::LayoutBuilder builder = wasi::standard_layout();
    SW_CHECK_OK(builder.add_file(kLibraryPath, library));
    SW_CHECK_OK(wasi::add_nested_archive(builder, kPlotDataPath, library, kPlotDataMember));
    return builder.build();
  }

  Result<void> add_imports(wasm::Linker& linker) const override { return define_door(linker); }

  std::unique_ptr<Guest> make_guest(std::shared_ptr<const wasi::Layout> layout,
                                    const wasi::Clocks& clocks) const override {
    return std::make_unique<PythonGuest>(manifest(), std::move(layout), clocks);
  }
};

}  // namespace

std::unique_ptr<Language> make_python(Manifest manifest) {
  manifest.recipe = SW_BOOT_RECIPE;
  return std::make_unique<Python>(std::move(manifest));
}

}  // namespace sw::engine
