// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "testing/progress.h"

#include <fmt/format.h>

#include <utility>

namespace sw::testing {

namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

bool Progress::begin_check(std::string_view name) {
  const MutexLock lock(mutex_);
  check_ = name;
  return !given_up_;
}

void Progress::end_check(bool skipped, std::optional<Error> violation) {
  const MutexLock lock(mutex_);
  reports_.push_back({check_, skipped, std::move(violation)});
  changed_.notify_all();
}

void Progress::begin_run(std::chrono::nanoseconds wall_max) {
  const MutexLock lock(mutex_);
  wall_max_ = wall_max;
  overdue_at_ = Clock::now() + wall_max + patience_;
  changed_.notify_all();
}

void Progress::end_run() {
  const MutexLock lock(mutex_);
  wall_max_.reset();
}

void Progress::finish(Result<void> result) {
  const MutexLock lock(mutex_);
  result_ = std::move(result);
  changed_.notify_all();
}

Result<void> Progress::wait(const std::function<void(const CheckReport&)>& on_check) {
  MutexLock lock(mutex_);
  for (;;) {
    deliver(on_check);
    if (result_) return *std::move(result_);
    if (!wall_max_) {
      changed_.wait(lock);
    } else if (Clock::now() < overdue_at_) {
      changed_.wait_until(lock, overdue_at_);
    } else {
      Error violation = give_up();
      deliver(on_check);
      return violation;
    }
  }
}

void Progress::deliver(const std::function<void(const CheckReport&)>& on_check) {
  while (!reports_.empty()) {
    const std::vector<Report> reports = std::exchange(reports_, {});
    const Unlocked unlocked(mutex_);
    for (const Report& report : reports) {
      if (!on_check) break;
      on_check({.name = report.name,
                .skipped = report.skipped,
                .violation = report.violation ? &*report.violation : nullptr});
    }
  }
}

Error Progress::give_up() {
  given_up_ = true;
  Error violation{ErrorCode::kInternal,
                  fmt::format("{}: a run that may take {} s has not ended {} s later", check_,
                              seconds(*wall_max_), seconds(patience_)),
                  0};
  reports_.push_back({check_, false, violation});
  return violation;
}

bool Progress::given_up() const {
  const MutexLock lock(mutex_);
  return given_up_;
}

}  // namespace sw::testing
