// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a run is stopped without a check in its code: the guest's memory is made inaccessible, and
// its next load or store faults. Wasmtime's handler turns the fault into a trap, but only at
// instructions that it knows may trap. Others touch the memory as well, and a fault there would end
// the process: host code (a host function, Wasmtime's own memory.copy), and guest code after a
// check of its bounds (a memory.copy of a small constant length). Wasmtime hands such faults to the
// handler that was there before its own, which is ours: it opens the memory around that address,
// and the instruction goes on. The guest traps at its next access elsewhere; should it stay within
// what was opened, whoever wants the run to stop asks again. Private to this room.

namespace sw::wasm {

class Slot;

/// Sets whose memory the guest on the calling thread has, and returns whose it was before (guests
/// nest through host functions). A fault is ours only inside it.
Slot* exchange_running_slot(Slot* slot);

/// To be called before Wasmtime installs its handler, which it does with its first engine. Once per
/// process, as signal dispositions are.
void install_stop_signal_handler();

}  // namespace sw::wasm
