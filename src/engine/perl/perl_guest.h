// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One Perl interpreter. It looks at its word for pending signals between operations.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/driver_guest.h"
#include "sandbox_workers/base/result.h"

namespace sw::engine {

class PerlGuest final : public DriverGuest {
 public:
  /// `manifest` must outlive this.
  PerlGuest(const Manifest& manifest, std::shared_ptr<const wasi::Layout> layout,
            const wasi::Clocks& clocks);

  Result<void> finish() override;
  bool is_out_of_memory(const GuestError& error) const override;

 private:
  std::string boot_code() const override;
  std::string cell(const Run& request, std::string_view file_name, bool fresh) const override;
  Result<void> find_more_entry_points() override;

  wasm::Function<void()> finish_;
};

}  // namespace sw::engine
