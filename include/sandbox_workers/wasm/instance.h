// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A running module: one store, one instance, one linear memory in a slot.
//
// Life of an instance that serves many runs (design: keep the instance, put its memory back):
//   make -> call … -> reset -> call … -> reset …
// `reset` succeeds only if nothing but memory can have changed; otherwise the instance must be
// dropped and a new one made, which costs about three times as much.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/byte_range.h"
#include "sandbox_workers/base/pages.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/image.h"
#include "sandbox_workers/wasm/linker.h"
#include "sandbox_workers/wasm/memory_view.h"
#include "sandbox_workers/wasm/module.h"

namespace sw::wasm {

class Slot;

/// Writes a page that is missing into `memory`, and others that cost little more: some hundred.
using PageSupply = std::function<Result<void>(std::uint32_t page, PageSink& memory)>;

/// A guest function found by name and checked against a signature. Valid as long as its instance.
template <class Signature>
class Function;
template <class R, class... A>
class Function<R(A...)> {
 public:
  Function() = default;

 private:
  friend class Instance;
  explicit Function(std::size_t index) : index_(index) {}
  std::size_t index_ = SIZE_MAX;
};

struct InstanceLimits {  // what a guest may take
  /// The linear memory cannot grow past this many bytes: memory.grow then returns -1 to the guest.
  std::uint64_t memory_bytes_max = std::uint64_t{512} << 20;
};

/// A module with its imports resolved, its image (if any) and the slots its instances used before.
/// Thread-safe. Instances keep what they need alive.
class InstancePre {
 public:
  /// Errors: kInvalidArgument naming an import that the linker lacks.
  /// `image` null: instances start from the module's own data. `facts` come from prepare_module.
  static Result<std::shared_ptr<InstancePre>> create(Runtime& runtime, const Linker& linker,
                                                     const Module& module, const StateFacts& facts,
                                                     std::shared_ptr<const Image> image);
  ~InstancePre();

  /// `host` must outlive the instance.
  Result<std::unique_ptr<Instance>> instantiate(HostState& host, const InstanceLimits& limits);

  struct State;

 private:
  explicit InstancePre(std::shared_ptr<State> state);
  // shared with the instances, which outlive this handle if they must
  std::shared_ptr<State> state_;
};

/// Why an instance could not be kept.
enum class KeepVerdict : std::uint8_t {
  kKept,
  kNotKeepable,      ///< the module writes tables, drops segments, … (StateFacts)
  kEndedAbnormally,  ///< a call trapped, exited, was stopped
  kMemoryGrew,
  kGlobalChanged,
  kHostFailed,  ///< the scan or the put-back failed
};

struct ResetStats {  // what came of `reset`
  KeepVerdict verdict = KeepVerdict::kNotKeepable;
  std::size_t pages_put_back = 0;
};

/// Threads: one at a time, except `stop` and `while_running`.
class Instance {
 public:
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  HostState& host() const;
  MemoryView memory() const;
  /// What the memory holds at rest; empty without an image.
  BytesView image() const;
  std::uint64_t memory_bytes_max() const;
  /// Takes effect at the next growth; a memory that is already larger stays.
  void set_memory_bytes_max(std::uint64_t bytes);
  /// Grows the memory to `bytes` (rounded up to Wasm pages) the way memory.grow does.
  Result<void> grow_memory_to(std::uint64_t bytes);
  /// Empties parts of the memory (ascending, not touching), to be filled page by page as they are
  /// touched; nothing of them may be before `supply_pages`. Called again, it replaces the parts.
  /// Errors: kUnavailable where the kernel does not offer that, and the memory is as before. Any
  /// other: the instance must be thrown away.
  Result<void> leave_out_pages(std::span<const ByteRange> parts);
  /// Where to write a page of a memory that is being restored, of a part that is left out or not.
  Result<PageSpan> room_for(std::uint32_t page);
  /// From here on the memory can be used. `supply` is called on a thread of the runtime while
  /// someone waits for the page: it must not wait for what a thread may hold that touches guest
  /// memory. When it fails the memory is damaged, of which `on_damage` is told there, and must
  /// not wait either. A call in progress is ended and returns the error.
  Result<void> supply_pages(PageSupply supply, std::function<void()> on_damage);
  /// The error of a page that could not be supplied. The instance must then be thrown away, and
  /// nothing it said since counts.
  std::optional<Error> damage() const;

