// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the engines of one process share: Wasmtime, the cache of baked images, the watchdog, the
// clocks.

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "sandbox_workers/bake/progress.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/engine.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/wasi/clocks.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::engine {

using bake::no_progress;
using bake::Progress;

class Watchdog;
struct Environment;

struct MachineOptions {  // how a process sets its engines up
  /// Where packages, compiled code and images are kept; created, private to its user. Empty:
  /// $SANDBOX_WORKERS_CACHE, else $XDG_CACHE_HOME/sandbox-workers, else ~/.cache/sandbox-workers.
  std::filesystem::path cache_folder = {};
  /// How runs end at their limits and when they are cancelled. kFault: they are asked first, which
  /// keeps the interpreter, and ended by force after RunLimits::grace. kEpoch: by a trap at once,
  /// whatever the code would catch, and the interpreter is thrown away; the languages are compiled
  /// and baked apart, and run slower.
  wasm::StopMeans stop_means = wasm::StopMeans::kFault;
};

/// Outlives the engines it loaded, and their sessions. Threads: any.
class Machine {
 public:
  /// Errors: kUnavailable, kPermission: the cache folder cannot be used.
  static Result<std::unique_ptr<Machine>> create(const MachineOptions& options = {});
  ~Machine();

  /// An engine for a language that is an embedded Wasm interpreter. Bakes it first if need be
  /// (fetches the package, compiles it, boots it, runs the driver, writes the image), which can
  /// take minutes; a baked one loads in milliseconds. The engine has sessions.
  Result<std::shared_ptr<Engine>> load(std::unique_ptr<Language> language,
                                       const Progress& progress = no_progress);

  const wasi::Clocks& clocks() const;
  Watchdog& watchdog();
  wasm::Runtime& wasm();

  Environment environment();

  /// Runs `body` on a thread with a guest's stack, and waits for it.
  Result<void> on_guest_thread(const std::function<void()>& body);

 private:
  struct Parts;
  explicit Machine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sw::engine
