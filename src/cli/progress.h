// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "base/thread_safety.h"
#include "cli/streams.h"

namespace sw::cli {

/// Shows the steps of a bake on stderr: a bar that moves by the time a step is expected to take on
/// a terminal, a line per step elsewhere. Thread-safe.
class ProgressDisplay {
 public:
  /// `streams` outlives it.
  explicit ProgressDisplay(const Streams& streams);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void begin_step(std::string_view step, std::chrono::seconds expected);

  /// What the bar's line says; `elapsed` past what was expected stays short of full.
  static std::string bar_line(std::string_view step, std::chrono::duration<double> elapsed,
                              std::chrono::seconds expected);

 private:
  void draw_until_end();

  const Streams& streams_;
  const bool is_terminal_;
  Mutex mutex_;
  CondVar changed_;
  std::string step_ SW_GUARDED_BY(mutex_);
  std::chrono::seconds expected_ SW_GUARDED_BY(mutex_){};
  std::chrono::steady_clock::time_point begun_ SW_GUARDED_BY(mutex_);
  bool ending_ SW_GUARDED_BY(mutex_) = false;
  // Only on a terminal, from the first step on.
  std::thread drawer_ SW_GUARDED_BY(mutex_);
};

}  // namespace sw::cli
