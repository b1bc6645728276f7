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
  const std::lock_guard lock(mutex_);
  check_ = name;
  return !given_up_;
}

void Progress::end_check(bool skipped, std::optional<Error> violation) {
  const std::lock_guard lock(mutex_);
  reports_.push_back({check_, skipped, std::move(violation)});
  changed_.notify_all();
}

void Progress::begin_run(std::chrono::nanoseconds wall_max) {
  const std::lock_guard lock(mutex_);
  wall_max_ = wall_max;
  overdue_at_ = Clock::now() + wall_max + patience_;
  changed_.notify_all();
}

void Progress::end_run() {
  const std::lock_guard lock(mutex_);
  wall_max_.reset();
}

void Progress::finish(Result<void> result) {
  const std::lock_guard lock(mutex_);
  result_ = std::move(result);
  changed_.notify_all();
}

Result<void> Progress::wait(const std::function<void(const CheckReport&)>& on_check) {
  std::unique_lock lock(mutex_);
  for (;;) {
    deliver(lock, on_check);
    if (result_) return *std::move(result_);
    if (!wall_max_) {
      changed_.wait(lock);
    } else if (Clock::now() < overdue_at_) {
      changed_.wait_until(lock, overdue_at_);
    } else {
      Error violation = give_up();
      deliver(lock, on_check);
      return violation;
    }
  }
}

/// Under the mutex, which is let go of while `on_check` runs.
void Progress::deliver(std::unique_lock<std::mutex>& lock,
                       const std::function<void(const CheckReport&)>& on_check) {
  while (!reports_.empty()) {
    const std::vector<Report> reports = std::exchange(reports_, {});
    lock.unlock();
    for (const Report& report : reports) {
      if (!on_check) break;
      on_check({.name = report.name,
                .skipped = report.skipped,
                .violation = report.violation ? &*report.violation : nullptr});
    }
    lock.lock();
  }
}

/// Under the mutex.
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
  const std::lock_guard lock(mutex_);
  return given_up_;
}

}  // namespace sw::testing
