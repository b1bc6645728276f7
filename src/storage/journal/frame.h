// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The journal's format: docs/formats/journal.md. Everything that is read is taken to be hostile.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/layer.h"

namespace sw::storage {

inline constexpr std::size_t kFrameAlignment = 8;
inline constexpr std::size_t kJournalHeaderBytes = 512;

/// The begin of a journal file.
struct JournalHeader {
  std::uint64_t first_sequence = 0;  ///< of the first frame
  /// A random number that all checksums depend on: what guests make the program write cannot be
  /// taken for a frame.
  std::uint64_t salt = 0;
};
Bytes encode(const JournalHeader& header);
/// nullopt: it is none, or damaged.
/// Errors: kInvalidArgument for that of a newer program.
Result<std::optional<JournalHeader>> decode_journal_header(BytesView file);

/// The changes that are written and synced at once.
class FrameEncoder {
 public:
  void add(LayerNumber layer, const Rows& rows);
  bool empty() const { return parts_.empty(); }
  std::size_t bytes() const;
  /// The frame, a multiple of kFrameAlignment.
  Bytes finish(std::uint64_t sequence, std::uint64_t salt) const;

 private:
  struct Part {
    LayerNumber layer;
    Bytes rows;
  };
  std::vector<Part> parts_;
};

struct FramePart {
  LayerNumber layer = 0;
  /// nullopt: damaged.
  std::optional<Rows> rows;
};

struct Frame {
  std::uint64_t sequence = 0;
  std::size_t bytes = 0;  ///< that it takes in the file
  std::vector<FramePart> parts;
};

/// The frame at the begin of `bytes`; nullopt: there is none whose header is whole.
std::optional<Frame> decode_frame(BytesView bytes, std::uint64_t salt);

/// What a journal file holds.
struct JournalContent {
  JournalHeader header;
  std::vector<Frame> frames;        ///< in order; their parts in the order of the commits
  std::size_t end = 0;              ///< where the next frame would go
  std::uint64_t next_sequence = 0;  ///< and its number
  /// What cannot be read although later frames can: it was acknowledged once. For people.
  std::vector<std::string> damage;
};

/// `acknowledged_end`: frames with smaller numbers were acknowledged, as later ones are elsewhere.
JournalContent read_frames(BytesView file, const JournalHeader& header,
                           std::uint64_t acknowledged_end);

}  // namespace sw::storage
