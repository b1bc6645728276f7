// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// Runs what a cell set going until nothing is left: promise jobs, process.nextTick, timers. Sleeps
// in the host.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/javascript/guest.h"

namespace sw::engine::javascript {

namespace {

// Jobs between two looks at the stop flag; each job may be short, and their number endless.
constexpr int kJobsPerLook = 64;
// Longer than any timer's delay; the loop looks again after it.
constexpr double kSleepMsMax = 4e9;

}  // namespace

void JavaScriptGuest::arm(std::uint32_t bits) {
  set_state_word(kArmedWord, state_word(kArmedWord) | bits);
}

bool JavaScriptGuest::disarm(std::uint32_t bit) {
  const std::uint32_t armed = state_word(kArmedWord);
  if ((armed & bit) == 0) return false;
  set_state_word(kArmedWord, armed & ~bit);
  return true;
}

bool JavaScriptGuest::must_stop() const {
  const Cancellation* const cancellation = wasi_cancellation();
  return stop_.load(std::memory_order_acquire) ||
         (cancellation != nullptr && cancellation->cancelled());
}

Result<JavaScriptGuest::Progress> JavaScriptGuest::drain() {
  for (int count = 1;; ++count) {
    if (count % kJobsPerLook == 0 && must_stop()) return Progress(Failure{});
    if (disarm(kArmTicks)) {
      SW_TRY(const JsValue value, call(Entry::kRunTicks, {}));
      if (value == JsValue::exception()) {
        SW_TRY(Progress progress, uncaught_exception());
        if (progress) return progress;
        continue;
      }
    }
    SW_TRY(const bool pending, js_.is_job_pending());
    if (!pending) {
      if ((state_word(kArmedWord) & kArmTicks) != 0) continue;
      break;
    }
    SW_TRY(const bool ran, js_.run_job());
    if (ran) continue;
    SW_TRY(Progress progress, uncaught_exception());
    if (progress) return progress;
  }
  return unhandled_rejection();
}

Result<JavaScriptGuest::Progress> JavaScriptGuest::run_loop() {
  for (;;) {
    SW_TRY(Progress progress, drain());
    if (progress) return progress;
    SW_TRY(const auto state, js_.promise_state(main_));
    if (state == QuickJs::PromiseState::kRejected && !main_rejection_handled_) {
      SW_TRY(const JsValue reason, js_.promise_result(main_));
      main_rejection_handled_ = true;
      SW_TRY(Progress failed,
             uncaught(Owned(js_, reason), kUncaughtException, JsValue::undefined()));
      if (failed) return failed;
    }
    if ((state_word(kArmedWord) & kArmTimers) == 0) return Progress();
    SW_TRY(const JsValue wait, call(Entry::kRunTimers, {}));
    if (wait == JsValue::exception()) {
      SW_TRY(Progress failed, uncaught_exception());
      if (failed) return failed;
      continue;
    }
    const double ms = wait.as_number();
    if (ms < 0) {
      disarm(kArmTimers);
    } else if (ms > 0) {
      sleep_for(ms);
    }
    if (must_stop()) return Progress(Failure{});
  }
}

void JavaScriptGuest::sleep_for(double milliseconds) {
  const auto ns = static_cast<std::uint64_t>(std::min(milliseconds, kSleepMsMax) * 1e6);
  if (Cancellation* const cancellation = wasi_cancellation()) {
    cancellation->wait_until(wasi().clocks().monotonic_ns() + ns);
  } else {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  }
}

Result<void> JavaScriptGuest::note_rejection(std::uint32_t promise, std::uint32_t reason,
                                             bool handled) {
  const JsValue which = js_.unbox(promise);
  if (!handled && rejections_.size() < kRejectionsMax) {
    rejections_.push_back({.promise = which, .promise_box = promise, .reason_box = reason});
    rejection_of_[which.bits] = std::prev(rejections_.end());
    return {};
  }
  SW_CHECK_OK(js_.free_box(promise));
  SW_CHECK_OK(js_.free_box(reason));
  if (!handled) {
    ++rejections_uncounted_;
    return {};
  }
  const auto known = rejection_of_.find(which.bits);
  if (known == rejection_of_.end()) {
    if (rejections_uncounted_ > 0) --rejections_uncounted_;
    return {};
  }
  const Rejection found = *known->second;
  rejections_.erase(known->second);
  rejection_of_.erase(known);
  SW_CHECK_OK(js_.free_box(found.promise_box));
  return js_.free_box(found.reason_box);
}

Result<JavaScriptGuest::Progress> JavaScriptGuest::unhandled_rejection() {
  while (!rejections_.empty()) {
    const Rejection first = rejections_.front();
    rejections_.pop_front();
    rejection_of_.erase(first.promise.bits);
    // The cell's own promise is looked at by the loop.
    if (first.promise == main_) {
      SW_CHECK_OK(js_.free_box(first.promise_box));
      SW_CHECK_OK(js_.free_box(first.reason_box));
      continue;
    }
    SW_TRY(const JsValue reason, js_.duplicate(js_.unbox(first.reason_box)));
    SW_TRY(Progress progress, uncaught(Owned(js_, reason), kUnhandledRejection, first.promise));
    SW_CHECK_OK(js_.free_box(first.promise_box));
    SW_CHECK_OK(js_.free_box(first.reason_box));
    if (progress) return progress;
  }
  return uncounted_rejections();
}

Result<JavaScriptGuest::Progress> JavaScriptGuest::uncounted_rejections() {
  const std::size_t count = std::exchange(rejections_uncounted_, 0);
  if (count == 0) return Progress();
  SW_TRY(const JsValue message,
         js_.new_string(
             fmt::format("{} promises beyond the first {} were rejected, and nothing handled them",
                         count, kRejectionsMax)));
  SW_TRY(const std::uint64_t error,
         instance().call(js_.exports().new_error, js_.anchors().context));
  Owned reason(js_, JsValue{error});
  SW_CHECK_OK(js_.set(reason.get(), "message", message));
  return Progress(Failure{std::move(reason)});
}

Result<void> JavaScriptGuest::forget_rejections() {
  rejection_of_.clear();
  rejections_uncounted_ = 0;
  for (const Rejection& rejection : std::exchange(rejections_, {})) {
    SW_CHECK_OK(js_.free_box(rejection.promise_box));
    SW_CHECK_OK(js_.free_box(rejection.reason_box));
  }
  return {};
}

Result<JavaScriptGuest::Progress> JavaScriptGuest::uncaught_exception() {
  SW_TRY(const JsValue thrown, js_.take_exception());
  Owned reason(js_, thrown);
  // Stops, exits and lack of memory are for the host alone.
  SW_TRY(const std::int32_t uncatchable,
         instance().call(js_.exports().is_uncatchable, thrown.bits));
  if (uncatchable != 0) return Progress(Failure{std::move(reason)});
  return uncaught(std::move(reason), kUncaughtException, JsValue::undefined());
}

Result<JavaScriptGuest::Progress> JavaScriptGuest::uncaught(Owned reason, std::int32_t kind,
                                                            JsValue promise) {
  if ((state_word(kArmedWord) & kArmUncaught) != 0) {
    const std::array arguments = {JsValue::of(JsValue::kInt, static_cast<std::uint32_t>(kind)),
                                  reason.get(), promise};
    SW_TRY(const JsValue handled, call(Entry::kOfferUncaught, arguments));
    if (handled == JsValue::exception()) {
      SW_TRY(const JsValue second, js_.take_exception());
      return Progress(Failure{Owned(js_, second)});
    }
    if (handled == JsValue::boolean(true)) return Progress();
  }
  return Progress(Failure{std::move(reason)});
}

}  // namespace sw::engine::javascript
