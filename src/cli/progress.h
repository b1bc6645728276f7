// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace sw::cli {

/// Shows the steps of a bake on stderr: a bar that moves by the time a step is expected to take on
/// a terminal, a line per step elsewhere. Thread-safe.
class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void begin_step(std::string_view step, std::chrono::seconds expected);

  /// What the bar's line says; `elapsed` past what was expected stays short of full.
  static std::string bar_line(std::string_view step, std::chrono::duration<double> elapsed,
                              std::chrono::seconds expected);

 private:
  void draw_until_end();

  const bool is_terminal_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::string step_;
  std::chrono::seconds expected_{};
  std::chrono::steady_clock::time_point begun_;
  bool ending_ = false;
  std::thread drawer_;  // only on a terminal, from the first step on
};

}  // namespace sw::cli
