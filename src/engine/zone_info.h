// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/layout.h"

namespace sw::engine {

/// Shows the host's time zone database at its usual place, for the guest's own local time
/// (guests/common/time_zone.c). Its files are looked at when a guest first asks for a zone. On a
/// host without one the folder is empty, and zones are then only what TZ itself says ("UTC+3").
Result<void> add_zone_info(wasi::LayoutBuilder& builder);

}  // namespace sw::engine
