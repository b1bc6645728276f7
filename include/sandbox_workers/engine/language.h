// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a language must provide so that its interpreter, a Wasm module, can be baked, run, stopped,
// reset, saved and restored: the Language, which makes guests, and the Guest, the host's side of
// one interpreter. Machine::load turns a Language into an Engine with sessions. docs/engines.md has
// the whole way; this is what is called when:
//
//   once a machine ("bake")      Guest::boot
//       Boots the interpreter (init), then runs the driver that every session finds there (session
//       boot); the memory becomes the image.
//   each instance                Guest::bind
//       Finds the entry points again; nothing is run.
//   before its first cell        Guest::after_restore
//       After an image and after a snapshot alike: random generators, caches of files or clocks.
//   each cell of a session       Guest::evaluate   (session execute)
//   each run without a session   Guest::evaluate, then Guest::finish   (run once)
//       The same cell, in an instance that is put back to the image afterwards.
//   a deadline                   Guest::soft_stop
//       From the watchdog's thread.
//
// So one hook, `evaluate`, is what other designs split into evaluate, run once and session execute.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sandbox_workers/bake/facts.h"
#include "sandbox_workers/bake/manifest.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/run.h"
#include "sandbox_workers/wasi/layout.h"
#include "sandbox_workers/wasi/wasi.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/wasm/linker.h"

namespace sw::engine {

// What baking has in common with languages.
using bake::BakeFacts;
using bake::DriverFile;
using bake::fact;
using bake::find_fact;
using bake::Manifest;
using bake::Package;
using bake::PackageFile;
using bake::parse_manifest;

/// What a guest's driver answers for one cell.
struct Reply {
  std::optional<Value> value;
  bool value_too_long = false;  ///< there is one, which has more text than the run may answer with
  std::optional<GuestError> error;
  std::optional<std::int32_t> exit_code;
  std::string cwd;
};

/// More than the longest error's texts need, each character escaped. Parsing takes time and memory
/// of the host, which no limit of the run can end.
inline constexpr std::size_t kReplyHeadBytesMax = std::size_t{32} << 20;

/// Parses a driver's answer: one line of JSON,
///   {"value": "text" | "json" | null,
///    "error": {"name", "message", "traceback", "lineNumber"?} | null,
///    "exit": number | null, "cwd": "…"}
/// (absent counts as null), a line feed, and then the value's own text or JSON up to the end. What
/// says that it is JSON and is not (normal_json) becomes text; a `cwd` that is no absolute path and
/// a `lineNumber` that no line can have are ignored. Trust: the guest wrote it. Errors: kCorrupt,
/// also when the line is longer than kReplyHeadBytesMax.
Result<Reply> parse_reply(std::string answer);

/// One interpreter: the host's side of an instance. `instance` is set before any of the hooks is
/// called.
/// Threads: one at a time, except soft_stop.
class Guest : public wasm::HostState {
 public:
  Guest(std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks);

  wasi::Wasi& wasi() { return wasi_; }
  wasm::Instance& instance() const { return *instance_; }
  void set_instance(wasm::Instance& instance) { instance_ = &instance; }

  /// A copy of bytes that lie in the guest's memory, and may be all of it. Its size is charged to
  /// the guest (wasm::Instance::charge). Errors: kLimitExceeded, and kGuestStopped when the run is
  /// to end.
  Result<std::string> copy_out(std::span<const std::byte> bytes);

  /// At bake only: takes an instance whose memory holds its data segments to an interpreter with
  /// the driver loaded, the common modules imported and the usual paths warmed up. Puts into
  /// `facts` what `bind` needs.
  virtual Result<void> boot(BakeFacts& facts) = 0;

  /// Finds the entry points. After boot, and after every instantiation from the image.
  virtual Result<void> bind(const BakeFacts& facts) = 0;

  /// Called before the first cell of a fresh or restored interpreter: random generators, clocks.
  virtual Result<void> after_restore() { return {}; }

  /// Runs one cell. An error raised by the code is part of the reply; an Error means that the guest
  /// trapped, was stopped, called proc_exit, or that the host failed.
  virtual Result<Reply> evaluate(const Run& request, std::string_view file_name) = 0;

  /// Runs exit handlers, when the interpreter will not be used again. Output goes where the last
  /// cell's went.
  virtual Result<void> finish() { return {}; }
  /// After `finish`: the exit status that an exit handler asked for; nullopt: none did.
  virtual std::optional<std::int32_t> exit_status() const { return std::nullopt; }

  /// Asks the cell in progress to stop, from another thread. Must not block.
  virtual void soft_stop() = 0;
  /// Before a cell: forgets a request that came when the cell before had ended already.
  virtual void forget_stop() {}

  /// Does this error mean that the guest ran out of memory?
  virtual bool is_out_of_memory(const GuestError& error) const = 0;

 private:
  wasi::Wasi wasi_;
  wasm::Instance* instance_ = nullptr;
};

/// A language: makes guests. Immutable and thread-safe.
class Language {
 public:
  virtual ~Language() = default;

  const Manifest& manifest() const { return manifest_; }

  /// The read-only files its guests see. `package` is the folder with the package's files.
  virtual Result<std::shared_ptr<const wasi::Layout>> make_layout(
      const std::filesystem::path& package) const = 0;

  /// The Wasm module, by default the package's file Manifest::module. For packages that hold it in
  /// another form. What is returned must depend on the package's checked files only.
  virtual Result<Bytes> read_module(const std::filesystem::path& package) const;

  /// Defines the imports beyond WASI; host functions find their Guest in Caller::host().
  virtual Result<void> add_imports(wasm::Linker& linker) const = 0;

  virtual std::unique_ptr<Guest> make_guest(std::shared_ptr<const wasi::Layout> layout,
                                            const wasi::Clocks& clocks) const = 0;

 protected:
  explicit Language(Manifest manifest) : manifest_(std::move(manifest)) {}

 private:
  Manifest manifest_;
};

}  // namespace sw::engine
