// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One JavaScript interpreter. The host evaluates the cells and runs the event loop; the driver
// (JavaScript, in the image) is asked only for what needs its language: to show a value, to
// describe an error, to run a timer.

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/javascript/answers.h"
#include "engine/javascript/internals.h"
#include "engine/javascript/quickjs.h"
#include "engine/javascript/time_zone.h"
#include "sandbox_workers/engine/language.h"

namespace sw::engine::javascript {

/// Functions of the driver, by the order in which their values are kept among the facts.
enum class Entry : std::uint8_t {
  kShowValue,
  kDescribeError,
  kRunTimers,
  kRunTicks,
  kDropTimers,
  kResetRun,
  kRunExitListeners,
  kRunBeforeExit,
  kOfferUncaught,
  kBuiltinModuleSource,
  kHasBuiltin,
  kModuleError,
  kCurrentDirectory,
  kNoteDirectory,
  kRewriteImports,
  kStripTypes,  ///< in the driver's own realm, as are those after it
};
inline constexpr std::size_t kEntryCount = 16;
inline constexpr std::size_t kRealmEntry = static_cast<std::size_t>(Entry::kStripTypes);

/// Does the file's name say that it is TypeScript?
bool is_typescript_file(std::string_view path);

class JavaScriptGuest final : public Guest {
 public:
  JavaScriptGuest(std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks,
                  const Manifest& manifest);

  Result<void> boot(BakeFacts& facts) override;
  Result<void> bind(const BakeFacts& facts) override;
  Result<void> after_restore() override;
  Result<Reply> evaluate(const Run& request, std::string_view file_name) override;
  Result<void> finish() override;
  void soft_stop() override { stop_.store(true, std::memory_order_release); }
  void forget_stop() override { stop_.store(false, std::memory_order_release); }
  bool is_out_of_memory(const GuestError& error) const override;

  // For the host functions.

  QuickJs& js() { return js_; }
  wasm::MemoryView memory() const { return js_.memory(); }
  const std::vector<std::pair<std::string, std::string>>& env() const { return env_; }
  const std::vector<std::string>& args() const { return args_; }
  const std::string& file_name() const { return file_name_; }
  /// When the context's first cell began, by its monotonic clock; kept in the guest, so that it
  /// survives a restore.
  std::uint64_t start_ns() const;
  const TimeZone& time_zone() const { return time_zone_; }

  const std::string& cwd() const { return cwd_; }
  wasi::Errno change_directory(std::string_view path);
  /// `path`, taken from the working directory when it is relative. "" stays.
  std::string absolute(std::string_view path) const;

  /// Something waits for the loop: bits of the driver's kArm….
  void arm(std::uint32_t bits);
  bool should_interrupt() const { return stop_.load(std::memory_order_acquire) && !answering_; }
  /// Takes over both boxes.
  Result<void> note_rejection(std::uint32_t promise, std::uint32_t reason, bool handled);
  /// Throws what nothing can catch; the cell ends when it arrives.
  Result<JsValue> exit(std::int32_t code);
  void set_exit_code(std::int32_t code) { exit_code_ = code; }

  Result<bool> is_builtin_module(std::string_view name);
  Result<std::string> builtin_module_source(std::string_view name);
  /// While the driver's own realm is loaded, at bake, its modules come from the read-only
  /// libraries.
  bool is_loading_realm() const { return is_loading_realm_; }
  /// nullopt after throwing.
  Result<std::optional<std::string>> tune_module(std::string_view path, std::string_view source);
  /// What `code` is in JavaScript, if it is TypeScript. `is_module`: an ES module of its own.
  Result<Stripped> strip_types(std::string_view code, bool is_module);
  Result<void> throw_module_error(std::string_view message);
  /// False after throwing the SyntaxError.
  Result<bool> is_json(std::string_view text);

  /// Through the WASI table, into or from host memory.
  Result<wasi::ErrnoOr<std::size_t>> read_descriptor(std::uint32_t fd, std::span<std::byte> to,
                                                     std::optional<std::uint64_t> offset);
  Result<wasi::ErrnoOr<std::size_t>> write_descriptor(std::uint32_t fd, BytesView from,
                                                      std::optional<std::uint64_t> offset);

 private:
  /// Why a cell cannot go on: an owned value, undefined when there is none (a stop).
  struct Failure {
    Owned reason;
  };
  using Progress = std::optional<Failure>;  // nullopt: so far so good

  struct Rejection {
    JsValue promise;
    std::uint32_t promise_box = 0;
    std::uint32_t reason_box = 0;
  };
  /// More at once are counted only, or their list would take much of the host's memory.
  static constexpr std::size_t kRejectionsMax = 100000;

  // Words of the state that lies in the guest's memory, so that it is part of a snapshot.
  static constexpr std::uint32_t kArmedWord = 0;   ///< bits below
  static constexpr std::uint32_t kUsedWord = 4;    ///< 1 once a cell ran
  static constexpr std::uint32_t kStartWords = 8;  ///< 64 bits: see start_ns
  /// Jobs of stopped cells: see Internals::set_aside_jobs
  static constexpr std::uint32_t kAsideWord = 16;
  // The driver's own numbers, in timers.js and process.js.
  static constexpr std::uint32_t kArmTimers = 1;
  static constexpr std::uint32_t kArmTicks = 2;
  static constexpr std::uint32_t kArmExit = 4;
  static constexpr std::uint32_t kArmUncaught = 8;
  static constexpr std::int32_t kUncaughtException = 0;
  static constexpr std::int32_t kUnhandledRejection = 1;
  /// Cells up to this size, their file name included, are put into memory that the image already
  /// has.
  static constexpr std::uint32_t kCodeBufferBytes = 1024;

