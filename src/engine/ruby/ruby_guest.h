// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One Ruby interpreter. It looks at its word wherever it looks for interrupts
// (guests/ruby/patches/0005-interrupts.patch).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/driver_guest.h"
#include "sandbox_workers/base/result.h"

namespace sw::engine {

class RubyGuest final : public DriverGuest {
 public:
  /// `manifest` must outlive this.
  RubyGuest(const Manifest& manifest, std::shared_ptr<const wasi::Layout> layout,
            const wasi::Clocks& clocks);

  Result<void> after_restore() override;
  Result<Reply> evaluate(const Run& request, std::string_view file_name) override;
  Result<void> finish() override;
  std::optional<std::int32_t> exit_status() const override { return exit_status_; }
  bool is_out_of_memory(const GuestError& error) const override;

 private:
  std::string boot_code() const override;
  std::string cell(const Run& request, std::string_view file_name, bool fresh) const override;
  Result<void> find_more_entry_points() override;
  Result<Reply> evaluate_cell(const Run& request, std::string_view file_name);

  wasm::Function<std::int32_t()> finish_;
  std::optional<std::int32_t> exit_status_;  // of the last finish
  bool renewed_ = false;                     // no cell has run since the image or saved state
};

}  // namespace sw::engine
