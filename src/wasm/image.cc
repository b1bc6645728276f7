// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasm/image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace sw::wasm {

namespace {

bool is_zero(BytesView bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

/// End of the run of pages starting at `begin` that are all zero, or all not.
std::size_t run_end(BytesView memory, std::size_t begin, bool zero) {
  std::size_t end = begin;
  while (end < memory.size() &&
         is_zero(memory.subspan(end, std::min(kPageBytes, memory.size() - end))) == zero) {
    end += kPageBytes;
  }
  return std::min(end, memory.size());
}

}  // namespace

Result<void> Image::write(const std::filesystem::path& path, BytesView memory) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const auto failure = [&] {
    return errno_error(errno, fmt::format("cannot write the image {}", path.native()));
  };
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(memory.size())) != 0) return failure();
  for (std::size_t at = 0; at < memory.size();) {
    const std::size_t data = run_end(memory, at, true);
    at = run_end(memory, data, false);
    for (std::size_t put = data; put < at;) {
      const ssize_t done =
          ::pwrite(fd.get(), memory.data() + put, at - put, static_cast<off_t>(put));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return failure();
      put += static_cast<std::size_t>(done);
    }
  }
  if (::fsync(fd.get()) != 0) return failure();
  return {};
}

Result<std::shared_ptr<const Image>> Image::open(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return errno_error(errno, fmt::format("cannot open the image {}", path.native()));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0 || size % kWasmPageBytes != 0) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the image {} has an invalid size", path.native()), 0};
  }
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (bytes == MAP_FAILED)
    return errno_error(errno, fmt::format("cannot map the image {}", path.native()));
  return std::shared_ptr<const Image>(
      new Image(std::move(fd), BytesView(static_cast<const std::byte*>(bytes), size)));
}

Image::~Image() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace sw::wasm
