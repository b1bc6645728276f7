// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Zip archives as folders.

#include "fuzz/fuzz.h"
#include "sandbox_workers/wasi/archive.h"
#include "sandbox_workers/wasi/file_system.h"
#include "wasi/test_clocks.h"

namespace sw::fuzz {
namespace {

using namespace wasi;

/// Looks at a folder as a guest would, and reads what is small.
void look_into(FileSystem& files, const std::string& folder, int depth) {
  const auto entries = files.read_directory(folder);
  if (!entries.ok() || depth > 20) return;
  for (const DirectoryEntry& entry : *entries) {
    require(name_error(entry.name) == Errno::kSuccess && entry.name != "." && entry.name != "..",
            "names are plain");
    const std::string path = folder + "/" + entry.name;
    if (entry.type == FileType::kDirectory) {
      look_into(files, path, depth + 1);
      continue;
    }
    const auto stat = files.stat(path);
    if (path.size() > kPathBytesMax) continue;
    require(stat.ok(), "what is listed is there", path);
    const auto bytes = files.read_file(path);
    if (bytes.ok()) require(bytes->bytes.size() == stat->size, "a file is as long as it says");
  }
}

}  // namespace

SW_FUZZ(archive) {
  const SharedBytes bytes = SharedBytes::own(copy_of(input));
  const auto archive = Archive::open(bytes);
  LayoutBuilder builder = standard_layout();
  const auto added = add_archive(builder, "/lib", bytes);
  require(added.ok() == archive.ok(), "what can be opened can be shown");
  if (!archive.ok()) return;
  for (const Archive::Member& member : (*archive)->members()) {
    const auto read = (*archive)->read(member);
    if (read.ok()) require(read->size() == member.size, "a member is as long as it says");
  }
  FixedClocks clocks;
  FileSystem files(builder.build(), clocks);
  look_into(files, "/lib", 0);
}

}  // namespace sw::fuzz
