// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sandbox_workers/base/result.h"

namespace sw::wasm {

/// How a run in progress is ended by force: what Instance::stop does.
enum class StopMeans : std::uint8_t {
  /// Guest code carries no checks. Its memory is made inaccessible, so that the next load or store
  /// faults.
  kFault,
  /// Guest code compares a counter at the begin of each function and each turn of a loop, which
  /// makes it 1.2 to 1.45 times slower (docs/adr/0017). Raising the counter ends even a loop that
  /// touches no memory, and needs no signal handler of ours.
  kEpoch,
};

/// Guest code carries no checks that measure it, and by default none that stop it: deadlines are
/// watched from outside.
struct RuntimeOptions {
  /// Bytes of native stack a guest may use before it traps with kGuestStackOverflow. The calling
  /// thread's own stack must be larger by kHostStackReserve; Instance::call refuses otherwise. 128
  /// MiB lets CPython free a list nested 200,000 deep.
  std::size_t stack_bytes_max = std::size_t{128} << 20;
  StopMeans stop_means = StopMeans::kFault;
  /// Whether memories are filled as they are touched (Instance::leave_out_pages), where the kernel
  /// offers it.
  bool late_pages = true;
};

/// Room left below the guest for host functions and signal handlers.
inline constexpr std::size_t kHostStackReserve = std::size_t{8} << 20;

/// Wasmtime's compiler and runtime with one set of options. Shared by all threads; make one per
/// process and set of options.
class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const RuntimeOptions& options() const { return options_; }

  /// Names everything that native code made by this runtime depends on: Wasmtime's version, the
  /// compile settings, the CPU's features. Code compiled under one fingerprint runs under the same
  /// one only.
  std::string fingerprint() const;

  struct State;
  State& state() { return *state_; }

 private:
  explicit Runtime(const RuntimeOptions& options);
  RuntimeOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace sw::wasm