  Result<JsValue> call(Entry entry, std::span<const JsValue> arguments);
  /// The text that an entry answers with, or as much of it as `bytes_max`; nullopt when it threw.
  Result<std::optional<std::string>> ask(Entry entry, std::span<const JsValue> arguments,
                                         std::size_t bytes_max = SIZE_MAX);

  // At bake.
  /// Gives the driver, through its host object, what it calls there.
  Result<void> load_realm(BakeFacts& facts, JsValue host);
  Result<void> evaluate_in_realm(const DriverFile& file);
  Result<void> load_driver(BakeFacts& facts);
  Result<void> leave_room();
  Result<void> import_builtin_modules(std::string_view names);
  Result<void> warm_up();
  Error driver_failed(std::string_view what);

  // A cell.
  Result<Reply> run_cell(const Run& request, std::string_view file_name);
  Result<void> begin(const Run& request, std::string_view file_name);
  Result<void> begin_in(std::string_view folder);
  Result<void> begin_again();
  bool set_time_zone();
  /// A cell ready to run, or why it cannot be.
  struct Compiled {
    JsValue code = JsValue::exception();  ///< then the exception waits, unless there is a reply
    std::optional<Reply> reply;
  };
  Result<Compiled> compile_cell(const Run& request, std::string_view file_name);
  Result<Compiled> compile_typescript(std::string_view code, std::string_view file_name);
  Result<JsValue> compile_javascript(std::string_view code, std::string_view file_name);
  Result<void> drop_exception();
  Result<JsValue> compile(std::string_view code, std::string_view file_name);
  /// After `compile` threw: tries again with the import declarations written as calls.
  Result<JsValue> compile_with_imports(std::string_view code, std::string_view file_name);
  Result<Reply> run_compiled(JsValue code, std::string_view file_name);
  Result<Reply> conclude(std::string_view file_name);

  // The event loop.
  Result<Progress> run_loop();
  Result<Progress> drain();
  Result<Progress> unhandled_rejection();
  Result<Progress> uncounted_rejections();
  Result<Progress> uncaught_exception();
  Result<Progress> uncaught(Owned reason, std::int32_t kind, JsValue promise);
  Result<void> forget_rejections();
  bool must_stop() const;
  void sleep_for(double milliseconds);
  bool disarm(std::uint32_t bit);

  // The answer.
  Result<Reply> answer(Owned value, std::string_view file_name);
  Result<Reply> answer_with(JsValue shown, Reply reply, std::string_view file_name);
  Result<Reply> fail(Progress progress, std::string_view file_name);
  Result<Reply> fail_to_compile(std::string_view code, std::string_view file_name);
  Result<Reply> never_settled();
  /// After the host lacked guest memory somewhere.
  Result<Reply> run_out_of_memory();
  bool is_lack_of_memory(JsValue reason) const;
  static Reply error_reply(std::string name, std::string message);
  static Reply syntax_error(const Stripped& problem, std::string_view file_name);
  Result<GuestError> describe(JsValue reason, std::string_view file_name);
  Result<void> abandon();
  Reply with_cwd(Reply reply);

  // Memory: see memory.cc.
  void keep_reserve();
  void lend_reserve();
  Result<void> make_room();
  Result<bool> has_room(std::uint64_t bytes);
  Result<bool> is_full();
  bool was_growth_refused() const { return instance().refused_growths() != refused_before_; }

  std::uint32_t state_word(std::uint32_t offset) const;
  void set_state_word(std::uint32_t offset, std::uint32_t value);
  Cancellation* wasi_cancellation() const;

  const Manifest& manifest_;  // of the language, which outlives its guests
  QuickJs js_;
  Internals internals_;
  std::array<JsValue, kEntryCount> entries_{};
  std::uint32_t state_ = 0;
  std::uint32_t code_buffer_ = 0;
  std::uint32_t value_atom_ = 0;
  std::uint32_t length_atom_ = 0;

  // Of the run in progress.
  std::vector<std::pair<std::string, std::string>> env_;
  std::vector<std::string> args_;
  std::string file_name_;
  TimeZone time_zone_;
  std::string cwd_ = "/workspace";
  std::string_view root_ = wasi::kWorkspacePath;  // where the program is if its folder is gone
  JsValue main_ = JsValue::undefined();           // the cell's own promise
  bool main_rejection_handled_ = false;
  std::list<Rejection> rejections_;  // that nothing handled yet, the oldest first
  // by the promise's bits
  std::unordered_map<std::uint64_t, std::list<Rejection>::iterator> rejection_of_;
  std::size_t rejections_uncounted_ = 0;
  std::uint64_t memory_max_ = 0;            // of the run; the user's code is refused a little of it
  std::uint64_t refused_before_ = 0;        // growths, when the run began
  std::size_t value_bytes_max_ = SIZE_MAX;  // more than that of the value's text need not be read
  std::optional<std::int32_t> exit_code_;   // process.exitCode
  std::optional<std::int32_t> exited_;      // process.exit was called
  bool failed_ = false;
  bool is_loading_realm_ = false;
  bool answering_ = false;  // the interpreter works for the host, not for the user
  std::atomic<bool> stop_{false};
};

}  // namespace sw::engine::javascript
