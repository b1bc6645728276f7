// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "engine/home.h"
#include "engine/saved_host.h"
#include "engine/watchdog.h"
#include "sandbox_workers/base/utf8.h"
#include "sandbox_workers/engine/budget.h"
#include "wasi/descriptors.h"
#include "wasi/tree_state.h"

namespace sw::engine {

namespace {

Outcome limit_outcome(Ending ending, std::string message, std::vector<std::string> traceback = {}) {
  Outcome outcome;
  outcome.ending = ending;
  outcome.error = GuestError{.name = kExecutionLimitError,
                             .message = std::move(message),
                             .traceback = std::move(traceback),
                             .line_number = {}};
  return outcome;
}

Ending ending_of(StopReason reason) {
  return reason == StopReason::kCancelled ? Ending::kCancelled : Ending::kTimeLimit;
}

std::string memory_message(const wasm::Instance& instance) {
  return fmt::format("memory limit of {} MiB reached", instance.memory_bytes_max() >> 20);
}

void shorten(std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  const std::size_t left_out = text.size() - bytes_max;
  text.resize(bytes_max);
  // The cut may have gone through a character.
  text = to_valid_utf8(text) + fmt::format(" … ({} more bytes)", left_out);
}

/// An error's text is for reading: a guest cannot make the host keep and send megabytes of it.
void shorten(GuestError& error) {
  shorten(error.name, kErrorLineBytesMax);
  shorten(error.message, kErrorTextBytesMax);
  if (error.traceback.size() > kTracebackLinesMax) {
    const auto middle = error.traceback.begin() + kTracebackLinesMax / 2;
    const auto left_out = static_cast<std::ptrdiff_t>(error.traceback.size() - kTracebackLinesMax);
    *middle = fmt::format("  … ({} more lines)", left_out + 1);
    error.traceback.erase(middle + 1, middle + 1 + left_out);
  }
  for (std::string& line : error.traceback) shorten(line, kErrorLineBytesMax);
}

/// What is left of the limits is for the exit handlers; a little, if nothing is left.
RunLimits left_of(RunLimits limits, const Usage& used) {
  const auto leave = [&](std::chrono::nanoseconds& limit, std::chrono::nanoseconds taken) {
    if (limit.count() != 0) limit = std::max(limit - taken, limits.grace);
  };
  leave(limits.wall_max, used.wall);
  leave(limits.cpu_max, used.cpu);
  return limits;
}

// More than this in /tmp is left behind: all of it is written again whenever anything of it
// changes.
constexpr std::uint64_t kTmpBytesMax = std::uint64_t{8} << 20;

// For exit handlers, beyond what their context has.
constexpr std::uint64_t kRoomToEnd = std::uint64_t{256} << 20;

/// The memory of an instance that is being restored.
class RestoredPages final : public PageSink {
 public:
  explicit RestoredPages(wasm::Instance& instance) : instance_(instance) {}
  std::uint64_t memory_bytes() const override { return instance_.memory().size(); }
  Result<PageSpan> write(std::uint32_t page) override { return instance_.room_for(page); }

 private:
  wasm::Instance& instance_;
};

/// Only some codes say that nothing was run.
Error host_fault(Error error) {
  if (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kBadReply)
    error.code = ErrorCode::kInternal;
  return error;
}

// A saved clock further ahead than this is damage, not time.
constexpr std::uint64_t kClockAheadMaxNs = std::uint64_t{1} << 62;

}  // namespace

Session::Session(std::unique_ptr<Guest> guest, std::unique_ptr<wasm::Instance> instance,
                 std::unique_ptr<Cancellation> cancellation, Watchdog& watchdog)
    : guest_(std::move(guest)),
      instance_(std::move(instance)),
      cancellation_(std::move(cancellation)),
      watchdog_(watchdog) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::unique_ptr<Guest> guest,
                                                 std::unique_ptr<wasm::Instance> instance,
                                                 Watchdog& watchdog) {
  SW_TRY(auto cancellation, Cancellation::create());
  return std::unique_ptr<Session>(
      new Session(std::move(guest), std::move(instance), std::move(cancellation), watchdog));
}

std::unique_ptr<Budget> Session::watch(const RunLimits& limits) {
  BudgetOptions options{.limits = limits, .cancel = cancel_, .cancellation = cancellation_.get()};
  // Who chose code with checks wants it to end where it is, whatever it would catch.
  if (instance_->stop_means() != wasm::StopMeans::kEpoch)
    options.soft_stop = [this] { guest_->soft_stop(); };
  return budget(watchdog_, *instance_, std::move(options));
}

