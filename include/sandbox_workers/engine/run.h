// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A run: what goes into it, what happens during it, and what comes out of it, for every language.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox_workers/base/cancellation.h"
#include "sandbox_workers/base/durability.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasi/streams.h"
#include "sandbox_workers/workspace/manifest.h"

namespace sw {

/// Limits of one run. Defaults are for real work; each can be set per run.
struct RunLimits {
  /// Time from start to end, sleeping included. Zero: none.
  std::chrono::nanoseconds wall_max = std::chrono::seconds(10);
  /// CPU time of the guest. Zero: none.
  std::chrono::nanoseconds cpu_max = std::chrono::nanoseconds::zero();
  /// Time between the polite request to stop and ending the run by force, which costs the instance.
  std::chrono::nanoseconds grace = std::chrono::milliseconds(250);
  /// Linear memory. A guest that wants more is refused, and sees its language's out-of-memory
  /// error.
  std::uint64_t memory_bytes_max = std::uint64_t{1} << 30;
  /// Bytes of stdout and stderr together that are passed on; what is printed beyond is dropped and
  /// Usage::output_truncated says so. Zero: no limit.
  std::uint64_t output_bytes_max = std::uint64_t{1} << 20;
  /// Bytes of the value's text or JSON; a larger one is an ExecutionLimitError.
  std::uint64_t result_bytes_max = std::uint64_t{1} << 20;
};

/// What becomes of memory and files when a run ends with an error, that is in any way but completed
/// or exited. A run whose instance is lost (it trapped, or was stopped by force) loses both in any
/// case. Outside of contexts there are only files: Outcome::files is absent when they go back.
enum class AfterError : std::uint8_t {
  kKeep,       ///< both stay as the run left them
  kRollback,   ///< both go back to before the run, the offsets of open files too
  kFilesBack,  ///< memory stays, files go back: the rule of the profile "compat"
};

/// One program, or one cell of a context: the only description of a run, from whoever asks for it
/// to the engine that does it.
struct Run {
  /// Which language, by its identifier or another of its names: "python", "py", "typescript". A
  /// context knows its own.
  std::string language = {};
  std::string code = {};
  /// The context to run in. Empty: in a sandbox of a Host the one that is named after the language,
  /// made if it is not there.
  std::string context = {};
  /// How tracebacks name the code; empty: "<cell N>".
  std::string file_name = {};
  /// Over what the sandbox and the context have.
  std::vector<std::pair<std::string, std::string>> env = {};
  /// What of theirs the run does not see.
  std::vector<std::string> unset_env = {};
  /// sys.argv, process.argv, …: the program's name first. Empty: the language's own default.
  std::vector<std::string> args = {};
  /// What the program reads from its standard input; null: nothing. `text_input` makes one of text,
  /// InputStream is one that is fed while the run goes on. Read on the run's thread.
  std::shared_ptr<wasi::InputSource> input = {};
  /// The folder that the first cell of an instance begins in, if there is such a folder; later
  /// cells go on where the one before ended. Empty: /workspace.
  std::string cwd = {};
  /// The run knows the workspace by its other path, /home/user: it begins there, HOME says so unless
  /// `env` has a HOME, and modules, the program's file and tracebacks are named by it. Whatever is
  /// said outside of the guest is named by /workspace, also `cwd` here and in the outcome.
  bool home = false;
  /// What a run outside of sandboxes finds in /workspace; Outcome::files tells what it did to it.
  /// Null: nothing, and what it writes goes with it. A sandbox has files of its own.
  std::shared_ptr<const RunFiles> files = {};
  /// Runs no code, but what the language does when a program ends: exit handlers, flushing of open
  /// files. The context is deleted with it. Outside of contexts every run ends so.
  bool ends_context = false;
  RunLimits limits = {};
  /// Absent: as the sandbox's profile says.
  std::optional<AfterError> on_error = {};
  /// When a run in a context counts as stored. Absent: as the context, or else the sandbox, says.
  std::optional<Durability> durability = {};
  /// Lets another thread end the run: politely first, then by force, as at a deadline.
  std::stop_token cancel = {};
};

/// An input that holds `text`.
std::shared_ptr<wasi::InputSource> text_input(std::string text);

/// What happens during a run, as it happens: on the run's thread, and not after the run has ended.
/// `write` may block, which makes the guest wait; it must not throw.
class RunEvents : public wasi::OutputSink, public WaitObserver {
  // on_wait, on_resume: the guest waits for time to pass, for input, or for its output's reader.
};

/// Keeps what a run prints.
class RunOutput final : public RunEvents {
 public:
  wasi::Errno write(wasi::Stream stream, BytesView bytes) override;
  std::string out;
  std::string err;
};

/// Bytes of code in one run.
inline constexpr std::size_t kCodeBytesMax = std::size_t{4} << 20;

/// Errors: kInvalidArgument saying what is wrong: no code, too much of it, not UTF-8, a NUL byte or
/// an impossible name in the environment, a NUL byte in an argument or the file name.
Result<void> validate(const Run& run);

/// The value of the last expression.
struct Value {
  enum class Kind : std::uint8_t { kText, kJson };
  Kind kind = Kind::kText;
  std::string text;  ///< with kJson: one JSON value (numbers keep all their digits)
};

// Longer texts of errors are cut, and say so.
inline constexpr std::size_t kErrorTextBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kErrorLineBytesMax = std::size_t{8} << 10;
inline constexpr int kTracebackLinesMax = 500;

/// An error that the guest's code raised and did not catch, or a limit it met.
struct GuestError {
  std::string name;
  std::string message = {};
  std::vector<std::string> traceback = {};
  std::optional<std::int64_t> line_number = {};
};

/// Name of the errors that limits cause.
inline constexpr char kExecutionLimitError[] = "ExecutionLimitError";
/// Name of the error when the guest crashed or the host could not go on.
inline constexpr char kEngineError[] = "EngineError";

enum class Ending : std::uint8_t {  // how a run ended
  kCompleted,
  kGuestError,  ///< an uncaught error, or a syntax error
  kExited,      ///< exit was called; Outcome::exit_code
  kTimeLimit,
  kMemoryLimit,
  kResultLimit,
  kCancelled,  ///< the caller asked for the end
  kCrashed,    ///< the interpreter trapped
};

struct Usage {  // what a run took
  std::chrono::nanoseconds wall{};
  std::chrono::nanoseconds cpu{};
  std::uint64_t memory_bytes = 0;  ///< linear memory at the end, which never shrinks during a run
  /// 4-KiB pages put back after the run; 0 when the instance was not kept
  std::uint64_t pages_written = 0;
  bool output_truncated = false;
};

/// Whose memory a run in a context began with.
enum class ContextState : std::uint8_t { kLive, kRestored, kFresh };

/// The whole note of a context's first run when there is nothing else to say.
inline constexpr std::string_view kNewContextNote = "the context is new";

/// Of a run in a context.
struct ContextRun {
  std::string id;
  std::uint64_t executions = 0;  ///< of the context, this one included
  ContextState state = ContextState::kFresh;
  /// Why the memory is fresh, or what is missing from the restored one; empty when there is nothing
  /// to say.
  std::string note = {};
  /// Present if this run's memory was saved: time taken by finding, packing and storing what
  /// changed.
  std::optional<double> snapshot_ms = {};
  std::uint64_t snapshot_bytes_written = 0;
};

struct Outcome {  // what came of a run
  Ending ending = Ending::kCompleted;
  std::optional<Value> value;
  std::optional<GuestError> error;
  std::optional<std::int32_t> exit_code;
  /// The guest was stopped by force or trapped, in the middle of whatever it was doing. Nobody goes
  /// on from what it left in memory, so nobody keeps its files either.
  bool cut_off = false;
  std::string cwd = "/workspace";
  /// What the run did to Run::files, if it had any.
  std::optional<WorkspaceDiff> files = {};
  Usage usage;
  /// What was printed, if nobody was given the run's events.
  std::string out = {};
  std::string err = {};
  std::optional<ContextRun> context = {};
};

}  // namespace sw
