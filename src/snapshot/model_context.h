// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a model knows of a context, and which of its steps have to be kept.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sandbox_workers/base/history_limits.h"
#include "snapshot/pack.h"

namespace sw::snapshot {

struct ModelVersion {
  VersionId id = {};
  VersionId parent = {};
  std::uint64_t step = 0;
  bool copy = false;
  bool inherited = false;  // by a fork: the source may have let go of it
};

struct ModelContext {
  std::vector<ModelVersion> versions;  // all there ever were, the newest last
  std::map<std::string, VersionId> checkpoints;
  std::uint64_t steps = 0;
};

inline const ModelVersion* find(const ModelContext& context, VersionId id) {
  const auto found = std::ranges::find(context.versions, id, &ModelVersion::id);
  return found == context.versions.end() ? nullptr : &*found;
}

/// Whether it has to be kept whatever its step.
inline bool is_recent(const HistoryLimits& limits, const ModelContext& context,
                      const ModelVersion& version) {
  const auto index = static_cast<std::size_t>(&version - context.versions.data());
  const ModelVersion& newest = context.versions.back();
  const bool began_with = !newest.copy && version.id == newest.parent;
  return !version.inherited &&
         (index + std::max(limits.full, 1U) >= context.versions.size() || began_with);
}

inline std::set<std::uint64_t> steps_to_keep(const HistoryLimits& limits,
                                             const ModelContext& context) {
  std::set<std::uint64_t> steps = {context.versions.back().step};
  std::optional<std::uint64_t> interval;
  for (const ModelVersion& version : context.versions) {
    if (version.copy) continue;
    const bool first = limits.every != 0 && interval != version.step / limits.every;
    if (first) interval = version.step / limits.every;
    if (first || is_recent(limits, context, version)) steps.insert(version.step);
  }
  return steps;
}

}  // namespace sw::snapshot