Result<void> Session::prepare(const Run& run, RunEvents& events) {
  if (invalid()) return Error{ErrorCode::kInvalidArgument, "this session has ended", 0};
  if (run.files) {
    const std::uint64_t now_ns = guest_->wasi().files().now_ns();
    if (!mirror_) mirror_.emplace(now_ns);
    SW_CHECK_OK(mirror_->follow(*run.files, now_ns));
  }
  // What was asked of the cell before must not hit this one; what is asked from here on must not be
  // lost.
  cancellation_->reset();
  cancellation_->observe(&events);
  guest_->forget_stop();
  limits_ = run.limits;
  cancel_ = run.cancel;
  return saved_.empty() ? Result<void>() : restore_host();
}

Result<void> Session::begin(const Run& run, RunEvents& events) {
  std::uint64_t memory_bytes_max = run.limits.memory_bytes_max;
  // Who ends a context does not know what it was allowed.
  if (run.ends_context) {
    memory_bytes_max = std::max(memory_bytes_max, instance_->memory().size() + kRoomToEnd);
  }
  instance_->set_memory_bytes_max(memory_bytes_max);
  input_ = run.input;
  wasi::RunOptions options;
  if (mirror_) options.workspace = mirror_->tree();
  options.output = &events;
  options.input = input_.get();
  options.cancellation = cancellation_.get();
  options.limits.output_bytes_max =
      run.limits.output_bytes_max == 0 ? UINT64_MAX : run.limits.output_bytes_max;
  options.monotonic_offset_ns = monotonic_offset_ns_;
  if (cells_ == 0) SW_CHECK_OK(guest_->wasi().start_run(std::move(options)));
  else SW_CHECK_OK(guest_->wasi().continue_run(std::move(options)));
  if (fresh_) SW_CHECK_OK(guest_->after_restore());
  fresh_ = false;
  ++cells_;
  return {};
}

Result<Reply> Session::run_cell(const Run& run, RunEvents& events) {
  const wasm::HostMemoryScope host_memory(*instance_);
  SW_CHECK_OK(begin(run, events));
  return run.home ? evaluate_in_guest(at_home(run, cells_ == 1)) : evaluate_in_guest(run);
}

Result<Reply> Session::evaluate_in_guest(const Run& run) {
  const std::string file_name =
      run.file_name.empty() ? fmt::format("<cell {}>", cells_) : run.file_name;
  return guest_->evaluate(run, file_name);
}

Result<Outcome> Session::execute(const Run& run, RunEvents& events) {
  SW_CHECK_OK(prepare(run, events));
  Result<Outcome> done = run.ends_context ? end(run, events) : evaluate(run, events);
  // Whatever the guest made of it: its memory was not what was saved.
  if (const auto damage = instance_->damage()) return host_fault(*damage);
  if (done.ok() && run.files) done->files = mirror_->changes();
  return done;
}

Result<Outcome> Session::evaluate(const Run& run, RunEvents& events) {
  const auto meter = watch(limits_);
  Result<Reply> reply = run_cell(run, events);
  const BudgetResult used = meter->finish();
  Outcome outcome;
  if (reply.ok()) {
    outcome = conclude(*std::move(reply), used.reason);
  } else {
    SW_TRY(outcome, conclude_failure(std::move(reply).error(), used.reason));
  }
  note_usage(outcome, used);
  outcome.cut_off = invalid() && outcome.ending != Ending::kExited;
  return outcome;
}

void Session::note_usage(Outcome& outcome, const BudgetResult& used) const {
  outcome.usage.cpu = used.cpu;
  outcome.usage.wall = used.wall;
  outcome.usage.memory_bytes = instance_->memory().size();
  outcome.usage.output_truncated = guest_->wasi().output_truncated();
}

Result<Outcome> Session::conclude_failure(Error error, StopReason stop) {
  switch (error.code) {
    case ErrorCode::kGuestExit: {
      Outcome outcome;
      outcome.ending = Ending::kExited;
      outcome.exit_code = error.exit_code & 0xFF;
      return outcome;
    }
    case ErrorCode::kGuestStopped:
      return limit_outcome(ending_of(stop), stop_message(stop, limits_));
    case ErrorCode::kCorrupt:
    case ErrorCode::kLimitExceeded:
      // Its driver answered nonsense, or had no memory left to answer: that is the guest's doing,
      // not the host's.
      broken_ = true;
      if (stop != StopReason::kNone)
        return limit_outcome(ending_of(stop), stop_message(stop, limits_));
      [[fallthrough]];
    case ErrorCode::kGuestTrap:
    case ErrorCode::kGuestStackOverflow: {
      // Many interpreters abort when memory runs out where they cannot raise an error.
      if (instance_->refused_growths() != 0) {
        return limit_outcome(Ending::kMemoryLimit, memory_message(*instance_));
      }
      Outcome outcome = limit_outcome(Ending::kCrashed,
                                      fmt::format("the interpreter crashed: {}", error.message));
      outcome.error->name = kEngineError;
      return outcome;
    }
    default:
      // Other codes say that nothing was run.
      error.code = ErrorCode::kInternal;
      return error;
  }
}

