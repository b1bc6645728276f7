// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Arguments, environment, random numbers, scheduling, and the sockets that do not exist.

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/pieces.h"
#include "wasi/calls_support.h"
#include "wasi/descriptors.h"
#include "wasi/random.h"

namespace sw::wasi {

Errno fill_random(std::span<std::byte> to) {
  // The kernel must not write to guest memory itself: it may be made inaccessible to stop the
  // guest, and a system call would fail where our own store is repaired.
  std::byte block[4096];
  while (!to.empty()) {
    const std::size_t want = std::min(to.size(), sizeof block);
    const ssize_t got = ::getrandom(block, want, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Errno::kIo;
    std::memcpy(to.data(), block, static_cast<std::size_t>(got));
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return Errno::kSuccess;
}

Result<Errno> fill_random(std::span<std::byte> to, const Cancellation* cancellation) {
  Errno filled = Errno::kSuccess;
  SW_CHECK_OK(in_pieces(cancellation, to, [&](std::span<std::byte> piece) -> Result<bool> {
    filled = fill_random(piece);
    return filled == Errno::kSuccess;
  }));
  return filled;
}

namespace calls {
namespace {

u64 bytes_of(const std::vector<std::string>& texts) {
  u64 bytes = 0;
  for (const std::string& text : texts) bytes += text.size() + 1;
  return bytes;
}

Errno put_texts(const std::vector<std::string>& texts, const Memory& memory, u32 pointers,
                u32 address) {
  const auto table = memory.range(pointers, u64{4} * texts.size());
  const auto content = memory.range(address, bytes_of(texts));
  if (!table || !content) return Errno::kFault;
  std::byte* slot = table->data();
  std::byte* at = content->data();
  for (const std::string& text : texts) {
    std::memcpy(slot, &address, 4);
    std::memcpy(at, text.c_str(), text.size() + 1);
    slot += 4;
    at += text.size() + 1;
    address += static_cast<u32>(text.size() + 1);
  }
  return Errno::kSuccess;
}

Errno put_sizes(const std::vector<std::string>& texts, const Memory& memory, u32 count, u32 bytes) {
  const u64 size = bytes_of(texts);
  if (size > UINT32_MAX) return Errno::kOverflow;
  if (!memory.range(count, 4) || !memory.range(bytes, 4)) return Errno::kFault;
  const bool stored = memory.store(count, static_cast<u32>(texts.size())) &&
                      memory.store(bytes, static_cast<u32>(size));
  return stored ? Errno::kSuccess : Errno::kFault;
}

/// There are no sockets: every descriptor is something else or closed.
Errno no_socket(Wasi& wasi, u32 fd) {
  return wasi.descriptors().find(fd) ? Errno::kNotsock : Errno::kBadf;
}

}  // namespace

Errno args_get(Wasi& wasi, const Memory& memory, u32 pointers, u32 texts) {
  return put_texts(wasi.run().args, memory, pointers, texts);
}

Errno args_sizes_get(Wasi& wasi, const Memory& memory, u32 count, u32 bytes) {
  return put_sizes(wasi.run().args, memory, count, bytes);
}

Errno environ_get(Wasi& wasi, const Memory& memory, u32 pointers, u32 texts) {
  return put_texts(wasi.run().env, memory, pointers, texts);
}

Errno environ_sizes_get(Wasi& wasi, const Memory& memory, u32 count, u32 bytes) {
  return put_sizes(wasi.run().env, memory, count, bytes);
}

Result<Errno> random_get(Wasi& wasi, const Memory& memory, u32 buffer, u32 length) {
  const auto to = memory.range(buffer, length);
  return to ? fill_random(*to, wasi.run().cancellation) : Errno::kFault;
}

Errno sched_yield(Wasi&, const Memory&) {
  std::this_thread::yield();
  return Errno::kSuccess;
}

Errno proc_raise(Wasi&, const Memory&, u32) { return Errno::kNosys; }

Errno sock_accept(Wasi& wasi, const Memory& memory, u32 fd, u32, u32 result) {
  return memory.range(result, 4) ? no_socket(wasi, fd) : Errno::kFault;
}

Errno sock_recv(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32, u32 size,
                u32 roflags) {
  SW_WASI_TRY(const auto buffers, guest_buffers(memory, iovs, count));
  return memory.range(size, 4) && memory.range(roflags, 2) ? no_socket(wasi, fd) : Errno::kFault;
}

Errno sock_send(Wasi& wasi, const Memory& memory, u32 fd, u32 iovs, u32 count, u32, u32 size) {
  SW_WASI_TRY(const auto buffers, guest_buffers(memory, iovs, count));
  return memory.range(size, 4) ? no_socket(wasi, fd) : Errno::kFault;
}

Errno sock_shutdown(Wasi& wasi, const Memory&, u32 fd, u32) { return no_socket(wasi, fd); }

}  // namespace calls
}  // namespace sw::wasi
