// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sw::cli {

// Exit statuses. 0 and what the guest's own exit asked for come beside these.
inline constexpr int kStatusGuestError = 1;
inline constexpr int kStatusWrongUse = 2;
inline constexpr int kStatusHostFault = 3;
inline constexpr int kStatusOwnerEnded = 4;     // the process that ran the command ended before it
inline constexpr int kStatusTimeLimit = 124;    // as timeout(1)
inline constexpr int kStatusCancelled = 130;    // as a shell after Ctrl-C
inline constexpr int kStatusMemoryLimit = 137;  // as after the kernel's out-of-memory killer

}  // namespace sw::cli