Outcome Session::conclude(Reply reply, StopReason stop) {
  if (reply.error) shorten(*reply.error);
  Outcome outcome;
  if (stop != StopReason::kNone && reply.error) {
    outcome = limit_outcome(ending_of(stop), stop_message(stop, limits_),
                            std::move(reply.error->traceback));
    // Some guests were between two pieces of code, and did not trap. One rule for all is easier to
    // rely on.
    if (instance_->stop_means() == wasm::StopMeans::kEpoch) broken_ = true;
  } else if (reply.value_too_long ||
             (reply.value && reply.value->text.size() > limits_.result_bytes_max)) {
    outcome = limit_outcome(
        Ending::kResultLimit,
        fmt::format("the value's text is larger than {} bytes", limits_.result_bytes_max));
  } else {
    // A guest that finished although it was asked to stop has finished.
    const bool is_memory_limit =
        reply.error && instance_->refused_growths() != 0 && guest_->is_out_of_memory(*reply.error);
    if (reply.exit_code) outcome.ending = Ending::kExited;
    else if (is_memory_limit) outcome.ending = Ending::kMemoryLimit;
    else if (reply.error) outcome.ending = Ending::kGuestError;
    outcome.value = std::move(reply.value);
    outcome.error = std::move(reply.error);
    outcome.exit_code = reply.exit_code;
  }
  outcome.cwd = in_workspace(std::move(reply.cwd));
  return outcome;
}

/// What becomes of a run whose exit handlers crashed, met a limit, or asked for an exit status. Errors
/// of the code are shown by then, and dropped.
std::optional<Outcome> Session::ending_of_handlers(const Result<void>& finished, StopReason stop) {
  if (stop == StopReason::kNone && !finished.ok() && instance_->poisoned()) {
    auto outcome = conclude_failure(finished.error(), stop);
    if (!outcome.ok()) return std::nullopt;
    outcome->cut_off = outcome->ending != Ending::kExited;
    return *std::move(outcome);
  }
  if (stop != StopReason::kNone) {
    Outcome outcome =
        limit_outcome(ending_of(stop), stop_message(stop, limits_) + " by exit handlers");
    outcome.cut_off = invalid();
    return outcome;
  }
  const auto status = guest_->exit_status();
  if (!status) return std::nullopt;
  Outcome outcome;
  outcome.ending = Ending::kExited;
  outcome.exit_code = status;
  return outcome;
}

/// Runs the exit handlers of a program. An error they end with is dropped.
std::optional<Outcome> Session::finish(const RunLimits& limits) {
  const auto meter = watch(limits);
  const Result<void> finished = guest_->finish();
  return ending_of_handlers(finished, meter->finish().reason);
}

Result<Outcome> Session::end(const Run& run, RunEvents& events) {
  const auto meter = watch(limits_);
  Result<void> begun = begin(run, events);
  const Result<void> finished = begun.ok() ? guest_->finish() : Result<void>();
  const BudgetResult used = meter->finish();
  Outcome outcome;
  if (begun.ok()) {
    outcome = ending_of_handlers(finished, used.reason).value_or(Outcome{});
  } else {
    SW_TRY(outcome, conclude_failure(std::move(begun).error(), used.reason));
    outcome.cut_off = true;
  }
  note_usage(outcome, used);
  broken_ = true;
  return outcome;
}

Result<Outcome> Session::run_once(const Run& run, RunEvents& events) {
  SW_CHECK_OK(prepare(run, events));
  SW_TRY(Outcome outcome, evaluate(run, events));
  if (!invalid()) {
    if (auto ended = finish(left_of(limits_, outcome.usage))) {
      outcome.cut_off = ended->cut_off;
      // What the program itself ended with counts more.
      if (!outcome.error) {
        outcome.ending = ended->ending;
        outcome.exit_code = ended->exit_code;
        outcome.error = std::move(ended->error);
        if (outcome.error) outcome.value.reset();
      }
    }
  }
  if (run.files) outcome.files = mirror_->changes();
  return outcome;
}

bool Session::can_snapshot() const { return !invalid() && instance_->reason_not_at_rest().empty(); }

