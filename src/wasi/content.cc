// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/content.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "sandbox_workers/base/unique_fd.h"

namespace sw::wasi {
namespace {

struct Mapping {
  Mapping(void* start, std::size_t bytes) : address(start), size(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(address, size); }
  void* address;
  std::size_t size;
};

/// Runs `grow`, which allocates. Guests reach this, so an allocation that fails is an answer, not
/// an end.
template <class F>
Errno allocating(F grow) {
  try {
    grow();
    return Errno::kSuccess;
  } catch (const std::bad_alloc&) {
    return Errno::kNomem;
  } catch (const std::length_error&) {
    return Errno::kFbig;
  }
}

}  // namespace

SharedBytes SharedBytes::own(Bytes bytes) {
  auto owner = std::make_shared<const Bytes>(std::move(bytes));
  const BytesView view = *owner;
  return {std::move(owner), view};
}

Result<SharedBytes> map_file(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "open " + path.string());
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "stat " + path.string());
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::kInvalidArgument, path.string() + ": not a file", 0};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return SharedBytes::own({});
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return errno_error(errno, "map " + path.string());
  return SharedBytes{std::make_shared<Mapping>(address, size),
                     {static_cast<const std::byte*>(address), size}};
}

ErrnoOr<BytesView> LazyBytes::get() {
  std::call_once(once_, [this] {
    auto made = make_();
    make_ = nullptr;
    if (!made.ok() || made->size() != size_) return;
    bytes_ = *std::move(made);
    good_ = true;
  });
  if (!good_) return Errno::kIo;
  return BytesView(bytes_);
}

ErrnoOr<BytesView> FileContent::view() const {
  if (lazy_) return lazy_->get();
  return own_ ? BytesView(*own_) : borrowed_.bytes;
}

ErrnoOr<std::size_t> FileContent::read(std::uint64_t offset, std::span<std::byte> to) const {
  if (offset >= size() || to.empty()) return std::size_t{0};
  SW_WASI_TRY(const BytesView from, view());
  const std::size_t count = std::min(to.size(), from.size() - static_cast<std::size_t>(offset));
  std::memcpy(to.data(), from.data() + offset, count);
  return count;
}

Errno FileContent::make_own(std::uint64_t keep) {
  if (own_ && own_.use_count() == 1) return Errno::kSuccess;
  SW_WASI_TRY(const BytesView from, view());
  const auto kept =
      from.first(static_cast<std::size_t>(std::min<std::uint64_t>(keep, from.size())));
  std::shared_ptr<Bytes> copy;
  SW_WASI_CHECK(allocating([&] { copy = std::make_shared<Bytes>(kept.begin(), kept.end()); }));
  own_ = std::move(copy);
  borrowed_ = {};
  lazy_ = nullptr;
  return Errno::kSuccess;
}

Errno FileContent::write(std::uint64_t offset, BytesView bytes) {
  if (bytes.empty()) return Errno::kSuccess;
  SW_WASI_CHECK(make_own(UINT64_MAX));
  const auto begin = static_cast<std::size_t>(offset);
  const std::size_t end = begin + bytes.size();
  // Memory first. It doubles, so that a file written a little at a time is not copied at every
  // write.
  SW_WASI_CHECK(allocating([&] {
    if (end > own_->capacity())
      own_->reserve(std::max(end, std::min(2 * own_->capacity(), own_->max_size())));
  }));
  ++version_;
  if (begin > own_->size()) own_->resize(begin);
  const std::size_t overlap = std::min(bytes.size(), own_->size() - begin);
  if (overlap != 0) std::memcpy(own_->data() + begin, bytes.data(), overlap);
  own_->insert(own_->end(), bytes.begin() + static_cast<std::ptrdiff_t>(overlap), bytes.end());
  return Errno::kSuccess;
}

Errno FileContent::resize(std::uint64_t size) {
  if (size == this->size()) return Errno::kSuccess;
  SW_WASI_CHECK(make_own(size));
  ++version_;
  return allocating([&] {
    own_->resize(static_cast<std::size_t>(size));
    if (own_->capacity() > 65536 && own_->size() < own_->capacity() / 4) own_->shrink_to_fit();
  });
}

Errno FileContent::reserve(std::uint64_t size) {
  SW_WASI_CHECK(make_own(UINT64_MAX));
  return allocating([&] { own_->reserve(static_cast<std::size_t>(size)); });
}

void FileContent::borrow(SharedBytes bytes) {
  ++version_;
  own_ = nullptr;
  lazy_ = nullptr;
  borrowed_ = std::move(bytes);
}

void FileContent::borrow(std::shared_ptr<LazyBytes> lazy) {
  ++version_;
  own_ = nullptr;
  borrowed_ = {};
  lazy_ = std::move(lazy);
}

void FileContent::adopt(std::shared_ptr<Bytes> bytes) {
  ++version_;
  borrowed_ = {};
  lazy_ = nullptr;
  own_ = std::move(bytes);
}

bool FileContent::borrows(BytesView bytes) const {
  return borrowed_.owner && borrowed_.bytes.data() == bytes.data() &&
         borrowed_.bytes.size() == bytes.size();
}

ErrnoOr<SharedBytes> FileContent::share() const {
  if (own_) return SharedBytes{own_, *own_};
  if (!lazy_) return borrowed_;
  SW_WASI_TRY(const BytesView bytes, lazy_->get());
  return SharedBytes{lazy_, bytes};
}

}  // namespace sw::wasi
