// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sw::sandbox {

namespace {

constexpr std::string_view kMagic = "SWSANDBX";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr std::size_t kAboutBytesMax = std::size_t{64} << 10;
constexpr std::size_t kBindingBytesMax = 256;

enum class Kind : std::uint8_t { kAbout = 'A', kObject = 'O', kRow = 'R', kEnd = 'E' };

void append(Bytes& out, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(number >> (8 * i)));
}

Bytes head(Kind kind) { return {static_cast<std::byte>(kind)}; }

Error damaged(std::string what) {
  return Error{ErrorCode::kCorrupt, "the archive is damaged: " + std::move(what), 0};
}

}  // namespace

// --- writing

ArchiveWriter::ArchiveWriter(const WriteBytes& write) : write_(write) {
  const BytesView magic = as_bytes(kMagic);
  buffer_.assign(magic.begin(), magic.end());
  append(buffer_, kVersion, 4);
}

Result<void> ArchiveWriter::about(std::string_view text) {
  Bytes fields = head(Kind::kAbout);
  append(fields, text.size(), 4);
  SW_CHECK_OK(add(fields));
  return add(as_bytes(text));
}

Result<void> ArchiveWriter::object(std::string_view binding, std::uint32_t schema) {
  Bytes fields = head(Kind::kObject);
  append(fields, schema, 4);
  append(fields, binding.size(), 4);
  SW_CHECK_OK(add(fields));
  return add(as_bytes(binding));
}

Result<void> ArchiveWriter::row(storage::TableId table, std::string_view key, BytesView value) {
  Bytes fields = head(Kind::kRow);
  append(fields, table, 2);
  append(fields, key.size(), 4);
  append(fields, value.size(), 4);
  SW_CHECK_OK(add(fields));
  SW_CHECK_OK(add(as_bytes(key)));
  return add(value);
}

Result<void> ArchiveWriter::end() {
  SW_CHECK_OK(add(head(Kind::kEnd)));
  SW_CHECK_OK(flush());
  return write_(as_bytes(checksum_.hex()));
}

Result<void> ArchiveWriter::add(BytesView bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) SW_CHECK_OK(flush());
  if (bytes.size() > kBufferBytes) {
    checksum_.update(bytes);
    return write_(bytes);
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> ArchiveWriter::flush() {
  if (buffer_.empty()) return {};
  checksum_.update(buffer_);
  SW_CHECK_OK(write_(buffer_));
  buffer_.clear();
  return {};
}

// --- reading

Result<void> ArchiveReader::fill() {
  buffer_.resize(kBufferBytes);
  used_ = 0;
  const auto got = read_(buffer_);
  if (!got.ok()) {
    buffer_.clear();
    return got.error();
  }
  buffer_.resize(std::min(*got, kBufferBytes));
  if (buffer_.empty()) return damaged("it ends too early");
  return {};
}

Result<Bytes> ArchiveReader::take(std::uint64_t bytes, std::uint64_t bytes_max) {
  if (bytes > bytes_max) return damaged("a length is too large");
  Bytes taken;
  // It grows with what is really there, whatever was promised.
  while (taken.size() < bytes) {
    if (used_ == buffer_.size()) SW_CHECK_OK(fill());
    const std::size_t now = std::min<std::size_t>(buffer_.size() - used_,
                                                  static_cast<std::size_t>(bytes) - taken.size());
    const BytesView part = BytesView(buffer_).subspan(used_, now);
    taken.insert(taken.end(), part.begin(), part.end());
    used_ += now;
  }
  checksum_.update(taken);
  return taken;
}

Result<std::string> ArchiveReader::take_text(std::uint64_t bytes, std::uint64_t bytes_max) {
  SW_TRY(const Bytes taken, take(bytes, bytes_max));
  return std::string(as_text(taken));
}

Result<std::uint64_t> ArchiveReader::number(std::size_t bytes) {
  SW_TRY(const Bytes taken, take(bytes, sizeof(std::uint64_t)));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    number |= std::to_integer<std::uint64_t>(taken[i]) << (8 * i);
  return number;
}

Result<void> ArchiveReader::begin() {
  const auto magic = take_text(kMagic.size(), kMagic.size());
  const bool too_short = !magic.ok() && magic.error().code == ErrorCode::kCorrupt;
  if (!magic.ok() && !too_short) return magic.error();
  if (too_short || *magic != kMagic) {
    return Error{ErrorCode::kInvalidArgument, "this is not an exported sandbox", 0};
  }
  SW_TRY(const std::uint64_t version, number(4));
  if (version == kVersion) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the archive has format version {}, and this program reads version {}",
                           version, kVersion),
               0};
}

Result<void> ArchiveReader::end() {
  const std::string expected = checksum_.hex();
  checksum_ = Sha256();
  SW_TRY(const std::string found, take_text(expected.size(), expected.size()));
  if (found != expected) return damaged("its checksum is wrong");
  return {};
}

Result<ArchiveRecord> ArchiveReader::next() {
  if (!std::exchange(begun_, true)) SW_CHECK_OK(begin());
  SW_TRY(const std::uint64_t kind, number(1));
  switch (static_cast<Kind>(kind)) {
    case Kind::kAbout: {
      SW_TRY(const std::uint64_t bytes, number(4));
      SW_TRY(std::string text, take_text(bytes, kAboutBytesMax));
      return ArchiveRecord(ArchiveAbout{std::move(text)});
    }
    case Kind::kObject: {
      SW_TRY(const std::uint64_t schema, number(4));
      SW_TRY(const std::uint64_t bytes, number(4));
      SW_TRY(std::string binding, take_text(bytes, kBindingBytesMax));
      return ArchiveRecord(ArchiveObject{std::move(binding), static_cast<std::uint32_t>(schema)});
    }
    case Kind::kRow: {
      SW_TRY(const std::uint64_t table, number(2));
      SW_TRY(const std::uint64_t key_bytes, number(4));
      SW_TRY(const std::uint64_t value_bytes, number(4));
      SW_TRY(std::string key, take_text(key_bytes, storage::kKeyBytesMax));
      SW_TRY(Bytes value, take(value_bytes, storage::kValueBytesMax));
      return ArchiveRecord(
          ArchiveRow{static_cast<storage::TableId>(table), std::move(key), std::move(value)});
    }
    case Kind::kEnd: SW_CHECK_OK(end()); return ArchiveRecord(ArchiveEnd());
  }
  return damaged(fmt::format("unknown record {}", kind));
}

}  // namespace sw::sandbox
