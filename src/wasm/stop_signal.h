// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a run is stopped without a check in its code: the guest's memory is made inaccessible, and its next
// load or store faults. Wasmtime turns a fault in guest code into a trap. But host code (a host function,
// Wasmtime's memory.copy) may touch the memory at that moment, and a fault there would end the process. So a
// handler of ours sees each fault first: one in guest code is passed on, one in host code makes the memory
// accessible again and goes on, and whoever wants the run to stop tries again. Private to this room.

#include <cstdint>

namespace sw::wasm {

class Slot;

/// What the calling thread runs now: a fault is ours only inside it.
struct RunningGuest {
  Slot* slot = nullptr;
  std::uintptr_t code_begin = 0;
  std::uintptr_t code_end = 0;
};

/// Sets what runs on the calling thread and returns what ran before (guests nest through host functions).
RunningGuest exchange_running_guest(const RunningGuest& guest);

/// Installs the handler before whatever handles SIGSEGV now. Once per process, as signal dispositions are.
void install_stop_signal_handler();

}  // namespace sw::wasm
