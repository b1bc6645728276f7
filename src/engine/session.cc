// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

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

// More than this in /tmp is left behind: all of it is written again whenever anything of it
// changes.
constexpr std::uint64_t kTmpBytesMax = std::uint64_t{8} << 20;

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

Result<void> Session::begin(const Run& request, RunEvents& output) {
  instance_->set_memory_bytes_max(request.limits.memory_bytes_max);
  input_ = request.input;
  wasi::RunOptions run;
  if (request.workspace) run.workspace = request.workspace->tree();
  run.output = &output;
  run.input = input_.get();
  run.cancellation = cancellation_.get();
  if (request.limits.output_bytes_max != 0)
    run.limits.output_bytes_max = request.limits.output_bytes_max;
  else run.limits.output_bytes_max = UINT64_MAX;
  run.monotonic_offset_ns = monotonic_offset_ns_;
  if (cells_ == 0) SW_CHECK_OK(guest_->wasi().start_run(std::move(run)));
  else SW_CHECK_OK(guest_->wasi().continue_run(std::move(run)));
  if (fresh_) SW_CHECK_OK(guest_->after_restore());
  fresh_ = false;
  ++cells_;
  return {};
}

Result<Reply> Session::run_cell(const Run& request, RunEvents& output) {
  const wasm::HostMemoryScope host_memory(*instance_);
  SW_CHECK_OK(begin(request, output));
  const std::string file_name =
      request.file_name.empty() ? fmt::format("<cell {}>", cells_) : request.file_name;
  return guest_->evaluate(request, file_name);
}

Result<Outcome> Session::execute(const Run& request, RunEvents& output) {
  if (invalid()) return Error{ErrorCode::kInvalidArgument, "this session has ended", 0};
  // What was asked of the cell before must not hit this one; what is asked from here on must not be
  // lost.
  cancellation_->reset();
  cancellation_->observe(&output);
  guest_->forget_stop();
  limits_ = request.limits;
  cancel_ = request.cancel;
  const auto meter = watch(limits_);
  Result<Reply> reply = run_cell(request, output);
  const BudgetResult used = meter->finish();
  Outcome outcome;
  if (reply.ok()) {
    outcome = conclude(*std::move(reply), used.reason);
  } else {
    SW_TRY(outcome, conclude_failure(std::move(reply).error(), used.reason));
  }
  outcome.usage.cpu = used.cpu;
  outcome.usage.wall = used.wall;
  leave_to_finish(outcome.usage);
  outcome.usage.memory_bytes = instance_->memory().size();
  outcome.usage.output_truncated = guest_->wasi().output_truncated();
  outcome.cut_off = invalid() && outcome.ending != Ending::kExited;
  return outcome;
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
    default: return error;
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
  outcome.cwd = std::move(reply.cwd);
  return outcome;
}

/// What is left of the limits is for the exit handlers; a little, if nothing is left.
void Session::leave_to_finish(const Usage& used) {
  left_ = limits_;
  const auto leave = [&](std::chrono::nanoseconds& limit, std::chrono::nanoseconds taken) {
    if (limit.count() != 0) limit = std::max(limit - taken, limits_.grace);
  };
  leave(left_.wall_max, used.wall);
  leave(left_.cpu_max, used.cpu);
}

std::optional<Outcome> Session::finish() {
  if (invalid() || cells_ == 0) return std::nullopt;
  const auto meter = watch(left_);
  (void)guest_->finish();
  const StopReason stop = meter->finish().reason;
  if (stop == StopReason::kNone) return std::nullopt;
  Outcome outcome =
      limit_outcome(ending_of(stop), stop_message(stop, limits_) + " by exit handlers");
  outcome.cut_off = invalid();
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
  SW_CHECK_OK(instance_->dirty_pages(state.changed));
  state.memory = instance_->memory().bytes();
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
                                                  Watchdog& watchdog, const SessionOptions& options,
                                                  SnapshotSource& source) {
  SW_CHECK_OK(instance->grow_memory_to(source.memory_bytes()));
  SW_TRY(const BytesView bytes, source.fill(instance->memory().bytes(), instance->image()));
  SW_TRY(const SavedHost saved, decode_saved_host(bytes));
  SW_TRY(auto session, create(std::move(guest), std::move(instance), watchdog));
  wasi::Wasi& wasi = session->guest_->wasi();
  wasi::RunOptions run;
  if (options.workspace) run.workspace = options.workspace->tree();
  SW_CHECK_OK(wasi.start_run(std::move(run)));
  SW_CHECK_OK(session->restore_tmp(saved.tmp));
  SW_CHECK_OK(wasi.descriptors().deserialize(saved.descriptors, wasi.files()));
  session->cells_ = saved.cells;
  // The guest's clock goes on from where it was, or further on if this machine's is ahead; never
  // back.
  const std::uint64_t now = wasi.monotonic_ns();
  session->monotonic_offset_ns_ =
      saved.monotonic_ns > now
          ? static_cast<std::int64_t>(std::min(saved.monotonic_ns - now, kClockAheadMaxNs))
          : 0;
  return session;
}

wasm::ResetStats Session::reset() {
  if (broken_) return {.verdict = wasm::KeepVerdict::kEndedAbnormally, .pages_put_back = 0};
  cells_ = 0;
  fresh_ = true;
  monotonic_offset_ns_ = 0;
  return instance_->reset();
}

}  // namespace sw::engine
