// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/slot.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sw::wasm {

namespace {

// How many resets a page stays after it was last changed. A page that is written with the value it
// had looks unchanged and faults again once in so many runs.
constexpr std::uint8_t kHeatMax = 200;
// After a run that touches more pages than this the whole memory is mapped anew. It has read many
// more than it wrote, and each page that is present, though clean, makes every later scan slower.
constexpr std::size_t kUsualPagesMax = 1000;
// And after so many runs, for those that only read a lot.
constexpr std::uint32_t kResetsUntilDrop = 512;

// Host code that works through a gigabyte faults once in each window, which costs some
// microseconds; and whatever the guest touches next lies most likely in another one.
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;

thread_local MemoryRequest* current_request = nullptr;

/// What Wasmtime holds on to for one linear memory. Its finalizer gives the slot back.
struct MemoryHandle {
  std::unique_ptr<Slot> slot;
  std::shared_ptr<SlotPool> pool;  // null: the memory is not an instance's own (the GC heap)
};

wasmtime_error_t* to_wasmtime(const Error& error) {
  return wasmtime_error_new(error.message.c_str());
}

std::uint8_t* get_memory(void* environment, std::size_t* size, std::size_t* capacity) {
  const Slot& slot = *static_cast<MemoryHandle*>(environment)->slot;
  *size = slot.size();
  *capacity = slot.reserved();
  return reinterpret_cast<std::uint8_t*>(slot.base());
}

wasmtime_error_t* grow_memory(void* environment, std::size_t new_size) {
  const auto grown = static_cast<MemoryHandle*>(environment)->slot->grow(new_size);
  return grown.ok() ? nullptr : to_wasmtime(grown.error());
}

void finalize_memory(void* environment) {
  const std::unique_ptr<MemoryHandle> handle(static_cast<MemoryHandle*>(environment));
  if (handle->pool) handle->pool->give_back(std::move(handle->slot));
}

/// It is not what it was before, nor what it was to be.
Error lost_mapping() {
  return Error{ErrorCode::kInternal, errno_error(errno, "cannot map a linear memory").message, 0};
}

}  // namespace

