// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/guest_pool.h"
#include "sandbox_workers/engine/run.h"

namespace sw::executor {

/// A run's events on their way to whoever asked for the run; the slot that the guest computes in is
/// told of its waits. What it is made of outlives it.
class SlotEvents final : public RunEvents {
 public:
  SlotEvents(RunEvents& events, GuestPool::Slot& slot) : events_(events), slot_(slot) {}

  wasi::Errno write(wasi::Stream stream, BytesView bytes) override {
    return events_.write(stream, bytes);
  }
  int poll_fd(wasi::Stream stream) const override { return events_.poll_fd(stream); }
  void on_wait() override {
    slot_.on_wait();
    events_.on_wait();
  }
  void on_resume() override {
    slot_.on_resume();
    events_.on_resume();
  }

 private:
  RunEvents& events_;
  GuestPool::Slot& slot_;
};

}  // namespace sw::executor
