// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/test_allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocated{0};
std::atomic<std::size_t> peak{0};
// How many more allocations of this thread succeed; negative: all.
thread_local int allocations_left = -1;

}  // namespace

void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* const made = std::malloc(size == 0 ? 1 : size);
  if (made == nullptr) throw std::bad_alloc();
  const std::size_t now =
      allocated.fetch_add(::malloc_usable_size(made)) + ::malloc_usable_size(made);
  for (std::size_t seen = peak; now > seen && !peak.compare_exchange_weak(seen, now);) {
  }
  return made;
}

void operator delete(void* pointer) noexcept {
  if (pointer != nullptr) allocated -= ::malloc_usable_size(pointer);
  std::free(pointer);
}
void operator delete(void* pointer, std::size_t /*size*/) noexcept { operator delete(pointer); }
// Of std::stable_sort's buffer, for one. A sanitizer has its own, which do not go together with
// those above.
void* operator new(std::size_t size, const std::nothrow_t& /*nothrow*/) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* pointer, const std::nothrow_t& /*nothrow*/) noexcept {
  operator delete(pointer);
}

namespace sw {

std::size_t allocation_peak(const std::function<void()>& work) {
  const std::size_t before = allocated;
  peak = before;
  work();
  return peak - before;
}

void with_allocations(int count, const std::function<void()>& work) {
  allocations_left = count;
  try {
    work();
  } catch (const std::bad_alloc&) {
  }
  allocations_left = -1;
}

}  // namespace sw