Result<std::unique_ptr<Slot>> Slot::create(std::shared_ptr<const Image> image, std::size_t minimum,
                                           std::size_t reserved, std::size_t guard) {
  std::unique_ptr<Slot> slot(new Slot);
  const std::size_t image_size = image ? image->size() : 0;
  slot->mapped_ = reserved + guard;
  void* base =
      ::mmap(nullptr, slot->mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return errno_error(errno, "cannot reserve address space for a linear memory");
  slot->base_ = static_cast<std::byte*>(base);
  slot->reserved_ = reserved;
  slot->bytes_max_ = reserved;
  if (image && ::mmap(base, image_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, image->fd(), 0) == MAP_FAILED) {
    return errno_error(errno, "cannot map a memory image");
  }
  if (image) {
    slot->writes_ = WriteTracking::create();
    slot->writes_.follow(slot->base_, slot->mapped_);
  }
  slot->size_at_rest_ = std::max(minimum, image_size);
  if (slot->size_at_rest_ > image_size &&
      ::mprotect(slot->base_ + image_size, slot->size_at_rest_ - image_size,
                 PROT_READ | PROT_WRITE) != 0) {
    return errno_error(errno, "cannot make a linear memory accessible");
  }
  slot->size_ = slot->size_at_rest_;
  slot->image_ = std::move(image);
  return slot;
}

Slot::~Slot() {
  late_pages_.reset();
  if (base_ != nullptr) ::munmap(base_, mapped_);
}

Result<void> Slot::grow(std::size_t new_size) {
  if (new_size > reserved_ || new_size > bytes_max_ || !fits(new_size, charged_)) return refuse();
  const std::size_t old_size = size();
  if (new_size <= old_size) return {};
  if (::mprotect(base_ + old_size, new_size - old_size, PROT_READ | PROT_WRITE) != 0) {
    return errno_error(errno, "cannot grow a linear memory");
  }
  size_ = new_size;
  return {};
}

Result<void> Slot::leave_out_pages(std::shared_ptr<FaultService> service,
                                   std::span<const ByteRange> parts) {
  SW_CHECK_OK(end_late_pages());
  auto late = [&]() -> Result<std::unique_ptr<LatePages>> {
    for (const ByteRange& part : parts) {
      if (::mmap(base_ + part.begin, part.end - part.begin, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        return errno_error(errno, "cannot empty a part of a linear memory");
    }
    return LatePages::create(std::move(service), {base_, size()}, {parts.begin(), parts.end()});
  }();
  if (late.ok()) {
    late_pages_ = *std::move(late);
    return {};
  }
  for (const ByteRange& part : parts) SW_CHECK_OK(map(part));
  return Error{ErrorCode::kUnavailable, std::move(late).error().message, 0};
}

Result<void> Slot::end_late_pages() {
  if (!late_pages_) return {};
  const std::vector<ByteRange> parts = late_pages_->parts();
  late_pages_.reset();
  for (const ByteRange& part : parts) SW_CHECK_OK(map(part));
  return {};
}

Result<void> Slot::map(const ByteRange& part) {
  const std::size_t end = std::clamp(image().size(), part.begin, part.end);
  if (part.begin < end) {
    if (::mmap(base_ + part.begin, end - part.begin, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, image_->fd(),
               static_cast<off_t>(part.begin)) == MAP_FAILED)
      return lost_mapping();
  }
  if (end < part.end &&
      ::mmap(base_ + end, part.end - end, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
    return lost_mapping();
  writes_.follow(base_ + part.begin, part.end - part.begin);
  return {};
}

Result<void> Slot::charge(std::uint64_t bytes) {
  if (bytes > UINT64_MAX - charged_ || !fits(size(), charged_ + bytes)) return refuse();
  charged_ += bytes;
  return {};
}

bool Slot::fits(std::uint64_t size, std::uint64_t charged) const {
  if (charged <= kFreeBytes) return true;
  return size <= bytes_max_ && charged - kFreeBytes <= bytes_max_ - size;
}

Error Slot::refuse() {
  ++refused_growths_;
  return Error{ErrorCode::kLimitExceeded, fmt::format("memory limit of {} bytes", bytes_max_), 0};
}

Result<void> Slot::shrink() {
  if (size() <= size_at_rest_) return {};
  std::byte* grown = base_ + size_at_rest_;
  const std::size_t length = size() - size_at_rest_;
  if (::madvise(grown, length, MADV_DONTNEED) != 0 || ::mprotect(grown, length, PROT_NONE) != 0) {
    return errno_error(errno, "cannot shrink a linear memory");
  }
  size_ = size_at_rest_;
  return {};
}

Result<void> Slot::drop(std::size_t begin, std::size_t end) {
  if (begin == end || ::madvise(base_ + begin, end - begin, MADV_DONTNEED) == 0) return {};
  return errno_error(errno, "cannot drop pages of a linear memory");
}

Result<std::size_t> Slot::drop_all(std::size_t touched) {
  std::ranges::fill(heat_, std::uint8_t{0});
  resets_ = 0;
  SW_CHECK_OK(drop(0, size()));
  return touched;
}

Result<std::size_t> Slot::reset(DirtyPageScanner& scanner, std::vector<ByteRange>& scratch) {
  SW_CHECK_OK(end_late_pages());
  allow_access();
  refused_growths_ = 0;
  charged_ = 0;
  SW_CHECK_OK(shrink());
  SW_CHECK_OK(writes_.start_over(memory()));
  const BytesView original = image();
  SW_CHECK_OK(scanner.scan(memory(), original, scratch));
  std::size_t touched = 0;
  for (const ByteRange& range : scratch) touched += (range.end - range.begin) / kPageBytes;
  heat_.resize(size_at_rest_ / kPageBytes);
  if (touched > kUsualPagesMax || ++resets_ == kResetsUntilDrop) return drop_all(touched);
  std::size_t changed = 0;
  ByteRange cold;  // pages to drop that lie side by side
  for (const ByteRange& range : scratch) {
    for (std::size_t at = range.begin; at < range.end; at += kPageBytes) {
      std::uint8_t& heat = heat_[at / kPageBytes];
      const bool is_new = heat == 0;
      const bool is_beyond = at >= original.size();
      const bool differs =
          is_beyond || std::memcmp(base_ + at, original.data() + at, kPageBytes) != 0;
      changed += differs ? 1 : 0;
      heat = is_new || differs ? kHeatMax : static_cast<std::uint8_t>(heat - 1);
      if (is_beyond || heat == 0) {
        heat = 0;
        if (cold.end != at) {
          SW_CHECK_OK(drop(cold.begin, cold.end));
          cold.begin = at;
        }
        cold.end = at + kPageBytes;
      } else if (differs) {
        std::memcpy(base_ + at, original.data() + at, kPageBytes);
      }
    }
  }
  SW_CHECK_OK(drop(cold.begin, cold.end));
  return changed;
}

void Slot::block_access() {
  const bool was_blocked = blocked_.exchange(true, std::memory_order_acq_rel);
  if (was_blocked && !opened_.exchange(false, std::memory_order_acq_rel)) return;
  ::mprotect(base_, size(), PROT_NONE);
}

bool Slot::open_access_at(const void* address) {
  if (!is_blocked()) return false;
  const auto* const at = static_cast<const std::byte*>(address);
  const std::size_t size_now = size();
  if (at < base_ || at >= base_ + size_now) return false;
  const auto offset = static_cast<std::size_t>(at - base_);
  const std::size_t begin = offset - offset % kWindowBytes;
  const std::size_t length = std::min(kWindowBytes, size_now - begin);
  if (::mprotect(base_ + begin, length, PROT_READ | PROT_WRITE) != 0) return false;
  opened_.store(true, std::memory_order_release);
  return true;
}

void Slot::allow_access() {
  if (!blocked_.load(std::memory_order_acquire)) return;
  ::mprotect(base_, size(), PROT_READ | PROT_WRITE);
  opened_.store(false, std::memory_order_release);
  blocked_.store(false, std::memory_order_release);
}

Result<std::unique_ptr<Slot>> SlotPool::take(std::size_t minimum, std::size_t reserved,
                                             std::size_t guard) {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto slot = std::move(idle_.back());
      idle_.pop_back();
      return slot;
    }
  }
  return Slot::create(image_, minimum, reserved, guard);
}

void SlotPool::give_back(std::unique_ptr<Slot> slot) {
  // without an image memory starts as the module's data segments, not as zeros
  if (!image_) return;
  const MutexLock lock(mutex_);
  if (!scanner_) scanner_ = DirtyPageScanner::create();
  if (idle_.size() < kIdleMax && slot->reset(*scanner_, scratch_).ok())
    idle_.push_back(std::move(slot));
}

MemoryRequestScope::MemoryRequestScope(MemoryRequest& request) : previous_(current_request) {
  current_request = &request;
}
MemoryRequestScope::~MemoryRequestScope() { current_request = previous_; }

wasmtime_error_t* new_linear_memory(void* /*environment*/, const wasm_memorytype_t* /*type*/,
                                    std::size_t minimum, std::size_t /*maximum*/,
                                    std::size_t reserved, std::size_t guard,
                                    wasmtime_linear_memory_t* memory) {
  MemoryRequest* request = current_request;
  auto handle = std::make_unique<MemoryHandle>();
  const bool is_own =
      request != nullptr && request->made == nullptr && minimum == request->bytes_at_start;
  if (is_own) handle->pool = request->pool;
  auto slot = is_own ? request->pool->take(minimum, reserved, guard)
                     : Slot::create(nullptr, minimum, reserved, guard);
  if (!slot.ok()) return to_wasmtime(slot.error());
  handle->slot = *std::move(slot);
  if (is_own) {
    handle->slot->set_bytes_max(request->bytes_max);
    request->made = handle->slot.get();
  }
  memory->env = handle.release();
  memory->get_memory = &get_memory;
  memory->grow_memory = &grow_memory;
  memory->finalizer = &finalize_memory;
  return nullptr;
}

}  // namespace sw::wasm
