// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What tests save and restore: a memory that is written to, as a guest would.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "snapshot/page.h"
#include "snapshot/snapshot_store.h"

namespace sw::snapshot {

inline constexpr char kBuild[] = "build-1";

template <class T>
T must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << result.error().message;
  std::abort();
}
inline void must(const Result<void>& result) { ASSERT_TRUE(result.ok()) << result.error().message; }

/// Pages of zeros, of text, of noise.
inline Bytes make_image(std::size_t pages) {
  Bytes image(pages * kPageBytes);
  std::mt19937 random(7);
  for (std::size_t page = 0; page < pages; ++page) {
    for (std::size_t i = 0; page % 3 != 0 && i < kPageBytes; ++i) {
      image[page * kPageBytes + i] =
          static_cast<std::byte>(page % 3 == 1 ? 'a' + i % 20 : random());
    }
  }
  return image;
}

/// A guest: its memory, and which pages it wrote since it was last saved, as the kernel would tell.
class Guest {
 public:
  explicit Guest(const Bytes& image) : memory_(image) {}

  void write(std::size_t at, std::string_view text) {
    std::ranges::copy(as_bytes(text), memory_.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t page = at / kPageBytes; page <= (at + text.size() - 1) / kPageBytes; ++page)
      mark(page);
  }
  void mark(std::size_t page) { dirty_[page] = true; }
  void note_saved() { dirty_.clear(); }
  void grow_to(std::size_t bytes) { memory_.resize(bytes); }
  Bytes& memory() { return memory_; }
  const Bytes& memory() const { return memory_; }

  std::vector<ByteRange> dirty() const {
    std::vector<ByteRange> ranges;
    for (const auto& [page, yes] : dirty_) {
      const std::size_t begin = page * kPageBytes;
      if (!ranges.empty() && ranges.back().end == begin) ranges.back().end += kPageBytes;
      else ranges.push_back({begin, begin + kPageBytes});
    }
    return ranges;
  }
  void mark_all() {
    for (std::size_t page = 0; page < memory_.size() / kPageBytes; ++page) mark(page);
  }

 private:
  Bytes memory_;
  std::map<std::size_t, bool> dirty_;
};

/// What a run might do to its memory.
inline void run_at_random(Guest& guest, const Bytes& image, std::mt19937& random) {
  const auto noise = [&](std::size_t size) {
    std::string text(size, ' ');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  const std::size_t bytes = guest.memory().size();
  for (std::size_t n = random() % 6; n > 0; --n) {
    switch (random() % 8) {
      case 0: guest.write(random() % (bytes - 9000), noise(1 + random() % 9000)); break;
      case 1: {  // as in the image again, or zero beyond it
        const std::size_t page = random() % (bytes / kPageBytes);
        const bool in_image = page < image.size() / kPageBytes;
        guest.write(page * kPageBytes,
                    in_image ? as_text(BytesView(image).subspan(page * kPageBytes, kPageBytes))
                             : std::string(kPageBytes, '\0'));
        break;
      }
      case 2:
        if (bytes < 400 * kPageBytes) guest.grow_to(bytes + (random() % 40) * kPageBytes);
        break;
      case 3: guest.mark(random() % (bytes / kPageBytes)); break;  // written with what it held
      default:
        guest.write((random() % 12) * kPageBytes + random() % 4000, noise(1 + random() % 60));
    }
  }
  if (random() % 60 == 0 && bytes > 300 * kPageBytes)
    guest.write(10 * kPageBytes, noise(280 * kPageBytes));
}

/// A version of a context, into a memory of this process.
inline Result<Restored> restore_into(SnapshotStore& store, std::string_view context,
                                     VersionId version, std::string_view build, BytesView image,
                                     std::span<std::byte> memory) {
  SpanPageSink pages(memory);
  return store.restore(context, version, build, image, pages);
}

}  // namespace sw::snapshot
