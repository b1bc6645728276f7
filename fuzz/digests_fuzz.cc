// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The artifact cache's record of digests. What the cache hands out is native code that will run, so
// it must be all that the record says, and nothing else.

#include <sys/stat.h>

#include <map>
#include <sstream>
#include <vector>

#include "bake/artifact_cache.h"
#include "fuzz/fuzz.h"
#include "sandbox_workers/base/sha256.h"

namespace sw::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr char kRecord[] = "digests";
constexpr int kChangesMax = 8;

const std::vector<std::string>& wanted() {
  static const std::vector<std::string> names = {"a", "b"};
  return names;
}

void write(const fs::path& path, std::string_view text) {
  (void)write_file_atomically(path, as_bytes(text));
}

/// The digest as a record has it, and everything after it up to the name.
struct Line {
  std::string digest;
  std::string identity;
};

std::multimap<std::string, Line> read_simply(const std::string& text) {
  std::multimap<std::string, Line> lines;
  std::istringstream in(text);
  std::string line;
  require(std::getline(in, line) && line == "1", "the version is known");
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string digest;
    std::string identity;
    words >> digest;
    for (int i = 0; i < 4; ++i) {
      std::int64_t number = 0;
      words >> number;
      identity += std::to_string(number) + " ";
    }
    std::string name;
    std::getline(words.ignore(), name);
    lines.emplace(name, Line{digest, identity});
  }
  return lines;
}

std::string identity_of(const fs::path& file) {
  struct stat info = {};
  require(::lstat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 022) == 0,
          "it is a file that only its owner can change", file.native());
  const auto ns = [](const timespec& time) {
    return std::to_string(time.tv_sec * 1'000'000'000 + time.tv_nsec);
  };
  return std::to_string(info.st_ino) + " " + std::to_string(info.st_size) + " " + ns(info.st_mtim) +
         " " + ns(info.st_ctim) + " ";
}

/// `record`: as it was when the folder was let through.
void check_let_through(const fs::path& folder, const std::multimap<std::string, Line>& record) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name == kRecord || name.starts_with('.')) continue;
    ++files;
    require(record.count(name) == 1, "each file has one line", name);
    const Line& line = record.find(name)->second;
    require(line.identity == identity_of(entry.path()) ||
                line.digest == sha256_file(entry.path()).value(),
            "a file has the digest or the identity that is recorded", name);
  }
  require(files == record.size(), "each line has a file");
  for (const std::string& name : wanted())
    require(record.contains(name), "what is asked for is there", name);
}

/// A place in a text, its end included.
std::size_t any_place(const std::string& text, Choices& choices) {
  return choices.number(2) % (text.size() + 1);
}

void change_record(std::string& text, Choices& choices) {
  const std::size_t at = any_place(text, choices);
  switch (choices.below(6)) {
    case 0: text.resize(at); return;
    case 1: text.insert(at, choices.text(20)); return;
    case 2:
      if (at < text.size()) text[at] = static_cast<char>(choices.byte());
      return;
    case 3: {  // a line, or what begins in the midst of one
      const std::size_t end = text.find('\n', at);
      text.erase(at, end == std::string::npos ? end : end + 1 - at);
      return;
    }
    case 4: {
      const std::size_t begin = text.rfind('\n', at);
      if (begin != std::string::npos)
        text += text.substr(begin + 1, text.find('\n', begin + 1) - begin);
      return;
    }
    default:
      text = "1\n" + sha256_hex(as_bytes("new")) + " 1 2 3 4 " + choices.text(8) + "\n" +
             text.substr(at);
  }
}

void change_file(const fs::path& folder, Choices& choices) {
  static constexpr const char* kNames[] = {"a", "b", "c", ".d"};
  const fs::path file = folder / kNames[choices.below(4)];
  std::error_code error;
  switch (choices.below(6)) {
    case 0: fs::remove(file, error); return;
    case 1: write(file, "new"); return;
    case 2: write(file, "content of a"); return;
    case 3:
      fs::permissions(file, static_cast<fs::perms>(choices.below(0777)) | fs::perms::owner_read,
                      error);
      return;
    case 4:
      fs::remove(file, error);
      fs::create_symlink(choices.coin() ? "a" : "b", file, error);
      return;
    default: fs::remove(file, error); fs::create_directory(file, error);
  }
}

}  // namespace

SW_FUZZ(digests) {
  Choices choices(input);
  const auto parent = TemporaryDirectory::create(memory_folder(), "sw-fuzz-").value();
  const auto cache = bake::ArtifactCache::open(parent.path()).value();
  const auto make = [](const fs::path& folder) -> Result<void> {
    for (const std::string& name : wanted()) write(folder / name, "content of " + name);
    return {};
  };
  const fs::path folder = cache.get("one", wanted(), make, bake::no_progress).value();
  std::string text = read_text_file(folder / kRecord).value();
  for (int i = 0; i < kChangesMax && !choices.empty(); ++i) {
    if (choices.coin()) change_record(text, choices);
    else change_file(folder, choices);
  }
  write(folder / kRecord, text);
  const auto found = cache.find("one", wanted());
  if (found.ok()) {
    check_let_through(folder, read_simply(text));
    require(cache.find("one", wanted()).ok(), "once let through, it is the next time");
  } else {
    require(found.error().code == ErrorCode::kCorrupt, "damage is told", found.error().message);
    const auto again = cache.get("one", wanted(), make, bake::no_progress);
    require(again.ok() && read_text_file(*again / "a").value() == "content of a", "it is rebuilt");
  }
}

}  // namespace sw::fuzz
