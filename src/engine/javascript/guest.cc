// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/guest.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/json.hpp>
#include <charconv>
#include <cstring>

#include "engine/javascript/text.h"
#include "sandbox_workers/wasi/calls.h"

namespace sw::engine::javascript {

namespace {

namespace json = boost::json;

constexpr std::uint64_t kGuestBytesMax = std::uint64_t{4} << 30;
// A longer cell that is no JavaScript must be said to be TypeScript: looking for types in it takes seconds.
constexpr std::size_t kGuessBytesMax = std::size_t{256} << 10;
constexpr std::string_view kWorkspace = "/workspace";
constexpr std::string_view kNeverSettled =
    "the cell waits for a promise that can never settle: no timer, job or other event is left";

engine::Value text_value(std::string text) { return {engine::Value::Kind::kText, std::move(text)}; }

/// The line of `code`, from 1.
std::string_view line_of(std::string_view code, std::int64_t number) {
  for (; number > 1 && !code.empty(); --number) code.remove_prefix(std::min(code.find('\n') + 1, code.size()));
  return code.substr(0, code.find('\n'));
}

/// "import x from 'y'" and "export …" are for modules; QuickJS says only that it did not expect them.
std::optional<std::string_view> module_keyword(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  for (const std::string_view keyword : {"import", "export"}) {
    if (!line.starts_with(keyword)) continue;
    const std::string_view rest = line.substr(keyword.size());
    if (!rest.empty() && std::strchr(" \t{*'\"", rest.front()) != nullptr) return keyword;
  }
  return std::nullopt;
}

bool is_typescript(std::string_view alias) {
  return std::ranges::any_of(std::array{"typescript", "ts", "mts", "cts"},
                             [&](const char* name) { return boost::algorithm::iequals(alias, name); });
}

}  // namespace

bool is_typescript_file(std::string_view path) {
  return path.ends_with(".ts") || path.ends_with(".mts") || path.ends_with(".cts");
}

JavaScriptGuest::JavaScriptGuest(std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks,
                                 const Manifest& manifest)
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

Result<Value> JavaScriptGuest::call(Entry entry, std::span<const Value> arguments) {
  return js_.call(entries_[static_cast<std::size_t>(entry)], arguments);
}

Result<std::optional<std::string>> JavaScriptGuest::ask(Entry entry, std::span<const Value> arguments,
                                                        std::size_t bytes_max) {
  SW_TRY(const Value value, call(entry, arguments));
  if (value == Value::exception()) return std::optional<std::string>();
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
  main_ = Value::undefined();
  rejections_.clear();
  if (state_word(kUsedWord) != 0) {
    SW_TRY(const auto text, ask(Entry::kCurrentDirectory, {}));
    if (text) cwd_ = *text;
  }
  return internals_.reseed(js_);
}

Result<void> JavaScriptGuest::begin(const RunRequest& request, std::string_view file_name) {
  env_ = request.env;
  args_ = request.args;
  file_name_ = file_name;
  // One byte more shows that it is too long, and one says which kind of value it is.
  value_bytes_max_ = std::min(request.limits.result_bytes_max, kGuestBytesMax) + 2;
  exit_code_.reset();
  failed_ = false;
  exited_.reset();
  answering_ = false;
  main_rejection_handled_ = false;
  if (state_word(kUsedWord) == 0) {
    set_state_word(kUsedWord, 1);
    const std::uint64_t now = wasi().monotonic_ns();
    set_state_word(kStartWords, static_cast<std::uint32_t>(now));
    set_state_word(kStartWords + 4, static_cast<std::uint32_t>(now >> 32));
    // If the folder is gone, it stays where it is.
    if (!request.cwd.empty()) (void)change_directory(request.cwd);
    return {};
  }
  disarm(kArmTimers);
  disarm(kArmTicks);
  SW_TRY(const Value value, call(Entry::kResetRun, {}));
  return js_.free(value);
}

bool JavaScriptGuest::set_time_zone() {
  time_zone_ = TimeZone();
  const auto found = std::ranges::find(env_, "TZ", &std::pair<std::string, std::string>::first);
  if (found == env_.end()) return true;
  const auto zone = TimeZone::parse(found->second);
  if (zone) time_zone_ = *zone;
  return zone.has_value();
}

Result<Reply> JavaScriptGuest::evaluate(const RunRequest& request, std::string_view file_name) {
  SW_CHECK_OK(begin(request, file_name));
  if (!set_time_zone()) {
    return with_cwd(
        error_reply("RangeError", "the environment variable TZ names no time zone that is known here"));
  }
  SW_TRY(Compiled compiled, compile_cell(request, file_name));
  if (compiled.reply) return with_cwd(*std::move(compiled.reply));
  SW_TRY(Reply reply, compiled.code == Value::exception() ? fail_to_compile(request.code, file_name)
                                                          : run_compiled(compiled.code, file_name));
  return with_cwd(std::move(reply));
}

Result<JavaScriptGuest::Compiled> JavaScriptGuest::compile_cell(const RunRequest& request,
                                                                std::string_view file_name) {
  if (is_typescript(request.alias) || is_typescript_file(file_name)) {
    SW_TRY(Compiled compiled, compile_typescript(request.code, file_name));
    if (compiled.code != Value::exception() || !compiled.reply) return compiled;
    // The parser of types has gaps of its own; what is plain JavaScript needs none.
    SW_TRY(compiled.code, compile_javascript(request.code, file_name));
    if (compiled.code != Value::exception()) return Compiled{.code = compiled.code, .reply = {}};
    SW_CHECK_OK(drop_exception());
    return compiled;
  }
  SW_TRY(const Value code, compile_javascript(request.code, file_name));
  if (code != Value::exception() || request.code.size() > kGuessBytesMax)
    return Compiled{.code = code, .reply = {}};
  SW_TRY(const Value thrown, js_.take_exception());
  Owned problem(js_, thrown);
  SW_TRY(const Stripped stripped, strip_types(request.code, false));
  if (stripped.kind == Stripped::Kind::kUnsupported) {
    return Compiled{.code = Value::exception(), .reply = syntax_error(stripped, file_name)};
  }
  if (stripped.kind == Stripped::Kind::kJavaScript && stripped.text != request.code) {
    // If this fails too, it is for another reason than types, and that is the one to tell.
    SW_TRY(const Value again, compile_javascript(stripped.text, file_name));
    return Compiled{.code = again, .reply = {}};
  }
  // Of two parsers that refuse it, the one that came further understood what it is.
  SW_TRY(const GuestError as_javascript, describe(problem.get(), file_name));
  if (stripped.kind == Stripped::Kind::kInvalid && stripped.line > as_javascript.line_number.value_or(0)) {
    return Compiled{.code = Value::exception(), .reply = syntax_error(stripped, file_name)};
  }
  SW_CHECK_OK(js_.throw_value(problem.release()));
  return Compiled{};
}

Result<JavaScriptGuest::Compiled> JavaScriptGuest::compile_typescript(std::string_view code,
                                                                      std::string_view file_name) {
  SW_TRY(const Stripped stripped, strip_types(code, false));
  if (stripped.kind != Stripped::Kind::kJavaScript) {
    return Compiled{.code = Value::exception(), .reply = syntax_error(stripped, file_name)};
  }
  SW_TRY(const Value compiled, compile_javascript(stripped.text, file_name));
  return Compiled{.code = compiled, .reply = {}};
}

Result<Value> JavaScriptGuest::compile_javascript(std::string_view code, std::string_view file_name) {
  SW_TRY(const Value compiled, compile(code, file_name));
  if (compiled != Value::exception() || code.find("import") == std::string_view::npos) return compiled;
  return compile_with_imports(code, file_name);
}

Result<void> JavaScriptGuest::drop_exception() {
  SW_TRY(const Value problem, js_.take_exception());
  return js_.free(problem);
}

Result<JavaScriptGuest::Stripped> JavaScriptGuest::strip_types(std::string_view code, bool is_module) {
  SW_TRY(const Value text, js_.new_string(code));
  const Owned source(js_, text);
  SW_TRY(auto answer,
         ask(Entry::kStripTypes, std::array{text, Value::boolean(is_module), Value::boolean(!is_module)}));
  if (!answer) {
    SW_CHECK_OK(drop_exception());
    return Stripped{
        .kind = Stripped::Kind::kInvalid, .text = "too deeply nested to find the types in it", .line = 0};
  }
  if (answer->starts_with('=')) {
    return Stripped{.kind = Stripped::Kind::kJavaScript, .text = answer->substr(1), .line = 0};
  }
  Stripped stripped;
  stripped.kind = answer->starts_with('!') ? Stripped::Kind::kUnsupported : Stripped::Kind::kInvalid;
  const std::size_t colon = std::min(answer->find(':'), answer->size() - 1);
  static_cast<void>(std::from_chars(answer->data() + 1, answer->data() + colon, stripped.line));
  stripped.text = answer->substr(colon + 1);
  return stripped;
}

Reply JavaScriptGuest::syntax_error(const Stripped& problem, std::string_view file_name) {
  Reply reply = error_reply("SyntaxError", problem.text);
  if (problem.line > 0) {
    reply.error->line_number = problem.line;
    reply.error->traceback.push_back(fmt::format("    at {}:{}", file_name, problem.line));
  }
  return reply;
}

Result<Value> JavaScriptGuest::compile(std::string_view code, std::string_view file_name) {
  const std::size_t bytes = code.size() + file_name.size() + 2;
  std::uint32_t address = code_buffer_;
  if (bytes > kCodeBufferBytes) {
    SW_TRY(address, js_.allocate(bytes));
  }
  const auto to = memory().range(address, bytes);
  if (address == 0 || !to) {
    SW_CHECK_OK(js_.throw_out_of_memory());
    return Value::exception();
  }
  const auto name = to->subspan(code.size() + 1);
  std::ranges::copy(as_bytes(code), to->begin());
  (*to)[code.size()] = std::byte{0};
  std::ranges::copy(as_bytes(file_name), name.begin());
  name[file_name.size()] = std::byte{0};
  SW_TRY(const Value compiled,
         js_.compile(address, code.size(), address + static_cast<std::uint32_t>(code.size()) + 1,
                     kAsyncFlag | kCompileOnlyFlag));
  if (address != code_buffer_) SW_CHECK_OK(js_.deallocate(address));
  return compiled;
}

Result<Value> JavaScriptGuest::compile_with_imports(std::string_view code, std::string_view file_name) {
  SW_TRY(const Value thrown, js_.take_exception());
  Owned problem(js_, thrown);
  SW_TRY(const Value text, js_.new_string(code));
  const Owned source(js_, text);
  SW_TRY(const auto rewritten, ask(Entry::kRewriteImports, std::array{text}));
  if (rewritten && !rewritten->empty()) return compile(*rewritten, file_name);
  SW_CHECK_OK(js_.throw_value(problem.release()));
  return Value::exception();
}

Result<Reply> JavaScriptGuest::run_compiled(Value code, std::string_view file_name) {
  Declarations declarations;
  SW_CHECK_OK(declarations.prepare(js_, internals_, code));
  SW_TRY(const Value promise, js_.run(code));
  Progress progress;
  if (promise == Value::exception()) {
    SW_TRY(progress, uncaught_exception());
  } else {
    main_ = promise;
    SW_TRY(progress, run_loop());
  }
  Owned owned(js_, promise == Value::exception() ? Value::undefined() : promise);
  SW_TRY(Reply reply,
         progress || promise == Value::exception() ? fail(std::move(progress), file_name) : conclude(file_name));
  main_ = Value::undefined();
  if (reply.error || reply.exit_code) SW_CHECK_OK(declarations.undo_unreached(js_, internals_));
  return reply;
}

Result<Reply> JavaScriptGuest::conclude(std::string_view file_name) {
  SW_TRY(const auto state, js_.promise_state(main_));
  if (state == QuickJs::PromiseState::kRejected) return answer(Owned(), file_name);  // a handler took the error
  if (state == QuickJs::PromiseState::kPending) return never_settled();
  SW_TRY(const Value result, js_.promise_result(main_));
  const Owned holder(js_, result);
  SW_TRY(const Value last, js_.get(result, value_atom_));
  Owned value(js_, last);
  SW_TRY(const bool is_promise, js_.is_promise(last));
  if (is_promise) {
    SW_TRY(const auto last_state, js_.promise_state(last));
    if (last_state == QuickJs::PromiseState::kPending) return never_settled();
    SW_TRY(const Value settled, js_.promise_result(last));
    value = Owned(js_, settled);
    if (last_state == QuickJs::PromiseState::kRejected) return fail(Failure{std::move(value)}, file_name);
  }
  return answer(std::move(value), file_name);
}

// --- the answer

Result<Reply> JavaScriptGuest::answer(Owned value, std::string_view file_name) {
  Reply reply;
  if (exit_code_ && *exit_code_ != 0) reply.exit_code = *exit_code_ & 0xFF;
  const Value shown = value.get();
  switch (shown.tag()) {
    case Value::kUndefined: return reply;
    case Value::kNull: reply.value = text_value("null"); return reply;
    case Value::kBool: reply.value = text_value(shown.as_bool() ? "true" : "false"); return reply;
    case Value::kInt:
      reply.value = text_value(fmt::format("{}", static_cast<std::int32_t>(shown.payload())));
      return reply;
    case Value::kFloat: {
      SW_TRY(std::string text, js_.number_text(shown));
      reply.value = text_value(std::move(text));
      return reply;
    }
    case Value::kString:
    case Value::kRope: {
      SW_TRY(std::string text, js_.to_text(shown, value_bytes_max_));
      reply.value = text_value(quoted_text(without_lone_surrogates(std::move(text))));
      return reply;
    }
    default: break;
  }
  SW_TRY(auto text, ask(Entry::kShowValue, std::array{shown}, value_bytes_max_));
  if (text && text->size() == value_bytes_max_) {
    reply.value = text_value(text->substr(1));  // too long, whatever it is
    return reply;
  }
  if (text && text->starts_with('j')) {
    std::string json = without_surrogate_escapes(text->substr(1));
    if (is_plain_json(json)) {
      reply.value = engine::Value{engine::Value::Kind::kJson, std::move(json)};
      return reply;
    }
    SW_TRY(text, ask(Entry::kShowValue, std::array{shown, Value::boolean(true)},
                     value_bytes_max_));  // nested too deeply
  }
  if (!text) {
    SW_TRY(Progress progress, uncaught_exception());
    return fail(std::move(progress), file_name);
  }
  reply.value = text_value(without_lone_surrogates(text->substr(1)));
  return reply;
}

Result<Reply> JavaScriptGuest::never_settled() {
  SW_CHECK_OK(abandon());
  return error_reply("Error", std::string(kNeverSettled));
}

Result<Reply> JavaScriptGuest::fail(Progress progress, std::string_view file_name) {
  failed_ = true;
  // What is asked of the interpreter from here on must not be stopped by the stop that brought us here.
  answering_ = stop_.load(std::memory_order_acquire);
  Reply reply;
  if (exited_) {
    reply.exit_code = *exited_ & 0xFF;
  } else if (!progress || progress->reason.get() == Value::undefined()) {
    // A `throw undefined` comes here too; a stop between two jobs has no value either.
    reply = must_stop() ? error_reply("InternalError", "interrupted") : error_reply("Error", "undefined");
  } else {
    SW_TRY(GuestError error, describe(progress->reason.get(), file_name));
    reply.error = std::move(error);
  }
  progress.reset();
  SW_CHECK_OK(abandon());
  answering_ = false;
  return reply;
}

Result<Reply> JavaScriptGuest::fail_to_compile(std::string_view code, std::string_view file_name) {
  SW_TRY(const Value problem, js_.take_exception());
  SW_TRY(Reply reply, fail(Failure{Owned(js_, problem)}, file_name));
  if (reply.error && reply.error->name == "SyntaxError" && reply.error->line_number) {
    if (const auto keyword = module_keyword(line_of(code, *reply.error->line_number))) {
      reply.error->message =
          *keyword == "import"
              ? "import declarations stand at the top level of a cell; elsewhere use `await import(…)`"
              : "a cell cannot export; its top-level names are seen by later cells anyway";
      if (!reply.error->traceback.empty()) reply.error->traceback[0] = "SyntaxError: " + reply.error->message;
    }
  }
  return reply;
}

Reply JavaScriptGuest::error_reply(std::string name, std::string message) {
  Reply reply;
  reply.error =
      GuestError{.name = name, .message = message, .traceback = {name + ": " + message}, .line_number = {}};
  return reply;
}

Result<GuestError> JavaScriptGuest::describe(Value reason, std::string_view file_name) {
  SW_TRY(const Value name, js_.new_string(file_name));
  const Owned file(js_, name);
  SW_TRY(auto text, ask(Entry::kDescribeError, std::array{reason, name}, kReplyHeadBytesMax));
  if (!text) {
    // Even to describe the error there is not enough memory or stack.
    SW_TRY(const Value problem, js_.take_exception());
    SW_CHECK_OK(js_.free(problem));
    return GuestError{.name = "InternalError", .message = "out of memory", .traceback = {}, .line_number = {}};
  }
  auto reply = parse_reply("{\"error\":" + without_surrogate_escapes(*std::move(text)) + "}");
  if (!reply.ok()) return std::move(reply).error();
  return *std::move(reply->error);
}

bool JavaScriptGuest::is_out_of_memory(const GuestError& error) const {
  return error.name == "InternalError" && error.message == "out of memory";
}

Result<void> JavaScriptGuest::abandon() {
  SW_CHECK_OK(forget_rejections());
  SW_CHECK_OK(internals_.drop_jobs(js_));
  if (disarm(kArmTimers) || disarm(kArmTicks)) {
    SW_TRY(const Value value, call(Entry::kDropTimers, {}));
    SW_CHECK_OK(js_.free(value));
  }
  return {};
}

Reply JavaScriptGuest::with_cwd(Reply reply) {
  if (cwd_ != kWorkspace) {
    const auto stat = wasi().files().stat(cwd_);
    if (!stat.ok() || stat->type != wasi::FileType::kDirectory) cwd_ = kWorkspace;
  }
  reply.cwd = cwd_;
  return reply;
}

Result<void> JavaScriptGuest::finish() {
  if (exited_ || (state_word(kArmedWord) & kArmExit) == 0) return {};
  disarm(kArmExit);
  SW_TRY(const Value before, call(Entry::kRunBeforeExit, {}));
  SW_CHECK_OK(js_.free(before));
  SW_TRY(const Progress progress, run_loop());
  if (progress || exited_) return {};
  SW_TRY(
      const Value value,
      call(Entry::kRunExitListeners,
           std::array{Value::of(Value::kInt, static_cast<std::uint32_t>(exit_code_.value_or(failed_ ? 1 : 0)))}));
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

Result<Value> JavaScriptGuest::exit(std::int32_t code) {
  exited_ = code;
  SW_TRY(const std::uint64_t error, instance().call(js_.exports().new_error, js_.anchors().context));
  if (Value{error} == Value::exception()) return Value::exception();
  SW_CHECK_OK(instance().call(js_.exports().set_uncatchable, js_.anchors().context, error));
  SW_CHECK_OK(js_.throw_value(Value{error}));
  return Value::exception();
}

Result<bool> JavaScriptGuest::is_builtin_module(std::string_view name) {
  SW_TRY(const Value text, js_.new_string(name));
  const Owned owned(js_, text);
  SW_TRY(const Value answer, call(Entry::kHasBuiltin, std::array{text}));
  return answer == Value::boolean(true);
}

Result<std::string> JavaScriptGuest::builtin_module_source(std::string_view name) {
  SW_TRY(const Value text, js_.new_string(name));
  const Owned owned(js_, text);
  SW_TRY(auto source, ask(Entry::kBuiltinModuleSource, std::array{text}));
  return source ? *std::move(source) : std::string();
}

Result<void> JavaScriptGuest::throw_module_error(std::string_view message) {
  SW_TRY(const Value text, js_.new_string(message));
  const Owned owned(js_, text);
  SW_TRY(const Value error, call(Entry::kModuleError, std::array{text}));
  return js_.throw_value(error);
}

Result<bool> JavaScriptGuest::is_json(std::string_view text) {
  SW_TRY(const std::uint32_t address, js_.place(text));
  SW_TRY(const std::uint32_t name, js_.place("<json>"));
  SW_TRY(const std::uint64_t bits, instance().call(js_.exports().parse_json, js_.anchors().context, address,
                                                   static_cast<std::uint32_t>(text.size()), name));
  SW_CHECK_OK(js_.deallocate(address));
  SW_CHECK_OK(js_.deallocate(name));
  SW_CHECK_OK(js_.free(Value{bits}));
  return Value{bits} != Value::exception();
}

namespace {

// A small memory of our own that the WASI functions take for the guest's: one buffer's address and length, the
// result, then the bytes.
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

Result<wasi::ErrnoOr<std::size_t>> JavaScriptGuest::read_descriptor(std::uint32_t fd, std::span<std::byte> to,
                                                                    std::optional<std::uint64_t> offset) {
  using Answer = wasi::ErrnoOr<std::size_t>;
  Bytes block = io_block(std::min(to.size(), kBlockMax));
  const wasm::MemoryView view{std::span(block)};
  SW_TRY(const wasi::Errno error, offset ? wasi::calls::fd_pread(wasi(), view, fd, kIovec, 1, *offset, kResult)
                                         : wasi::calls::fd_read(wasi(), view, fd, kIovec, 1, kResult));
  if (error != wasi::Errno::kSuccess) return Answer(error);
  const std::size_t count = std::min<std::size_t>(view.load<std::uint32_t>(kResult).value_or(0), to.size());
  std::copy_n(block.begin() + kData, count, to.begin());
  return Answer(count);
}

Result<wasi::ErrnoOr<std::size_t>> JavaScriptGuest::write_descriptor(std::uint32_t fd, BytesView from,
                                                                     std::optional<std::uint64_t> offset) {
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
