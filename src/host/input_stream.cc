// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/host/input_stream.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/thread_safety.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw {

struct InputStream::State {
  explicit State(UniqueFd fd) : readable(std::move(fd)) {}

  /// Readable while there are bytes, or the end, to be read.
  void tell() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(readable.get(), &one, sizeof one);
  }
  void tell_no_more() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(readable.get(), &count, sizeof count);
  }

  const UniqueFd readable;
  Mutex mutex;
  std::string bytes SW_GUARDED_BY(mutex);
  std::size_t position SW_GUARDED_BY(mutex) = 0;
  bool closed SW_GUARDED_BY(mutex) = false;
};

InputStream::InputStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
InputStream::~InputStream() = default;

Result<std::shared_ptr<InputStream>> InputStream::create() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return errno_error(errno, "eventfd");
  return std::shared_ptr<InputStream>(new InputStream(std::make_unique<State>(std::move(event))));
}

Result<void> InputStream::write(std::string_view text) {
  const MutexLock lock(state_->mutex);
  if (state_->closed) return Error{ErrorCode::kInvalidArgument, "the input is closed", 0};
  const std::size_t unread = state_->bytes.size() - state_->position;
  if (text.size() > kBytesMax - unread) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("the program has left {} bytes of its input unread", unread), 0};
  }
  if (text.empty()) return {};
  state_->bytes.erase(0, std::exchange(state_->position, 0));
  state_->bytes += text;
  state_->tell();
  return {};
}

void InputStream::close() {
  const MutexLock lock(state_->mutex);
  state_->closed = true;
  state_->tell();
}

wasi::ErrnoOr<std::size_t> InputStream::read(std::span<std::byte> to) {
  const MutexLock lock(state_->mutex);
  const std::size_t unread = state_->bytes.size() - state_->position;
  const std::size_t taken = std::min(to.size(), unread);
  if (taken == 0 && !state_->closed) return wasi::Errno::kAgain;
  std::memcpy(to.data(), state_->bytes.data() + state_->position, taken);
  state_->position += taken;
  if (taken == unread && !state_->closed) state_->tell_no_more();
  return taken;
}

int InputStream::poll_fd() const { return state_->readable.get(); }

std::uint64_t InputStream::ready_bytes() const {
  const MutexLock lock(state_->mutex);
  return state_->bytes.size() - state_->position;
}

}  // namespace sw
