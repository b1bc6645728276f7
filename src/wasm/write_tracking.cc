// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasm/write_tracking.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sandbox_workers/base/pages.h"

namespace sw::wasm {

namespace {

// A page that is protected costs a fault when it is next written, about as much as looking at two
// pages to see that they did not change. A run mostly writes what the run before it wrote. So pages
// are protected only after looks that cost several times what the faults will: runs that write the
// same pages again and again hardly ever fault, and pages that are written no more are soon left
// alone.
constexpr std::size_t kLooksPerFault = 16;
constexpr std::size_t kLooksMin = 1024;

std::size_t pages_in(const std::vector<ByteRange>& ranges) {
  std::size_t pages = 0;
  for (const ByteRange& range : ranges) pages += (range.end - range.begin) / kPageBytes;
  return pages;
}

}  // namespace

UniqueFd open_userfaults(std::uint64_t features) {
  UniqueFd faults(
      static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = features;
  if (!faults || ::ioctl(faults.get(), UFFDIO_API, &api) == 0) return faults;
  return UniqueFd();
}

bool register_memory(int faults, const void* begin, std::size_t bytes, std::uint64_t mode) {
  uffdio_register range = {};
  range.range = {.start = reinterpret_cast<std::uint64_t>(begin), .len = bytes};
  range.mode = mode;
  return ::ioctl(faults, UFFDIO_REGISTER, &range) == 0;
}

void WriteTracking::follow(const std::byte* begin, std::size_t bytes) {
  // If it fails, scans say so.
  if (faults_) (void)register_memory(faults_.get(), begin, bytes, UFFDIO_REGISTER_MODE_WP);
}

bool WriteTracking::is_due(std::size_t pages) {
  if (!pages_of_a_run_) pages_of_a_run_ = pages;
  pages_named_ += pages;
  return pages_named_ > kLooksMin + kLooksPerFault * *pages_of_a_run_;
}

Result<void> WriteTracking::take_changed(DirtyPageScanner& scanner, BytesView memory,
                                         BytesView image, std::vector<ByteRange>& ranges) {
  if (protected_ && !lost_) lost_ = !scanner.scan_written(memory, ranges).ok();
  if (!protected_ || lost_) SW_CHECK_OK(scanner.scan(memory, image, ranges));
  if (lost_ || !is_due(pages_in(ranges))) return {};
  protected_ = true;
  lost_ = !scanner.protect(memory).ok();
  pages_of_a_run_.reset();
  pages_named_ = 0;
  return {};
}

Result<void> WriteTracking::start_over(BytesView memory) {
  if (protected_) {
    // That also removes the marks of pages of the image that the kernel dropped, which a scan would
    // take for pages in swap.
    uffdio_writeprotect none = {};
    none.range = {.start = reinterpret_cast<std::uint64_t>(memory.data()), .len = memory.size()};
    while (::ioctl(faults_.get(), UFFDIO_WRITEPROTECT, &none) != 0) {
      if (errno != EAGAIN) return errno_error(errno, "cannot make a linear memory writable");
    }
  }
  lost_ = false;
  protected_ = false;
  pages_of_a_run_ = 0;
  pages_named_ = 0;
  return {};
}

}  // namespace sw::wasm
