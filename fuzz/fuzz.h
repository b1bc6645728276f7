// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the targets of the fuzzer are made of. See README.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "sandbox_workers/base/files.h"

namespace sw::fuzz {

/// What must hold for every input. Ends the process otherwise, so that the fuzzer keeps the input.
inline void require(bool holds, std::string_view what, std::string_view detail = "") {
  if (holds) return;
  const std::string text =
      "does not hold: " + std::string(what) + " " + std::string(detail.substr(0, 2000)) + "\n";
  std::fputs(text.c_str(), stderr);
  std::abort();
}

/// Makes decisions of an input's bytes. When they are used up, every number is 0 and every text
/// empty.
class Choices {
 public:
  explicit Choices(BytesView bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = std::to_integer<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }
  /// A number below `count`, which is at most 65536.
  std::size_t below(std::size_t count) {
    if (count <= 1) return 0;
    return (count <= 256 ? byte() : number(2)) % count;
  }
  bool coin() { return (byte() & 1U) != 0; }
  /// Of so many bytes.
  std::uint64_t number(std::size_t bytes = 8) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  /// Large and small ones alike.
  std::uint64_t any_number() { return number(below(9)); }
  /// A length, then as many bytes as there are of it.
  BytesView bytes(std::size_t max) {
    const std::size_t wanted = below(max + 1);  // takes bytes itself
    const BytesView bytes = rest_.first(std::min(wanted, rest_.size()));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  std::string text(std::size_t max) { return std::string(as_text(bytes(max))); }
  /// All that is left.
  BytesView rest() { return std::exchange(rest_, {}); }
  std::string rest_text() { return std::string(as_text(rest())); }

 private:
  BytesView rest_;
};

inline Bytes copy_of(BytesView bytes) { return {bytes.begin(), bytes.end()}; }

/// Bytes that somebody damaged: one is another, a bit is, the end is missing, or something is in
/// between.
inline void change(Bytes& bytes, Choices& choices) {
  const std::size_t at = bytes.empty() ? 0 : choices.number(2) % bytes.size();
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (choices.below(4)) {
    case 0:
      if (!bytes.empty()) *place = static_cast<std::byte>(choices.byte());
      return;
    case 1:
      if (!bytes.empty()) *place ^= static_cast<std::byte>(1U << choices.below(8));
      return;
    case 2: bytes.resize(at); return;
    default: {
      const BytesView more = choices.bytes(16);
      bytes.insert(place, more.begin(), more.end());
      return;
    }
  }
}

/// Where files are made quickly.
inline std::filesystem::path memory_folder() {
  std::error_code error;
  return std::filesystem::is_directory("/dev/shm", error) ? "/dev/shm"
                                                          : std::filesystem::temp_directory_path();
}

}  // namespace sw::fuzz

#ifdef SW_LIBFUZZER
/// libFuzzer takes a counter of this section for a place in the code.
__attribute__((section("__libfuzzer_extra_counters"))) inline std::uint8_t extra_counters[1024];
#endif

namespace sw::fuzz {

/// Tells the fuzzer that an input did something new where it cannot see it, in code that is not
/// instrumented. Digits do not count: they are offsets and sizes.
inline void note([[maybe_unused]] std::string_view what) {
#ifdef SW_LIBFUZZER
  std::uint32_t hash = 0;
  for (const char c : what) {
    if (c < '0' || c > '9') hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
  }
  extra_counters[hash % sizeof extra_counters] = 1;
#endif
}

}  // namespace sw::fuzz

/// SW_FUZZ(name) { … } is the target that reads `input`.
#ifdef SW_LIBFUZZER
#define SW_FUZZ(name)                                                                 \
  static void fuzz_##name(::sw::BytesView input);                                     \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_##name(::sw::BytesView(reinterpret_cast<const std::byte*>(data), size));     \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_##name(::sw::BytesView input)
#else
#include <gtest/gtest.h>

namespace sw::fuzz {
void run_corpus(std::string_view name, void (*target)(BytesView));
}

#define SW_FUZZ(name)                                                \
  static void fuzz_##name(::sw::BytesView input);                    \
  TEST(Corpus, name) { ::sw::fuzz::run_corpus(#name, fuzz_##name); } \
  static void fuzz_##name(::sw::BytesView input)
#endif
