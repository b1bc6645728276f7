// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace sw::cli {

namespace {

constexpr int kBarWidth = 24;
constexpr std::string_view kEraseLine = "\r\033[K";

}  // namespace

ProgressDisplay::ProgressDisplay(const Streams& streams)
    : streams_(streams), is_terminal_(::isatty(streams.fd(wasi::Stream::kStderr)) == 1) {}

ProgressDisplay::~ProgressDisplay() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (!drawer_.joinable()) return;
  drawer_.join();
  streams_.tell(kEraseLine);
}

void ProgressDisplay::begin_step(std::string_view step, std::chrono::seconds expected) {
  const MutexLock lock(mutex_);
  step_ = step;
  expected_ = expected;
  begun_ = std::chrono::steady_clock::now();
  if (!is_terminal_) {
    // Every small download would say so.
    if (expected.count() > 5)
      streams_.complain(fmt::format("{} (about {} s)", step, expected.count()));
    else streams_.complain(step);
    return;
  }
  if (!drawer_.joinable()) drawer_ = std::thread([this] { draw_until_end(); });
  changed_.notify_one();
}

std::string ProgressDisplay::bar_line(std::string_view step, std::chrono::duration<double> elapsed,
                                      std::chrono::seconds expected) {
  if (expected.count() == 0) return fmt::format("{} … {:.0f} s", step, elapsed.count());
  const double part = std::min(elapsed / std::chrono::duration<double>(expected), 0.99);
  const auto full = static_cast<std::size_t>(part * kBarWidth);
  return fmt::format("[{}{}] {} … {:.0f} of about {} s", std::string(full, '#'),
                     std::string(kBarWidth - full, '.'), step, elapsed.count(), expected.count());
}

void ProgressDisplay::draw_until_end() {
  MutexLock lock(mutex_);
  while (!ending_) {
    const auto elapsed = std::chrono::steady_clock::now() - begun_;
    streams_.tell(fmt::format("{}{}", kEraseLine, bar_line(step_, elapsed, expected_)));
    changed_.wait_for(lock, std::chrono::milliseconds(200));
  }
}

}  // namespace sw::cli
