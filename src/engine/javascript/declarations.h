// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/javascript/internals.h"
#include "engine/javascript/quickjs.h"
#include "sandbox_workers/base/result.h"

namespace sw::engine::javascript {

/// The names a compiled cell declares at its top level.
class Declarations {
 public:
  /// Before the cell runs: takes earlier declarations of the same names out of its way.
  Result<void> prepare(QuickJs& js, const Internals& internals, JsValue code);

  /// After a cell that failed: a name whose declaration was not reached has its old value again, or
  /// is unknown.
  Result<void> undo_unreached(QuickJs& js, const Internals& internals);

 private:
  struct Name {
    std::uint32_t atom = 0;
    Owned old_value;
    bool had_old_value = false;
    std::uint32_t old_flags = 0;
  };
  struct Property {
    bool exists = false;
    std::uint32_t flags = 0;
    Owned value;
  };

  static Result<Property> own_property(QuickJs& js, JsValue object, std::uint32_t atom);

  Owned code_;  // keeps the names' atoms alive
  std::vector<Name> lexical_;
};

}  // namespace sw::engine::javascript
