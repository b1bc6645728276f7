// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/output_gate.h"

#include <utility>

namespace sw::object {

void OutputGate::release(Result<void> outcome) {
  ++ended_;
  if (!outcome.ok() && !broken_) broken_ = std::move(outcome).error();
  while (!waiting_.empty() && waiting_.front().until <= ended_) {
    // Taken out first: what it calls may come back to this gate.
    Waiting waiting = std::move(waiting_.front());
    waiting_.pop_front();
    waiting.leave(state());
  }
}

void OutputGate::when_open(std::function<void(Result<void>)> leave) {
  if (settled()) {
    leave(state());
  } else {
    waiting_.push_back({begun_, std::move(leave)});
  }
}

}  // namespace sw::object
