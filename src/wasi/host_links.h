// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where links in a host folder lead: decided by following them in a model of the folder, as the
// kernel would, since ".." after a link goes up from where the link leads, not from where it
// stands.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/wasi/node.h"
#include "wasi/host_access.h"

namespace sw::wasi {

class LinkModel {
 public:
  LinkModel();
  explicit LinkModel(const HostEntries& entries);
  ~LinkModel();
  LinkModel(const LinkModel&) = delete;
  LinkModel& operator=(const LinkModel&) = delete;

  /// Replaces whatever is at `path`, and what is below it. The folder that holds it exists.
  void put(const std::string& path, FileType type, const std::string& target);
  void remove(const std::string& path);
  std::vector<std::string> links() const;

  /// Whether a link leads out of the folder, in ascending order of certainty.
  enum class Escape : std::uint8_t {
    kNone,
    kPossible,  ///< it would or might, if something on its path were there, or led elsewhere
    kUnknown,   ///< part of its path cannot be read
    kCertain,
  };
  struct Resolution {
    Escape escape = Escape::kNone;
    std::string problem;               ///< how it escapes, or why that cannot be known
    std::size_t links_followed = 0;    ///< including the first one
    std::vector<std::string> visited;  ///< paths on the way, also of what is not there
  };
  /// Follows a link to its end. What is missing counts as a folder: it may become one. Takes steps
  /// from `steps_left`; when none are left, the answer means nothing.
  Resolution resolve(const std::string& link, std::size_t& steps_left) const;

 private:
  struct Place;
  class Walk;
  Place* find(std::string_view path) const;
  Place& place(const std::string& path);

  std::unique_ptr<Place> root_;
};

}  // namespace sw::wasi
