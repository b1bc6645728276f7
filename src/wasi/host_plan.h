// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What write-back is going to do to a host folder, decided before it does anything.

#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "wasi/host_access.h"
#include "wasi/tree_state.h"

namespace sw::wasi {

struct HostPlan {
  TreeState after;                   ///< what the folder will hold, of what the tree knows
  std::vector<std::string> removed;  ///< each with all that is below it
  /// Files, and folders with all that is below them except links
  std::vector<std::string> placed;
  std::vector<std::string> links;    ///< each leads only through links before it
  std::vector<std::string> refused;  ///< what stays as it is on the host, with the reason
  /// Why nothing can be written, one for each thing in the way
  std::vector<std::string> conflicts;
};

/// `before` is what was loaded and `now` what the tree holds; `loaded` is what the host held at the
/// load, and `host` what it holds now. Refuses links that lead out, and changes that make a link
/// lead out which did not before. Errors: kLimitExceeded when there are too many links to follow.
Result<HostPlan> plan_write_back(const TreeState& before, const TreeState& now,
                                 const HostEntries& loaded, const HostEntries& host);

/// The entries strictly below `path`, as a range of iterators.
template <class Entries>
auto below(Entries& entries, const std::string& path) {
  return std::pair(entries.lower_bound(path + "/"),
                   entries.lower_bound(path + "0"));  // '0' follows '/'
}

}  // namespace sw::wasi
