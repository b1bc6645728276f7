// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Why an operation on a workspace failed, for those who show it to people: an errno, a message, and the figures
// behind it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sandbox_workers/base/value_or.h"
#include "sandbox_workers/wasi/errno.h"

namespace sw {

struct WorkspaceError {
  wasi::Errno error = wasi::Errno::kIo;
  std::string message;
  /// With kFbig: "maxSize" and "actualSize", in bytes.
  std::map<std::string, std::uint64_t> details = {};

  std::string_view errno_name() const { return wasi::errno_name(error); }
};

template <class T>
using WorkspaceOr = ValueOr<T, WorkspaceError>;
using WorkspaceDone = WorkspaceOr<Done>;

}  // namespace sw
