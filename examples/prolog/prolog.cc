// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "prolog.h"

#include <cstdint>
#include <string>
#include <utility>

#include "guest.h"
#include "module.h"

namespace prolog {

// Made by the build.
extern const char manifest_json[];
extern const char driver_pl[];

namespace {

// Changes when the code that boots the guest does: it is part of the image's name.
constexpr char kRecipe[] = "1";
constexpr std::int32_t kHostCallError = 0;

class Prolog final : public sw::engine::Language {
 public:
  explicit Prolog(sw::engine::Manifest manifest) : Language(std::move(manifest)) {}

  sw::Result<std::shared_ptr<const sw::wasi::Layout>> make_layout(
      const std::filesystem::path& /*package*/) const override {
    return sw::wasi::standard_layout().build();
  }

  sw::Result<sw::Bytes> read_module(const std::filesystem::path& package) const override {
    SW_TRY(const std::string javascript, sw::read_text_file(package / manifest().module));
    return module_within(javascript);
  }

  sw::Result<void> add_imports(sw::wasm::Linker& linker) const override {
    // Predicates of the host: there are none.
    SW_CHECK_OK(linker.define("trealla", "host-call",
                              [](sw::wasm::Caller&, std::int32_t, std::int32_t, std::int32_t,
                                 std::int32_t, std::int32_t) { return kHostCallError; }));
    return linker.define(
        "trealla", "host-resume",
        [](sw::wasm::Caller&, std::int32_t, std::int32_t, std::int32_t) { return kHostCallError; });
  }

  std::unique_ptr<sw::engine::Guest> make_guest(std::shared_ptr<const sw::wasi::Layout> layout,
                                                const sw::wasi::Clocks& clocks) const override {
    return std::make_unique<PrologGuest>(manifest(), std::move(layout), clocks);
  }
};

}  // namespace

sw::Result<std::unique_ptr<sw::engine::Language>> make_language() {
  const auto find_file = [](std::string_view name) -> std::optional<std::string> {
    return name == "driver.pl" ? std::optional<std::string>(driver_pl) : std::nullopt;
  };
  SW_TRY(sw::engine::Manifest manifest, sw::engine::parse_manifest(manifest_json, find_file));
  manifest.recipe = kRecipe;
  return std::unique_ptr<sw::engine::Language>(std::make_unique<Prolog>(std::move(manifest)));
}

}  // namespace prolog
