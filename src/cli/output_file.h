// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::cli {

/// A file that is written in pieces and gets its name when it is complete. Only its owner can read
/// it. Without `commit` nothing of it remains.
class OutputFile {
 public:
  static Result<OutputFile> create(std::filesystem::path path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Result<void> write(BytesView bytes);
  /// Replaces the file of that name, if there is one.
  Result<void> commit();

 private:
  OutputFile(std::filesystem::path path, std::string temporary, UniqueFd fd);

  std::filesystem::path path_;
  std::string temporary_;  // its name until then; empty: it is done
  UniqueFd fd_;
};

}  // namespace sw::cli
