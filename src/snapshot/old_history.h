// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "snapshot/snapshot_store.h"

namespace sw::snapshot {

/// Which of the caller's steps a context's newest version is of.
using StepOfContext =
    std::function<Result<std::uint64_t>(storage::Reader& reader, std::string_view context)>;

/// For storages that were written when a version itself said what is before it: makes the rows of
/// the histories. Contexts that have some are left alone. Which steps older versions are of was not
/// stored; they count down from the newest.
Result<void> add_histories(storage::Transaction& transaction, const Options& options,
                           const StepOfContext& step_of);

}  // namespace sw::snapshot
