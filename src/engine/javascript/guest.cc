// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/guest.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/javascript/declarations.h"
#include "wasi/calls.h"

namespace sw::engine::javascript {

namespace {

constexpr std::uint64_t kGuestBytesMax = std::uint64_t{4} << 30;
constexpr std::string_view kWorkspace = wasi::kWorkspacePath;
constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kBuiltinBytesMax = std::size_t{1} << 20;

}  // namespace

JavaScriptGuest::JavaScriptGuest(std::shared_ptr<const wasi::Layout> layout,
                                 const wasi::Clocks& clocks, const Manifest& manifest)
    : Guest(std::move(layout), clocks), manifest_(manifest) {}

std::uint32_t JavaScriptGuest::state_word(std::uint32_t offset) const {
  return memory().load<std::uint32_t>(state_ + offset).value_or(0);
}

void JavaScriptGuest::set_state_word(std::uint32_t offset, std::uint32_t value) {
  static_cast<void>(memory().store(state_ + offset, value));
}

Cancellation* JavaScriptGuest::wasi_cancellation() const {
  return const_cast<JavaScriptGuest*>(this)->wasi().run().cancellation;
}

Result<JsValue> JavaScriptGuest::call(Entry entry, std::span<const JsValue> arguments) {
  return js_.call(entries_[static_cast<std::size_t>(entry)], arguments);
}

Result<std::optional<std::string>> JavaScriptGuest::ask(Entry entry,
                                                        std::span<const JsValue> arguments,
                                                        std::size_t bytes_max) {
  SW_TRY(const JsValue value, call(entry, arguments));
  if (value == JsValue::exception()) return std::optional<std::string>();
  const Owned owned(js_, value);
  auto text = js_.to_text(value, bytes_max);
  if (!text.ok() && text.error().code == ErrorCode::kLimitExceeded) {
    SW_CHECK_OK(js_.throw_out_of_memory());
    return std::optional<std::string>();
  }
  if (!text.ok()) return std::move(text).error();
  return std::optional(*std::move(text));
}

// --- a cell

std::uint64_t JavaScriptGuest::start_ns() const {
  return std::uint64_t{state_word(kStartWords + 4)} << 32 | state_word(kStartWords);
}

Result<void> JavaScriptGuest::after_restore() {
  cwd_ = kWorkspace;
  main_ = JsValue::undefined();
  rejections_.clear();
  rejection_of_.clear();
  rejections_uncounted_ = 0;
  if (state_word(kUsedWord) != 0) {
    SW_TRY(auto text, ask(Entry::kCurrentDirectory, {}, kPathBytesMax));
    if (!text) SW_CHECK_OK(drop_exception());
    // If the folder is gone, it is the workspace.
    if (text) (void)change_directory(*text);
  }
  return internals_.reseed(js_);
}

Result<void> JavaScriptGuest::begin(const Run& request, std::string_view file_name) {
  env_ = request.env;
  args_ = request.args;
  file_name_ = file_name;
  root_ = request.home ? wasi::kHomePath : kWorkspace;
  // One byte more shows that it is too long, and one says which kind of value it is.
  value_bytes_max_ = std::min(request.limits.result_bytes_max, kGuestBytesMax) + 2;
  exit_code_.reset();
  failed_ = false;
  exited_.reset();
  answering_ = false;
  main_rejection_handled_ = false;
  keep_reserve();
  if (state_word(kUsedWord) == 0) {
    set_state_word(kUsedWord, 1);
    const std::uint64_t now = wasi().monotonic_ns();
    set_state_word(kStartWords, static_cast<std::uint32_t>(now));
    set_state_word(kStartWords + 4, static_cast<std::uint32_t>(now >> 32));
    return request.cwd.empty() ? Result<void>() : begin_in(request.cwd);
  }
  return begin_again();
}

/// If the folder is gone, it stays where it is.
Result<void> JavaScriptGuest::begin_in(std::string_view folder) {
  (void)change_directory(folder);
  if (cwd_ == kWorkspace) return {};
  // What is restored from this memory is to go on there.
  SW_TRY(const JsValue noted, call(Entry::kNoteDirectory, {}));
  return js_.free(noted);
}

Result<void> JavaScriptGuest::begin_again() {
  SW_CHECK_OK(make_room());
  disarm(kArmTimers);
  disarm(kArmTicks);
  SW_CHECK_OK(internals_.free_jobs(js_, state_ + kAsideWord, [this] { return must_stop(); }));
  // Must not be stopped half way.
  answering_ = true;
  SW_TRY(const JsValue value, call(Entry::kResetRun, {}));
  answering_ = false;
  if (value == JsValue::exception()) return drop_exception();
  return js_.free(value);
}

Result<void> JavaScriptGuest::drop_exception() {
  SW_TRY(const JsValue problem, js_.take_exception());
  return js_.free(problem);
}

bool JavaScriptGuest::set_time_zone() {
  time_zone_ = TimeZone();
  const auto found = std::ranges::find(env_, "TZ", &std::pair<std::string, std::string>::first);
  if (found == env_.end()) return true;
  const auto zone = TimeZone::parse(found->second);
  if (zone) time_zone_ = *zone;
  return zone.has_value();
}

Result<Reply> JavaScriptGuest::evaluate(const Run& request, std::string_view file_name) {
  memory_max_ = instance().memory_bytes_max();
  refused_before_ = instance().refused_growths();
  Result<Reply> reply = run_cell(request, file_name);
  if (!reply.ok() && reply.error().code == ErrorCode::kLimitExceeded && !instance().poisoned()) {
    reply = run_out_of_memory();
  }
  instance().set_memory_bytes_max(memory_max_);
  if (!reply.ok()) return reply;
  return with_cwd(*std::move(reply));
}

Result<Reply> JavaScriptGuest::run_cell(const Run& request, std::string_view file_name) {
  SW_CHECK_OK(begin(request, file_name));
  if (!set_time_zone()) {
    return error_reply("RangeError", "unknown time zone in TZ");
  }
  SW_TRY(Compiled compiled, compile_cell(request, file_name));
  if (compiled.reply) return *std::move(compiled.reply);
  if (compiled.code == JsValue::exception()) return fail_to_compile(request.code, file_name);
  return run_compiled(compiled.code, file_name);
}

Result<Reply> JavaScriptGuest::run_compiled(JsValue code, std::string_view file_name) {
  Declarations declarations;
  SW_CHECK_OK(declarations.prepare(js_, internals_, code));
  SW_CHECK_OK(internals_.guard_value(js_, code));
  SW_TRY(const JsValue promise, js_.run(code));
  Progress progress;
  if (promise == JsValue::exception()) {
    SW_TRY(progress, uncaught_exception());
  } else {
    main_ = promise;
    SW_TRY(progress, run_loop());
  }
  Owned owned(js_, promise == JsValue::exception() ? JsValue::undefined() : promise);
  SW_TRY(Reply reply, progress || promise == JsValue::exception()
                          ? fail(std::move(progress), file_name)
                          : conclude(file_name));
  main_ = JsValue::undefined();
  if (reply.error || reply.exit_code) SW_CHECK_OK(declarations.undo_unreached(js_, internals_));
  return reply;
}

Result<Reply> JavaScriptGuest::conclude(std::string_view file_name) {
  SW_TRY(const auto state, js_.promise_state(main_));
  // a handler took the error
  if (state == QuickJs::PromiseState::kRejected) return answer(Owned(), file_name);
  if (state == QuickJs::PromiseState::kPending) return never_settled();
  SW_TRY(const JsValue result, js_.promise_result(main_));
  const Owned holder(js_, result);
  SW_TRY(const JsValue last, js_.get(result, value_atom_));
  Owned value(js_, last);
  SW_TRY(const bool is_promise, js_.is_promise(last));
  if (is_promise) {
    SW_TRY(const auto last_state, js_.promise_state(last));
    if (last_state == QuickJs::PromiseState::kPending) return never_settled();
    SW_TRY(const JsValue settled, js_.promise_result(last));
    value = Owned(js_, settled);
    if (last_state == QuickJs::PromiseState::kRejected)
      return fail(Failure{std::move(value)}, file_name);
  }
  return answer(std::move(value), file_name);
}

Reply JavaScriptGuest::with_cwd(Reply reply) {
  if (cwd_ != root_) {
    const auto stat = wasi().files().stat(cwd_);
    if (!stat.ok() || stat->type != wasi::FileType::kDirectory) cwd_ = root_;
  }
  reply.cwd = cwd_;
  return reply;
}

Result<void> JavaScriptGuest::finish() {
  if (exited_ || (state_word(kArmedWord) & kArmExit) == 0) return {};
  disarm(kArmExit);
  if (failed_) {  // what the cell left waiting is not for its listeners
    SW_TRY(const JsValue dropped, call(Entry::kDropTimers, {}));
    SW_CHECK_OK(js_.free(dropped));
  }
  SW_TRY(const JsValue before, call(Entry::kRunBeforeExit, {}));
  SW_CHECK_OK(js_.free(before));
  SW_TRY(const Progress progress, run_loop());
  if (progress || exited_) return {};
  SW_TRY(const JsValue value,
         call(Entry::kRunExitListeners,
              std::array{JsValue::of(JsValue::kInt, static_cast<std::uint32_t>(
                                                        exit_code_.value_or(failed_ ? 1 : 0)))}));
  return js_.free(value);
}

// --- for the host functions

wasi::Errno JavaScriptGuest::change_directory(std::string_view path) {
  SW_WASI_TRY(const std::string real, wasi().files().real_path(absolute(path)));
  SW_WASI_TRY(const wasi::Stat stat, wasi().files().stat(real));
  if (stat.type != wasi::FileType::kDirectory) return wasi::Errno::kNotdir;
  cwd_ = real;
  return wasi::Errno::kSuccess;
}

std::string JavaScriptGuest::absolute(std::string_view path) const {
  if (path.empty() || path.starts_with('/')) return std::string(path);
  return fmt::format("{}/{}", cwd_ == "/" ? "" : cwd_, path);
}

Result<JsValue> JavaScriptGuest::exit(std::int32_t code) {
  exited_ = code;
  SW_TRY(const std::uint64_t error,
         instance().call(js_.exports().new_error, js_.anchors().context));
  if (JsValue{error} == JsValue::exception()) return JsValue::exception();
  SW_CHECK_OK(instance().call(js_.exports().set_uncatchable, js_.anchors().context, error));
  SW_CHECK_OK(js_.throw_value(JsValue{error}));
  return JsValue::exception();
}

Result<bool> JavaScriptGuest::is_builtin_module(std::string_view name) {
  SW_TRY(const JsValue text, js_.new_string(name));
  const Owned owned(js_, text);
  SW_TRY(const JsValue answer, call(Entry::kHasBuiltin, std::array{text}));
  return answer == JsValue::boolean(true);
}

Result<std::string> JavaScriptGuest::builtin_module_source(std::string_view name) {
  SW_TRY(const JsValue text, js_.new_string(name));
  const Owned owned(js_, text);
  SW_TRY(auto source, ask(Entry::kBuiltinModuleSource, std::array{text}, kBuiltinBytesMax));
  return source ? *std::move(source) : std::string();
}

Result<void> JavaScriptGuest::throw_module_error(std::string_view message) {
  SW_TRY(const JsValue text, js_.new_string(message));
  const Owned owned(js_, text);
  SW_TRY(const JsValue error, call(Entry::kModuleError, std::array{text}));
  return js_.throw_value(error);
}

Result<bool> JavaScriptGuest::is_json(std::string_view text) {
  SW_TRY(const std::uint32_t address, js_.place(text));
  SW_TRY(const std::uint32_t name, js_.place("<json>"));
  SW_TRY(const std::uint64_t bits,
         instance().call(js_.exports().parse_json, js_.anchors().context, address,
                         static_cast<std::uint32_t>(text.size()), name));
  SW_CHECK_OK(js_.deallocate(address));
  SW_CHECK_OK(js_.deallocate(name));
  SW_CHECK_OK(js_.free(JsValue{bits}));
  return JsValue{bits} != JsValue::exception();
}

namespace {

// A small memory of our own that the WASI functions take for the guest's: one buffer's address and
// length, the result, then the bytes.
constexpr std::uint32_t kIovec = 0;
constexpr std::uint32_t kResult = 8;
constexpr std::uint32_t kData = 16;
constexpr std::size_t kBlockMax = std::size_t{1} << 20;

Bytes io_block(std::size_t size) {
  Bytes block(kData + size);
  const wasm::MemoryView view{std::span(block)};
  static_cast<void>(view.store(kIovec, kData));
  static_cast<void>(view.store(kIovec + 4, static_cast<std::uint32_t>(size)));
  return block;
}

}  // namespace

Result<wasi::ErrnoOr<std::size_t>> JavaScriptGuest::read_descriptor(
    std::uint32_t fd, std::span<std::byte> to, std::optional<std::uint64_t> offset) {
  using Answer = wasi::ErrnoOr<std::size_t>;
  Bytes block = io_block(std::min(to.size(), kBlockMax));
  const wasm::MemoryView view{std::span(block)};
  SW_TRY(const wasi::Errno error,
         offset ? wasi::calls::fd_pread(wasi(), view, fd, kIovec, 1, *offset, kResult)
                : wasi::calls::fd_read(wasi(), view, fd, kIovec, 1, kResult));
  if (error != wasi::Errno::kSuccess) return Answer(error);
  const std::size_t count =
      std::min<std::size_t>(view.load<std::uint32_t>(kResult).value_or(0), to.size());
  std::copy_n(block.begin() + kData, count, to.begin());
  return Answer(count);
}

Result<wasi::ErrnoOr<std::size_t>> JavaScriptGuest::write_descriptor(
    std::uint32_t fd, BytesView from, std::optional<std::uint64_t> offset) {
  using Answer = wasi::ErrnoOr<std::size_t>;
  std::size_t total = 0;
  do {
    const BytesView part = from.subspan(total, std::min(from.size() - total, kBlockMax));
    Bytes block = io_block(part.size());
    std::ranges::copy(part, block.begin() + kData);
    const wasm::MemoryView view{std::span(block)};
    SW_TRY(const wasi::Errno error,
           offset ? wasi::calls::fd_pwrite(wasi(), view, fd, kIovec, 1, *offset + total, kResult)
                  : wasi::calls::fd_write(wasi(), view, fd, kIovec, 1, kResult));
    if (error != wasi::Errno::kSuccess) return total > 0 ? Answer(total) : Answer(error);
    const auto count = view.load<std::uint32_t>(kResult).value_or(0);
    total += count;
    if (count < part.size()) break;
  } while (total < from.size());
  return Answer(total);
}

}  // namespace sw::engine::javascript
