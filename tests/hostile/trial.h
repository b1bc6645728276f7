// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "hostile/plan.h"
#include "hostile/verdict.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/engine/machine.h"

namespace sw::hostile {

/// What came of the plans so far.
struct Totals {
  std::map<std::string, std::uint64_t, std::less<>> endings;
  std::chrono::nanoseconds cpu_longest{};
  std::uint64_t memory_most = 0;  ///< beyond what the process had
};

/// Carries out plans, one after another, in one process. Used on a guest's thread.
class Trial {
 public:
  /// `command` is the path of sandbox-workers.
  static Result<std::unique_ptr<Trial>> create(const std::string& language,
                                               std::filesystem::path command);

  Result<void> on_guest_thread(const std::function<void()>& body) {
    return engine_->on_guest_thread(body);
  }
  /// The memory that a run of the language begins with.
  Result<std::uint64_t> image_bytes();

  Complaints carry_out(const Plan& plan);

  const Totals& totals() const { return totals_; }

 private:
  Trial(std::string language, std::filesystem::path command,
        std::unique_ptr<engine::Machine> machine, std::shared_ptr<engine::Engine> engine,
        TemporaryDirectory folder);

  Complaints run_fresh(const Plan& plan);
  Complaints run_in_context(const Plan& plan);
  Complaints run_by_command(const Plan& plan);
  Complaints judged(const Plan& plan, const Program& program, const Outcome& outcome,
                    const RunOutput& sink);
  Complaints look_for_traces();

  std::string language_;
  std::filesystem::path command_;
  std::unique_ptr<engine::Machine> machine_;
  std::shared_ptr<engine::Engine> engine_;
  TemporaryDirectory folder_;
  Totals totals_;
};

}  // namespace sw::hostile
