// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory that is filled page by page as it is touched. The kernel tells a thread of ours about a
// page that is missing (userfaultfd), and whoever touched it waits until the page is there. That
// works for code of the guest and of the host alike, but not for system calls: an ordinary user's
// kernel answers EFAULT when it is given the address of a page that is missing. Private to this
// room.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/thread_safety.h"
#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/base/pages.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/unique_fd.h"
#include "sandbox_workers/wasm/instance.h"

namespace sw::wasm {

class LatePages;

/// The thread that fills pages of all memories. Thread-safe.
class FaultService {
 public:
  /// Errors: kUnavailable where the kernel or its policy does not offer it.
  static Result<std::shared_ptr<FaultService>> create();
  /// No memory is watched any more.
  ~FaultService();
  FaultService(const FaultService&) = delete;
  FaultService& operator=(const FaultService&) = delete;

 private:
  friend class LatePages;
  FaultService(UniqueFd faults, std::uint64_t mode, UniqueFd end)
      : faults_(std::move(faults)), mode_(mode), end_(std::move(end)) {}

  /// Has the pages that are missing wait.
  Result<void> hold(LatePages& pages);
  /// From here on they are filled.
  void watch(LatePages& pages);
  void forget(LatePages& pages);
  Result<void> start_thread();
  void serve_until_the_end();
  void serve(std::uintptr_t address);

  const UniqueFd faults_;     // a userfaultfd
  const std::uint64_t mode_;  // what memory is registered for
  const UniqueFd end_;        // readable once the thread is to end
  Mutex mutex_;
  CondVar served_;
  /// By where the memories begin.
  std::map<std::uintptr_t, LatePages*> watched_ SW_GUARDED_BY(mutex_);
  LatePages* in_service_ SW_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_ SW_GUARDED_BY(mutex_);  // from the first memory on
};

/// Parts of a memory whose pages come late. The rest is written directly. Threads: one at a time,
/// beside the service.
class LatePages final : public PageSink {
 public:
  /// Parts ascend, and are anonymous mappings of which nothing has been touched. `memory` outlives
  /// it.
  static Result<std::unique_ptr<LatePages>> create(std::shared_ptr<FaultService> service,
                                                   std::span<std::byte> memory,
                                                   std::vector<ByteRange> parts);
  /// From here on, pages that are missing are zeros.
  ~LatePages() override;

  const std::vector<ByteRange>& parts() const { return parts_; }
  std::uint64_t memory_bytes() const override { return memory_.size(); }
  /// Pages to be there from the start. Who touches a late page before `start` waits for it.
  Result<PageSpan> write(std::uint32_t page) override;

  /// Who is told that a page could not be had, on the service's thread.
  class Damage {
   public:
    virtual ~Damage() = default;
    /// Whoever touched it still waits, whatever it holds. After this the page becomes zeros.
    virtual void note(const Error& error) = 0;
    /// It does not wait any more.
    virtual void end_call() = 0;
  };
  /// `supply` is called on the service's thread, one call at a time. `damage` outlives this.
  Result<void> start(PageSupply supply, Damage& damage);

 private:
  friend class FaultService;

  LatePages(std::shared_ptr<FaultService> service, std::span<std::byte> memory,
            std::vector<ByteRange> parts)
      : service_(std::move(service)), memory_(memory), parts_(std::move(parts)) {}

  Result<PageSpan> stage(std::uint32_t page);
  void fill(std::uint32_t page);
  Result<void> supply(std::uint32_t page);
  Result<void> put_staged(std::uint32_t needed);
  std::uintptr_t address_of(std::uint32_t page) const;

  const std::shared_ptr<FaultService> service_;  // shared with the other memories
  const std::span<std::byte> memory_;
  const std::vector<ByteRange> parts_;
  PageSupply supply_;
  Damage* damage_ = nullptr;
  /// Pages on their way into the memory, by number; their rooms are used again.
  std::map<std::uint32_t, std::size_t> staged_;
  std::vector<std::unique_ptr<std::array<std::byte, kPageBytes>>> rooms_;
};

}  // namespace sw::wasm
