// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Reading and writing: files, devices, streams.

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/pieces.h"
#include "wasi/calls_support.h"
#include "wasi/descriptors.h"
#include "wasi/random.h"

namespace sw::wasi::calls {
namespace {

using Buffers = std::vector<std::span<std::byte>>;

constexpr std::size_t kStreamBlock = 16384;

/// One read from the guest's input, as much as it has at hand.
Result<ErrnoOr<std::size_t>> read_input(Wasi& wasi, std::span<std::byte> to) {
  using Answer = ErrnoOr<std::size_t>;
  InputSource* const input = wasi.run().input;
  Cancellation* const cancellation = wasi.run().cancellation;
  if (!input) return Answer(std::size_t{0});
  if (cancellation && input->poll_fd() >= 0) {
    switch (cancellation->wait_until(std::nullopt, input->poll_fd())) {
      case WaitEnd::kCancelled:
        return Error{ErrorCode::kGuestStopped, "stopped while reading its input", 0};
      case WaitEnd::kWoken: return Answer(Errno::kIntr);
      default: break;
    }
  }
  // the source may be a system call, which must not see guest memory
  std::byte block[kStreamBlock];
  auto got = input->read(std::span(block).first(std::min(to.size(), sizeof block)));
  if (got.ok()) std::memcpy(to.data(), block, *got);
  return got;
}

Result<ErrnoOr<std::size_t>> read_device(Wasi& wasi, Device device, std::span<std::byte> to) {
  using Answer = ErrnoOr<std::size_t>;
  switch (device) {
    case Device::kStdin: return read_input(wasi, to);
    case Device::kZero:
      SW_CHECK_OK(in_pieces(wasi.run().cancellation, to, [](std::span<std::byte> piece) {
        std::ranges::fill(piece, std::byte{0});
      }));
      return Answer(to.size());
    case Device::kRandom: {
      SW_TRY(const Errno filled, fill_random(to, wasi.run().cancellation));
      return filled == Errno::kSuccess ? Answer(to.size()) : Answer(filled);
    }
    case Device::kNull: return Answer(std::size_t{0});
    default: return Answer(Errno::kBadf);  // a stream that is for writing
  }
}

/// Passes what is written to a stream on in blocks of host memory.
Result<ErrnoOr<std::size_t>> write_stream(Wasi& wasi, Stream stream, const Buffers& from) {
  Bytes block;
  std::size_t total = 0;
  const auto flush = [&]() -> Result<Errno> {
    if (block.empty()) return Errno::kSuccess;
    SW_CHECK_OK(look_at_stop(wasi.run().cancellation));
    SW_TRY(const Errno written, wasi.write_output(stream, block));
    if (written == Errno::kSuccess) total += block.size();
    block.clear();
    return written;
  };
  for (std::span<std::byte> rest : from) {
    while (!rest.empty()) {
      const auto part = rest.first(std::min(rest.size(), 65536 - block.size()));
      block.insert(block.end(), part.begin(), part.end());
      rest = rest.subspan(part.size());
      if (block.size() < 65536) continue;
      SW_TRY(const Errno written, flush());
      if (written != Errno::kSuccess) return total != 0 ? ErrnoOr<std::size_t>(total) : written;
    }
  }
  SW_TRY(const Errno written, flush());
  if (written != Errno::kSuccess && total == 0) return ErrnoOr<std::size_t>(written);
  return ErrnoOr<std::size_t>(total);
}

Result<ErrnoOr<std::size_t>> write_device(Wasi& wasi, Device device, const Buffers& from) {
  switch (device) {
    case Device::kStdout: return write_stream(wasi, Stream::kStdout, from);
    case Device::kStderr: return write_stream(wasi, Stream::kStderr, from);
    case Device::kStdin: return ErrnoOr<std::size_t>(Errno::kBadf);
    default: break;  // the others swallow everything
  }
  std::size_t total = 0;
  for (const auto buffer : from) total += buffer.size();
  return ErrnoOr<std::size_t>(total);
}

/// Moves the buffers' bytes piece by piece. `step` moves one piece, which comes after `done` bytes,
/// and answers how much of it. Ends where a step falls short; an errno is answered only if nothing
/// was moved.
template <class Step>
Result<ErrnoOr<std::size_t>> move_pieces(const Wasi& wasi, const Buffers& buffers, Step step) {
  std::size_t done = 0;
  Errno failed = Errno::kSuccess;
  bool whole = true;
  for (const auto buffer : buffers) {
    SW_CHECK_OK(
        in_pieces(wasi.run().cancellation, buffer, [&](std::span<std::byte> piece) -> Result<bool> {
          const ErrnoOr<std::size_t> moved = step(piece, done);
          if (!moved.ok()) failed = moved.error();
          else done += *moved;
          whole = moved.ok() && *moved == piece.size();
          return whole;
        }));
    if (!whole) break;
  }
  return failed != Errno::kSuccess && done == 0 ? ErrnoOr<std::size_t>(failed)
                                                : ErrnoOr<std::size_t>(done);
}

Result<ErrnoOr<std::size_t>> read_file(Wasi& wasi, OpenFile& file, u64 offset, const Buffers& to) {
  auto read = move_pieces(wasi, to, [&](std::span<std::byte> piece, u64 done) {
    return file.at.node->content.read(offset + done, piece);
  });
  Timestamps times = file.at.node->times;
  // As file systems mounted with relatime do: the first read after a change is recorded.
  if (!file.at.tree->read_only() && times.accessed <= times.modified) {
    times.accessed = wasi.files().now_ns();
    file.at.tree->set_times(*file.at.node, times);
  }
  return read;
}

Result<ErrnoOr<std::size_t>> write_file(Wasi& wasi, OpenFile& file, u64 offset,
                                        const Buffers& from) {
  Tree& tree = *file.at.tree;
  const bool leaves_hole =
      offset > file.at.node->size() && std::ranges::any_of(from, [](auto b) { return !b.empty(); });
  if (leaves_hole) {
    // No hole if nothing can be written after it.
    if (const Errno full = tree.reserve(*file.at.node, offset + 1); full != Errno::kSuccess) {
      return ErrnoOr<std::size_t>(full);
    }
    SW_TRY(const Errno filled, resize_file(wasi, file.at, offset));
    if (filled != Errno::kSuccess) return ErrnoOr<std::size_t>(filled);
  }
  const u64 now = wasi.files().now_ns();
  return move_pieces(wasi, from, [&](std::span<std::byte> piece, u64 done) {
    return tree.write(*file.at.node, offset + done, piece, now);
  });
}

/// Where a transfer takes place: at the file's own position, which then moves, or at a given one.
using Offset = std::optional<u64>;

Result<ErrnoOr<std::size_t>> read_any(Wasi& wasi, OpenFile& file, const Buffers& to,
                                      Offset offset) {
  using Answer = ErrnoOr<std::size_t>;
  if (file.type() == FileType::kRegularFile) {
    SW_TRY(const auto got, read_file(wasi, file, offset.value_or(file.position), to));
    if (got.ok() && !offset) file.position += *got;
    return got;
  }
  const auto filled =
      std::find_if(to.begin(), to.end(), [](const auto& buffer) { return !buffer.empty(); });
  if (filled == to.end()) return Answer(std::size_t{0});
  return read_device(wasi, file.is_stream() ? file.device : file.at.node->device, *filled);
}

Result<ErrnoOr<std::size_t>> write_any(Wasi& wasi, OpenFile& file, const Buffers& from,
                                       Offset offset) {
  if (file.type() != FileType::kRegularFile) {
    return write_device(wasi, file.is_stream() ? file.device : file.at.node->device, from);
  }
  const bool appends = (file.flags & fdflags::kAppend) != 0;
  // Linux's pwrite appends too when the file was opened to append.
  const u64 start = appends ? file.at.node->size() : offset.value_or(file.position);
  SW_TRY(const auto written, write_file(wasi, file, start, from));
  if (written.ok() && !offset) file.position = start + *written;
  return written;
}

enum class Direction : std::uint8_t { kRead, kWrite };

Result<Errno> transfer(Wasi& wasi, const Memory& memory, Direction direction, u32 fd, u32 iovs,
                       u32 count, Offset offset, u32 result) {
  auto file = open_file(wasi, fd, 0);
  if (!file.ok()) return file.error();
  if ((*file)->type() == FileType::kDirectory) return Errno::kIsdir;
  if (offset && (*file)->is_stream()) return Errno::kSpipe;
  file = open_file(wasi, fd, direction == Direction::kRead ? rights::kFdRead : rights::kFdWrite);
  if (!file.ok()) return file.error();
  if (offset && *offset > INT64_MAX) return Errno::kInval;
  const auto buffers = guest_buffers(memory, iovs, count);
  if (!buffers.ok()) return buffers.error();
  if (!memory.range(result, 4)) return Errno::kFault;
  SW_TRY(const ErrnoOr<std::size_t> moved, direction == Direction::kRead
                                               ? read_any(wasi, **file, *buffers, offset)
                                               : write_any(wasi, **file, *buffers, offset));
  if (!moved.ok()) return moved.error();
  return memory.store(result, static_cast<u32>(*moved)) ? Errno::kSuccess : Errno::kFault;
}

}  // namespace

Result<Errno> fd_read(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32 result) {
  return transfer(wasi, memory, Direction::kRead, fd, iovs, count, std::nullopt, result);
}

Result<Errno> fd_pread(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u64 offset,
                       u32 result) {
  return transfer(wasi, memory, Direction::kRead, fd, iovs, count, offset, result);
}

Result<Errno> fd_write(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32 result) {
  return transfer(wasi, memory, Direction::kWrite, fd, iovs, count, std::nullopt, result);
}

Result<Errno> fd_pwrite(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u64 offset,
                        u32 result) {
  return transfer(wasi, memory, Direction::kWrite, fd, iovs, count, offset, result);
}

}  // namespace sw::wasi::calls
