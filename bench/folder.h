// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "must.h"

namespace sw {

/// A data folder that goes with it.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "sw-bench-XXXXXX") {
    std::string name = path_.native();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder can be made");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sw