  /// Counts host memory taken for the guest's data as the guest's, while the innermost
  /// HostMemoryScope lasts. The first MiB is free: a full guest can still say so. Errors:
  /// kLimitExceeded, which counts as a refused growth.
  Result<void> charge(std::uint64_t bytes);
  /// How often growth was refused because of memory_bytes_max since the last reset.
  std::uint64_t refused_growths() const;

  bool has_export(std::string_view name);

  /// Errors: kNotFound, or kInvalidArgument when the signature differs.
  template <class F>
  Result<Function<F>> function(std::string_view name) {
    return find_function(name, static_cast<F*>(nullptr));
  }

  /// Calls into the guest; also from inside a host function. After any error the instance is
  /// poisoned: it must be thrown away.
  /// Errors: kGuestExit, kGuestStopped, kGuestTrap, kGuestStackOverflow, or what a host function
  /// returned.
  template <class R, class... A>
  Result<R> call(const Function<R(A...)>& function, std::type_identity_t<A>... arguments) {
    RawValue values[sizeof...(A) + 1] = {};
    std::size_t i = 0;
    (detail::to_raw<A>(values[i++], arguments), ...);
    SW_CHECK_OK(call_raw(function.index_, values, sizeof...(A) + 1));
    if constexpr (!std::is_void_v<R>) return detail::from_raw<R>(values[0]);
    else return Result<void>();
  }

  /// Value of a mutable or immutable exported i32 global.
  Result<std::int32_t> global_i32(std::string_view name);

  /// Ends the run in progress from another thread: the guest traps, by what
  /// RuntimeOptions::stop_means says, and the call returns kGuestStopped. A host function in
  /// progress goes on to its end; call `stop` again until the run is over (it costs one system
  /// call, or an addition). Does nothing when no call is in progress. The instance must then be
  /// thrown away.
  void stop();
  StopMeans stop_means() const;

  /// If a call is in progress, runs `action` with the memory while the call cannot end (the guest
  /// itself goes on running) and returns true. For soft stops that set a flag in guest memory.
  bool while_running(const std::function<void(MemoryView)>& action);

  /// True once a call ended abnormally: nothing may be called again.
  bool poisoned() const { return poisoned_; }

  /// Pages that may have changed since the last call; the first time since the memory was the
  /// image's: that may differ from the image. May name more.
  /// Errors: the next call names what this one would have.
  Result<void> take_changed_pages(std::vector<ByteRange>& ranges);

  /// Puts memory back to the image; see the top of this file.
  ResetStats reset();

  /// Empty when the mutable globals have their initial values and the rules for keeping hold; else
  /// the reason. (Bake uses it to prove that an image without globals is the whole state.)
  std::string reason_not_at_rest() const;

  struct State;
  /// Ends a host function (for the Linker): null to go on, or a trap of Wasmtime's when it failed
  /// or the run is to stop.
  void* trap_for(Result<void> result);
  /// For the Linker: what the guest says is worth nothing any more.
  bool is_damaged() const;

 private:
  friend class InstancePre;
  friend class HostMemoryScope;
  explicit Instance(std::unique_ptr<State> state);

  Result<void> start(const InstanceLimits& limits);
  Result<void> enter();
  /// Returns whether the host asked for the run to stop.
  bool leave();
  Error describe_end(std::string message, bool stopped, const void* trap);
  bool globals_are_initial() const;

  Result<std::size_t> find_function_raw(std::string_view name, const Signature& signature);
  template <class R, class... A>
  Result<Function<R(A...)>> find_function(std::string_view name, R (*)(A...)) {
    SW_TRY(const std::size_t index, find_function_raw(name, detail::signature_of<R, A...>()));
    return Function<R(A...)>(index);
  }
  Result<void> call_raw(std::size_t index, RawValue* values, std::size_t count);

  std::unique_ptr<State> state_;
  bool poisoned_ = false;
};

/// What Instance::charge counted since this was made is given back when it ends.
class HostMemoryScope {
 public:
  explicit HostMemoryScope(Instance& instance);
  ~HostMemoryScope();
  HostMemoryScope(const HostMemoryScope&) = delete;
  HostMemoryScope& operator=(const HostMemoryScope&) = delete;

 private:
  Slot* slot_;
  std::uint64_t charged_before_;
};

}  // namespace sw::wasm