Result<SessionSnapshot> Session::snapshot() {
  if (const std::string reason = instance_->reason_not_at_rest(); !reason.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the session cannot be saved: {}", reason), 0};
  }
  SessionSnapshot state;
  SW_TRY(Bytes descriptors, guest_->wasi().descriptors().serialize(guest_->wasi().files()));
  SW_TRY(const Bytes tmp, save_tmp());
  state.extra = encode({.cells = cells_,
                        .monotonic_ns = guest_->wasi().monotonic_ns(),
                        .tmp = tmp,
                        .descriptors = descriptors});
  // Last, since what it names is not named again.
  SW_CHECK_OK(instance_->take_changed_pages(state.changed));
  state.memory = std::make_unique<SpanPageSource>(instance_->memory().bytes());
  state.base = instance_->image();
  return state;
}

Result<Bytes> Session::save_tmp() {
  wasi::FileSystem& files = guest_->wasi().files();
  if (files.layout().mount_count() <= wasi::kTmpMount) return Bytes();
  const wasi::Tree& tree = *files.mounted(wasi::kTmpMount);
  if (tree.usage().entries == 0 || tree.usage().bytes > kTmpBytesMax) return Bytes();
  const wasi::TreeState state = wasi::TreeState::of(tree);
  return state.bytes() <= kTmpBytesMax ? state.serialize() : Bytes();
}

Result<void> Session::restore_tmp(BytesView blob) {
  wasi::FileSystem& files = guest_->wasi().files();
  if (blob.empty()) return {};
  if (files.layout().mount_count() <= wasi::kTmpMount) {
    return Error{ErrorCode::kCorrupt,
                 "a saved session has files in /tmp, and this engine has no /tmp", 0};
  }
  SW_TRY(const wasi::TreeState state, wasi::TreeState::parse(blob));
  const wasi::Errno put = state.restore(*files.mounted(wasi::kTmpMount), files.now_ns());
  if (put == wasi::Errno::kSuccess) return {};
  return Error{ErrorCode::kCorrupt, fmt::format("the files in /tmp: {}", wasi::errno_text(put)), 0};
}

Result<std::unique_ptr<Session>> Session::restore(std::unique_ptr<Guest> guest,
                                                  std::unique_ptr<wasm::Instance> instance,
                                                  Watchdog& watchdog, SnapshotSource& source) {
  SW_CHECK_OK(instance->grow_memory_to(source.memory_bytes()));
  SW_TRY(auto session, create(std::move(guest), std::move(instance), watchdog));
  SW_TRY(const BytesView bytes, session->fill_memory(source));
  SW_TRY(const SavedHost saved, decode_saved_host(bytes));
  session->cells_ = saved.cells;
  session->saved_.assign(bytes.begin(), bytes.end());
  return session;
}

Result<BytesView> Session::fill_memory(SnapshotSource& source) {
  RestoredPages pages(*instance_);
  std::optional<Result<void>> left_out;
  const LeaveOut leave_out = [&](std::span<const ByteRange> parts) {
    left_out = instance_->leave_out_pages(parts);
    return left_out->ok();
  };
  PageSupply late;
  SW_TRY(const BytesView bytes, source.fill(pages, instance_->image(), leave_out, late));
  if (left_out && !left_out->ok() && left_out->error().code != ErrorCode::kUnavailable)
    return std::move(*left_out).error();
  if (left_out && left_out->ok()) {
    // Host functions in progress must not tell what they made of a page that is not there.
    SW_CHECK_OK(instance_->supply_pages(std::move(late), [this] { cancellation_->cancel(); }));
  }
  return bytes;
}

/// Open files and /tmp, once the files of the sandbox are there.
Result<void> Session::restore_host() {
  const Bytes bytes = std::exchange(saved_, {});
  SW_TRY(const SavedHost saved, decode_saved_host(bytes));
  wasi::Wasi& wasi = guest_->wasi();
  wasi::RunOptions run;
  if (mirror_) run.workspace = mirror_->tree();
  SW_CHECK_OK(wasi.start_run(std::move(run)));
  Result<void> restored = restore_tmp(saved.tmp);
  if (restored.ok()) restored = wasi.descriptors().deserialize(saved.descriptors, wasi.files());
  if (!restored.ok()) {
    broken_ = true;
    return Error{ErrorCode::kCorrupt, std::move(restored).error().message, 0};
  }
  // The guest's clock goes on from where it was, or further on if this machine's is ahead; never
  // back.
  const std::uint64_t now = wasi.monotonic_ns();
  monotonic_offset_ns_ =
      saved.monotonic_ns > now
          ? static_cast<std::int64_t>(std::min(saved.monotonic_ns - now, kClockAheadMaxNs))
          : 0;
  return {};
}

wasm::ResetStats Session::reset() {
  if (broken_) return {.verdict = wasm::KeepVerdict::kEndedAbnormally, .pages_put_back = 0};
  cells_ = 0;
  fresh_ = true;
  monotonic_offset_ns_ = 0;
  mirror_.reset();
  return instance_->reset();
}

}  // namespace sw::engine
