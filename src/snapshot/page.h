// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One page of 4 KiB: its hash, its difference to another page, and the two ways a difference is
// written.
//
// A difference is the XOR of two pages. That is its own inverse, and the order does not matter: a
// page that was stored as a difference to a difference to the image is the XOR of all three.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/pages.h"

namespace sw::snapshot {

using Page = std::array<std::byte, kPageBytes>;

inline PageView page_at(BytesView memory, std::size_t page) {
  return memory.subspan(page * kPageBytes).first<kPageBytes>();
}
PageView zero_page();
bool equal(PageView a, PageView b);
/// std::ranges::copy goes byte by byte.
void copy_page(PageView from, std::byte* to);

std::uint64_t page_hash(PageView page);

/// How many bytes differ.
std::size_t difference(PageView a, PageView b);
void xor_into(Page& page, PageView other);

/// Appends the difference of two pages as runs of bytes that are not zero: {zeros to skip varint,
/// length varint, bytes}… Returns false, and appends nothing, when that takes more than `bytes_max`.
bool append_sparse(Bytes& out, PageView a, PageView b, std::size_t bytes_max);
/// XORs into `page` what append_sparse wrote. False if the input is damaged; the page is then
/// undefined.
bool apply_sparse(Page& page, BytesView sparse);

/// Reorders elements of `stride` bytes so that their first bytes come first, then their second
/// bytes, …: pages full of numbers or addresses compress many times better so. The size is a
/// multiple of the stride.
Bytes transpose(BytesView bytes, std::size_t stride);
Bytes untranspose(BytesView bytes, std::size_t stride);

}  // namespace sw::snapshot
