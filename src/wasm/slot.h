// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Slots: reserved address space that holds one linear memory at a time. A slot maps its image
// privately, so writing a page copies it; between uses the written pages are put back, which is
// cheaper than mapping anew because nothing faults the next time. Private to this room.

#include <atomic>
#include <memory>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/image.h"
#include "wasm/capi.h"
#include "wasm/dirty_pages.h"
#include "wasm/late_pages.h"
#include "wasm/write_tracking.h"

namespace sw::wasm {

/// Threads: one at a time, except where a member says otherwise.
class Slot {
 public:
  /// `minimum`, `reserved` and `guard` are in bytes, as Wasmtime asks for them. `image` may be
  /// null.
  static Result<std::unique_ptr<Slot>> create(std::shared_ptr<const Image> image,
                                              std::size_t minimum, std::size_t reserved,
                                              std::size_t guard);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  std::byte* base() const { return base_; }
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  std::size_t reserved() const { return reserved_; }
  std::size_t size_at_rest() const { return size_at_rest_; }
  BytesView memory() const { return {base_, size()}; }
  BytesView image() const { return image_ ? image_->bytes() : BytesView{}; }

  void set_bytes_max(std::uint64_t bytes) { bytes_max_ = bytes; }
  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t refused_growths() const { return refused_growths_; }

  Result<void> grow(std::size_t new_size);

  /// Empties parts of the memory, which are then filled as they are touched, until `end_late_pages`:
  /// they are then as at rest.
  Result<void> leave_out_pages(std::shared_ptr<FaultService> service,
                               std::span<const ByteRange> parts);
  LatePages* late_pages() { return late_pages_.get(); }
  Result<void> end_late_pages();

  /// See WriteTracking: since the last reset.
  Result<void> take_changed(DirtyPageScanner& scanner, std::vector<ByteRange>& ranges) {
    return writes_.take_changed(scanner, memory(), image(), ranges);
  }

  /// Counts memory elsewhere as part of this one, until `uncharge_to` says that only so much is
  /// left of it. So much is free that a guest whose memory is full can still answer.
  static constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 20;
  Result<void> charge(std::uint64_t bytes);
  std::uint64_t charged() const { return charged_; }
  void uncharge_to(std::uint64_t bytes) { charged_ = bytes; }

  /// Puts every written page back to the image and the size back to what it was at rest. Returns
  /// the number of pages that differed.
  ///
  /// A page that was ever written stays ours, so every later scan names it. Pages that runs keep
  /// writing are copied back and stay, so that they do not fault again; the others are dropped, so
  /// that a run does not pay for what a larger one before it wrote.
  Result<std::size_t> reset(DirtyPageScanner& scanner, std::vector<ByteRange>& scratch);

  /// Makes the memory inaccessible, so that the guest traps at its next access. Called again, it
  /// closes what was opened since. Any thread.
  void block_access();
  /// Opens a blocked memory around an address, for host code that has to go on there. The rest
  /// stays closed, so that the guest traps once it runs again. False if the address is not one of a
  /// blocked memory. Async-signal-safe.
  bool open_access_at(const void* address);
  /// Ends the block. Any thread.
  void allow_access();
  bool is_blocked() const { return blocked_.load(std::memory_order_acquire); }

 private:
  Slot() = default;
  /// Maps part of the memory as at rest.
  Result<void> map(const ByteRange& part);
  Result<void> shrink();
  Error refuse();
  bool fits(std::uint64_t size, std::uint64_t charged) const;
  /// Gives pages of the image part back to the kernel: reading them shows the image again.
  Result<void> drop(std::size_t begin, std::size_t end);
  /// Maps the image anew. Returns `touched`.
  Result<std::size_t> drop_all(std::size_t touched);

  std::shared_ptr<const Image> image_;  // shared with the other slots of the same image
  WriteTracking writes_;
  std::unique_ptr<LatePages> late_pages_;
  std::byte* base_ = nullptr;
  std::size_t reserved_ = 0;  // what a memory can grow to
  std::size_t mapped_ = 0;    // reserved and guard
  std::size_t size_at_rest_ = 0;
  std::atomic<std::size_t> size_ = 0;  // atomic: block_access reads it from another thread
  std::uint64_t bytes_max_ = 0;
  std::uint64_t charged_ = 0;
  std::uint64_t refused_growths_ = 0;
  /// By page: 0 when it was not ours at the last reset, otherwise how many more resets without a
  /// change it stays.
  std::vector<std::uint8_t> heat_;
  std::uint32_t resets_ = 0;  // since the memory was last mapped anew
  std::atomic<bool> blocked_ = false;
  std::atomic<bool> opened_ = false;  // some of it, since it was blocked
};

/// Slots of one image that wait for their next use. Thread-safe.
class SlotPool {
 public:
  explicit SlotPool(std::shared_ptr<const Image> image) : image_(std::move(image)) {}

  Result<std::unique_ptr<Slot>> take(std::size_t minimum, std::size_t reserved, std::size_t guard);
  /// Resets the slot and keeps it; one that cannot be reset is unmapped.
  void give_back(std::unique_ptr<Slot> slot);

 private:
  /// More than any machine runs at once per language; beyond it address space is given back.
  static constexpr std::size_t kIdleMax = 256;

  std::shared_ptr<const Image> image_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Slot>> idle_ SW_GUARDED_BY(mutex_);
  std::unique_ptr<DirtyPageScanner> scanner_ SW_GUARDED_BY(mutex_);
  std::vector<ByteRange> scratch_ SW_GUARDED_BY(mutex_);
};

/// What the next linear memories made on this thread are for. Wasmtime asks its memory creator for
/// memories without saying for which instance, so instantiation leaves the answer here.
struct MemoryRequest {
  std::shared_ptr<SlotPool> pool;
  // the module's declared minimum; a memory of another size is not its own
  std::size_t bytes_at_start = 0;
  std::uint64_t bytes_max = 0;
  Slot* made = nullptr;  // out: the slot that was given to the instance
};

/// Puts a request in place for the calling thread, and takes it away again.
class MemoryRequestScope {
 public:
  explicit MemoryRequestScope(MemoryRequest& request);
  ~MemoryRequestScope();
  MemoryRequestScope(const MemoryRequestScope&) = delete;
  MemoryRequestScope& operator=(const MemoryRequestScope&) = delete;

 private:
  MemoryRequest* previous_;
};

/// Wasmtime's memory creator callback.
wasmtime_error_t* new_linear_memory(void* environment, const wasm_memorytype_t* type,
                                    std::size_t minimum, std::size_t maximum, std::size_t reserved,
                                    std::size_t guard, wasmtime_linear_memory_t* memory);

}  // namespace sw::wasm
