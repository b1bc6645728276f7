// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The commit journal of a data folder that has nothing else: all that the folder says comes from it,
// the directory of objects too. An input is two files, whose checksums are made right if it says so,
// so that the fuzzer is not kept out by them; then what pads the header is left out, too.

#include <xxhash.h>

#include <array>
#include <map>

#include "fuzz/fuzz.h"
#include "storage/sqlite/check.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::fuzz {
namespace {

namespace fs = std::filesystem;
using namespace storage;

constexpr std::size_t kFirstFrame = 512;
constexpr std::size_t kFrameHeader = 32;
constexpr std::size_t kPartHeader = 24;
// Where the checksums are.
constexpr std::size_t kHeaderSum = 28;
constexpr std::size_t kFrameSum = 24;

std::uint64_t number_at(BytesView bytes, std::size_t at, std::size_t count = 8) {
  return Choices(bytes.subspan(at)).number(count);
}

void set_sum(Bytes& bytes, std::size_t at, BytesView of, std::uint64_t seed) {
  const std::uint64_t sum = XXH3_64bits_withSeed(of.data(), of.size(), seed);
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::byte>(sum >> (8 * i));
}

/// Makes the checksums of a frame right. Where the next one may be; the end if it does not fit.
std::size_t seal_frame(Bytes& file, std::size_t at, std::uint64_t salt) {
  const std::size_t left = file.size() - at;
  if (left < kFrameHeader) return file.size();
  const std::size_t parts = number_at(file, at + 4, 4);
  if (parts > (left - kFrameHeader) / kPartHeader) return file.size();
  const std::uint64_t seed = number_at(file, at + 16) ^ salt;
  const std::size_t table = at + kFrameHeader;
  std::size_t rows = table + parts * kPartHeader;
  for (std::size_t part = table; part < table + parts * kPartHeader; part += kPartHeader) {
    const std::uint64_t bytes = number_at(file, part + 8);
    if (bytes > file.size() - rows) break;
    set_sum(file, part + 16, BytesView(file).subspan(rows, bytes), seed);
    rows += bytes;
  }
  const BytesView header = BytesView(file).subspan(at, kFrameSum);
  const std::uint64_t header_sum = XXH3_64bits_withSeed(header.data(), header.size(), seed);
  set_sum(file, at + kFrameSum, BytesView(file).subspan(table, parts * kPartHeader), header_sum);
  return std::min(file.size(), (rows + 7) / 8 * 8);
}

/// A file of a header's magic, version, first sequence number and salt, and of frames.
Bytes sealed(BytesView fields) {
  const BytesView header = fields.first(std::min(kHeaderSum, fields.size()));
  Bytes file = copy_of(header);
  file.resize(kFirstFrame);
  set_sum(file, kHeaderSum, BytesView(file).first(kHeaderSum), 0);
  const BytesView frames = fields.subspan(header.size());
  file.insert(file.end(), frames.begin(), frames.end());
  const std::uint64_t salt = number_at(file, kHeaderSum - 8);
  for (std::size_t at = kFirstFrame; at < file.size();) at = seal_frame(file, at, salt);
  return file;
}

/// Everything that can be read, as text; what cannot be is an error and not a fault.
std::string look(Storage& storage) {
  std::string text;
  const auto listed = storage.list("o", "", 20);
  if (!listed.ok()) return listed.error().message;
  for (const ObjectInfo& info : *listed) {
    text += "\n" + to_string(info.name) + ":";
    const auto object = storage.open(info.name, {}).value();
    const auto read = object->read([&](Reader& reader) {
      return reader.scan({.table = 1, .from = {}, .to = {}}, Order::kAscending,
                         [&](std::string_view key, BytesView value) {
                           text += " " + std::string(key) + "=" + std::string(as_text(value));
                           return Result<Scan>(Scan::kContinue);
                         });
    });
    if (!read.ok()) note(read.error().message);
  }
  const auto due = storage.alarms_until(Time::max(), 20);
  if (due.ok()) text += "\n" + std::to_string(due->size()) + " alarms";
  return text;
}

/// Also of objects that are damaged.
void use(Storage& storage) {
  const auto put = [](Transaction& transaction) {
    return transaction.put(1, "new", as_bytes("new"));
  };
  const auto listed = storage.list("o", "", 20);
  std::vector<ObjectName> names{{"o", "another"}};
  if (listed.ok()) {
    for (const ObjectInfo& info : *listed) names.push_back(info.name);
  }
  for (const ObjectName& name : names) {
    const auto written = storage.open(name, {}).value()->transact(put);
    if (!written.ok()) note(written.error().message);
    const auto copied = storage.change({.copies = {{.from = name, .to = {"o", "copy"}}}});
    if (!copied.ok()) note(copied.error().message);
  }
}

}  // namespace

SW_FUZZ(journal) {
  Choices choices(input);
  const std::uint8_t how = choices.byte();
  const std::size_t first_bytes = choices.number(2);
  const BytesView rest = choices.rest();
  const std::size_t middle = std::min(first_bytes, rest.size());
  const std::array<BytesView, 2> files{rest.first(middle), rest.subspan(middle)};
  const auto folder = TemporaryDirectory::create(memory_folder(), "sw-fuzz-").value();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool seal = (how >> i & 1U) != 0;
    const fs::path path = folder.path() / ("journal." + std::to_string(i));
    require(write_file_atomically(path, seal ? sealed(files[i]) : copy_of(files[i])).ok(),
            "files are written");
  }
  const auto checked = check_data_folder(folder.path());
  if (!checked.ok()) note(checked.error().message);
  std::string before;
  for (int start = 0; start < 3; ++start) {
    // At the end everything is in the databases, but for the first time.
    const auto storage = open_sqlite_storage(
        folder.path(), {.journal_bytes_left = start == 0 ? UINT64_MAX : std::uint64_t{0}});
    if (!storage.ok()) {
      note(storage.error().message);
      return;
    }
    const std::string found = look(**storage);
    if (start == 1) require(found == before, "the same is read again", found + before);
    before = found;
    if (start == 1) use(**storage);
  }
}

}  // namespace sw::fuzz
