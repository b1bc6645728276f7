// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/late_pages.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <iterator>
#include <string>
#include <system_error>

#include "wasm/write_tracking.h"

namespace sw::wasm {

namespace {

/// Rooms that a memory keeps between faults.
constexpr std::size_t kRoomsKept = 64;

uffdio_range range_of(std::uintptr_t address, std::size_t bytes) {
  return {.start = address, .len = bytes};
}

void wake(int faults, std::uintptr_t page) {
  uffdio_range range = range_of(page, kPageBytes);
  (void)::ioctl(faults, UFFDIO_WAKE, &range);
}

/// Puts a page in its place, unless there is one. Returns 0 or an errno.
int put_page(int faults, std::uintptr_t to, const std::byte* from) {
  for (;;) {
    uffdio_copy copy = {};
    copy.dst = to;
    copy.src = reinterpret_cast<std::uintptr_t>(from);
    copy.len = kPageBytes;
    copy.mode = UFFDIO_COPY_MODE_DONTWAKE;
    if (::ioctl(faults, UFFDIO_COPY, &copy) == 0 || errno == EEXIST) return 0;
    if (errno != EAGAIN) return errno;  // EAGAIN: the mappings are being changed
  }
}

void put_zeros(int faults, std::uintptr_t to) {
  uffdio_zeropage zeros = {};
  zeros.range = range_of(to, kPageBytes);
  zeros.mode = UFFDIO_ZEROPAGE_MODE_DONTWAKE;
  while (::ioctl(faults, UFFDIO_ZEROPAGE, &zeros) != 0 && errno == EAGAIN) {
  }
}

}  // namespace

// --- the service

Result<std::shared_ptr<FaultService>> FaultService::create() {
  // Memory belongs to one userfaultfd, so this one has to track writes as well.
  std::uint64_t mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
  UniqueFd faults = open_userfaults(kTrackedWrites);
  if (!faults) {
    mode = UFFDIO_REGISTER_MODE_MISSING;
    faults = open_userfaults(0);
  }
  if (!faults) {
    Error error = errno_error(errno, "memory cannot be filled as it is touched");
    error.code = ErrorCode::kUnavailable;
    return error;
  }
  UniqueFd end(::eventfd(0, EFD_CLOEXEC));
  if (!end) return errno_error(errno, "eventfd");
  return std::shared_ptr<FaultService>(new FaultService(std::move(faults), mode, std::move(end)));
}

FaultService::~FaultService() {
  const std::uint64_t one = 1;
  (void)!::write(end_.get(), &one, sizeof one);
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

Result<void> FaultService::hold(LatePages& pages) {
  SW_CHECK_OK(start_thread());
  for (const ByteRange& part : pages.parts_) {
    if (!register_memory(faults_.get(), pages.memory_.data() + part.begin, part.end - part.begin,
                         mode_))
      return errno_error(errno, "memory cannot be filled as it is touched");
  }
  return {};
}

Result<void> FaultService::start_thread() {
  const MutexLock lock(mutex_);
  if (thread_.joinable()) return {};
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<void> started;
  try {
    thread_ = std::thread([this] { serve_until_the_end(); });
  } catch (const std::system_error& problem) {
    started = Error{ErrorCode::kUnavailable, std::string("no thread: ") + problem.what(), 0};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void FaultService::watch(LatePages& pages) {
  const MutexLock lock(mutex_);
  watched_.emplace(pages.address_of(0), &pages);
}

void FaultService::forget(LatePages& pages) {
  MutexLock lock(mutex_);
  watched_.erase(pages.address_of(0));
  while (in_service_ == &pages) served_.wait(lock);
  for (const ByteRange& part : pages.parts_) {
    uffdio_range range = range_of(pages.address_of(0) + part.begin, part.end - part.begin);
    (void)::ioctl(faults_.get(), UFFDIO_UNREGISTER, &range);
  }
}

void FaultService::serve_until_the_end() {
  for (;;) {
    std::array<pollfd, 2> watched = {{{.fd = faults_.get(), .events = POLLIN, .revents = 0},
                                      {.fd = end_.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[1].revents != 0) return;
    uffd_msg message = {};
    if (::read(faults_.get(), &message, sizeof message) != sizeof message) continue;
    if (message.event == UFFD_EVENT_PAGEFAULT)
      serve(message.arg.pagefault.address & ~(std::uintptr_t{kPageBytes} - 1));
  }
}

void FaultService::serve(std::uintptr_t address) {
  LatePages* pages = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto next = watched_.upper_bound(address);
    if (next != watched_.begin()) pages = std::prev(next)->second;
    in_service_ = pages;
  }
  if (pages != nullptr && address - pages->address_of(0) < pages->memory_.size()) {
    pages->fill(static_cast<std::uint32_t>((address - pages->address_of(0)) / kPageBytes));
  }
  wake(faults_.get(), address);
  const MutexLock lock(mutex_);
  in_service_ = nullptr;
  served_.notify_all();
}

// --- a memory

Result<std::unique_ptr<LatePages>> LatePages::create(std::shared_ptr<FaultService> service,
                                                     std::span<std::byte> memory,
                                                     std::vector<ByteRange> parts) {
  std::unique_ptr<LatePages> pages(new LatePages(std::move(service), memory, std::move(parts)));
  SW_CHECK_OK(pages->service_->hold(*pages));
  return pages;
}

LatePages::~LatePages() { service_->forget(*this); }

std::uintptr_t LatePages::address_of(std::uint32_t page) const {
  return reinterpret_cast<std::uintptr_t>(memory_.data()) + std::uintptr_t{page} * kPageBytes;
}

Result<PageSpan> LatePages::write(std::uint32_t page) {
  const std::size_t at = std::size_t{page} * kPageBytes;
  const auto part = std::ranges::upper_bound(parts_, at, {}, &ByteRange::end);
  if (part != parts_.end() && part->begin <= at) return stage(page);
  return memory_.subspan(at).first<kPageBytes>();
}

Result<PageSpan> LatePages::stage(std::uint32_t page) {
  const auto [room, is_new] = staged_.try_emplace(page, staged_.size());
  if (room->second == rooms_.size())
    rooms_.push_back(std::make_unique<std::array<std::byte, kPageBytes>>());
  return PageSpan(*rooms_[room->second]);
}

Result<void> LatePages::start(PageSupply supply, Damage& damage) {
  supply_ = std::move(supply);
  damage_ = &damage;
  for (const auto& [page, room] : staged_) {
    const int failed = put_page(service_->faults_.get(), address_of(page), rooms_[room]->data());
    if (failed != 0) return errno_error(failed, "writing a restored memory");
  }
  staged_.clear();
  service_->watch(*this);
  return {};
}

void LatePages::fill(std::uint32_t page) {
  Result<void> filled = supply(page);
  staged_.clear();
  if (rooms_.size() > kRoomsKept) rooms_.resize(kRoomsKept);
  if (filled.ok()) return;
  // Whoever touched it has to go on, to where it can be ended.
  damage_->note(filled.error());
  put_zeros(service_->faults_.get(), address_of(page));
  wake(service_->faults_.get(), address_of(page));
  damage_->end_call();
}

/// Nothing may go up from here: it is a thread of ours.
Result<void> LatePages::supply(std::uint32_t page) try {
  SW_CHECK_OK(supply_(page, *this));
  return put_staged(page);
} catch (const std::exception& problem) {
  return Error{ErrorCode::kInternal, std::string("loading a page: ") + problem.what(), 0};
}

Result<void> LatePages::put_staged(std::uint32_t needed) {
  const auto found = staged_.find(needed);
  if (found == staged_.end()) return Error{ErrorCode::kInternal, "a page was not supplied", 0};
  for (const auto& [page, room] : staged_) {
    const int failed = put_page(service_->faults_.get(), address_of(page), rooms_[room]->data());
    // The others can be asked for again.
    if (failed != 0 && page == needed) return errno_error(failed, "writing a restored memory");
  }
  return {};
}

}  // namespace sw::wasm
