// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/wasi.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "wasi/descriptors.h"

namespace sw::wasi {

namespace {

// A pipe that can be written takes this much without waiting (POSIX's smallest PIPE_BUF is 512,
// Linux's is 4096).
constexpr std::size_t kWriteBytesMax = 4096;

}  // namespace

ErrnoOr<std::size_t> BytesInput::read(std::span<std::byte> to) {
  const std::size_t count = std::min(to.size(), bytes_.size() - position_);
  if (count != 0) std::memcpy(to.data(), bytes_.data() + position_, count);
  position_ += count;
  return count;
}

Errno BufferSink::write(Stream stream, BytesView bytes) {
  (stream == Stream::kStdout ? out : err).append(as_text(bytes));
  return Errno::kSuccess;
}

Wasi::Wasi(std::shared_ptr<const Layout> layout, const Clocks& clocks, WasiOptions options)
    : clocks_(clocks),
      options_(std::move(options)),
      files_(std::move(layout), clocks, options_.tmp_limits),
      descriptors_(std::make_unique<DescriptorTable>(WasiLimits{}.open_files_max)) {
  if (options_.keep_preopens) descriptors_->keep_preopens(options_.preopens.size());
}

Wasi::~Wasi() = default;

Result<void> Wasi::begin(RunOptions run) {
  run_ = std::move(run);
  for (const auto* texts : {&run_.args, &run_.env}) {
    for (const std::string& text : *texts) {
      if (text.find('\0') != std::string::npos) {
        return Error{ErrorCode::kInvalidArgument,
                     "an argument or environment entry contains a NUL byte", 0};
      }
    }
  }
  output_bytes_ = 0;
  descriptors_->set_open_max(run_.limits.open_files_max);
  return {};
}

Result<void> Wasi::start_run(RunOptions run) {
  SW_CHECK_OK(begin(std::move(run)));
  descriptors_->close_all();  // before the trees: open files keep them alive
  for (std::size_t i = 0; i < files_.layout().mount_count(); ++i) {
    const bool more = i != 0 && i <= run_.more_mounts.size();
    files_.mount(i, i == 0 ? run_.workspace : more ? run_.more_mounts[i - 1] : nullptr);
  }
  if (const Errno opened = descriptors_->open_standard(files_, options_.preopens);
      opened != Errno::kSuccess) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a preopened directory: {}", errno_text(opened)), 0};
  }
  return {};
}

Result<void> Wasi::continue_run(RunOptions run) {
  SW_CHECK_OK(begin(std::move(run)));
  descriptors_->reopen_streams();
  if (run_.workspace && files_.layout().mount_count() != 0) files_.mount(0, run_.workspace);
  return {};
}

Result<Errno> Wasi::write_output(Stream stream, BytesView bytes) {
  const std::uint64_t max = run_.limits.output_bytes_max;
  const std::uint64_t left = max - std::min(max, output_bytes_);
  output_bytes_ += bytes.size();
  const BytesView passed =
      bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left)));
  if (!passed.empty() && run_.output) {
    SW_TRY(const Errno failed, pass_on(stream, passed));
    if (failed != Errno::kSuccess) return failed;
  }
  if (passed.size() < bytes.size() && run_.limits.output_overflow == OutputOverflow::kEndRun) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("the output exceeded its limit of {} bytes", max), 0};
  }
  return Errno::kSuccess;
}

Result<Errno> Wasi::pass_on(Stream stream, BytesView bytes) {
  const int fd = run_.output->poll_fd(stream);
  if (fd < 0 || run_.cancellation == nullptr) return run_.output->write(stream, bytes);
  // Whoever reads may have stopped reading. A run that waits for them must still end at its limit.
  while (!bytes.empty()) {
    const WaitEnd end = run_.cancellation->wait_until(std::nullopt, fd, WaitTo::kWrite);
    if (end == WaitEnd::kCancelled)
      return Error{ErrorCode::kGuestStopped, "stopped while writing its output", 0};
    // a part may be written already: there is nobody to tell yet
    if (end != WaitEnd::kReady) continue;
    const BytesView part = bytes.first(std::min(bytes.size(), kWriteBytesMax));
    if (const Errno failed = run_.output->write(stream, part); failed != Errno::kSuccess)
      return failed;
    bytes = bytes.subspan(part.size());
  }
  return Errno::kSuccess;
}

std::uint64_t Wasi::monotonic_ns() const {
  return clocks_.monotonic_ns() + static_cast<std::uint64_t>(run_.monotonic_offset_ns);
}

std::uint64_t Wasi::cpu_ns() {
  const std::uint64_t now = clocks_.thread_cpu_ns();
  if (!run_.cpu_start_ns) run_.cpu_start_ns = now;
  return now > *run_.cpu_start_ns ? now - *run_.cpu_start_ns : 0;
}

}  // namespace sw::wasi
