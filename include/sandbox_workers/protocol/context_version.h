// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw {

/// Which state of a context's memory: what is saved now, that after an earlier step, or a
/// checkpoint's. Numbers and texts convert to it.
class ContextVersion {
 public:
  /// What is saved now.
  ContextVersion() = default;
  /// That after a step: a run, by what `executions` was then.
  template <std::integral Number>
  ContextVersion(Number step)  // NOLINT(google-explicit-constructor): restore(12)
      : step_(static_cast<std::uint64_t>(step)) {}
  /// A checkpoint's.
  ContextVersion(std::string checkpoint)  // NOLINT(google-explicit-constructor): restore("a")
      : checkpoint_(std::move(checkpoint)) {}
  ContextVersion(std::string_view checkpoint)  // NOLINT(google-explicit-constructor)
      : checkpoint_(checkpoint) {}
  ContextVersion(const char* checkpoint)  // NOLINT(google-explicit-constructor)
      : checkpoint_(checkpoint) {}

  const std::optional<std::uint64_t>& step() const { return step_; }
  const std::optional<std::string>& checkpoint() const { return checkpoint_; }

 private:
  std::optional<std::uint64_t> step_;
  std::optional<std::string> checkpoint_;
};

/// What else than memory goes back to a version.
struct VersionOptions {
  bool files = false;  ///< the sandbox's files too, which belong to all its contexts
};

/// Of VersionFiles::differ.
inline constexpr std::size_t kDifferingFilesMax = 100;

/// The files of a sandbox, compared with those that the memory of a version saw.
struct VersionFiles {
  std::optional<std::uint64_t> step = {};  ///< whose memory it is, as HistoryEntry::step
  bool known = false;                      ///< how they were then is kept
  std::vector<std::string> differ = {};    ///< paths below /workspace, at most kDifferingFilesMax
  std::uint64_t differ_count = 0;          ///< how many there are
  std::uint64_t restored = 0;              ///< how many were put back, with VersionOptions::files
};

}  // namespace sw
