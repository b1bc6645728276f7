// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw {

/// An incremental SHA-256. `hex()` ends it: 64 lower-case hexadecimal digits.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(BytesView bytes);
  /// Adds the text and its length, so that ("ab","c") and ("a","bc") differ.
  Sha256& field(std::string_view text);
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(BytesView bytes);
Result<std::string> sha256_file(const std::filesystem::path& path);

}  // namespace sw
