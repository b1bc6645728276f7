// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a cell answers: its value, or its error.

#include <fmt/format.h>

#include <cstring>

#include "engine/javascript/answers.h"
#include "engine/javascript/guest.h"
#include "engine/javascript/guest_text.h"
#include "engine/javascript/text.h"
#include "engine/json_text.h"

namespace sw::engine::javascript {

namespace {

constexpr std::string_view kNeverSettled =
    "the cell waits for a promise that can never settle: no timer, job or other event is left";

constexpr std::string_view kOutOfMemory = "out of memory";
constexpr std::string_view kInterrupted = "interrupted";
// What QuickJS says where there is no memory for the words of an error.
constexpr std::string_view kWordsMissing = "Invalid error message";
constexpr std::string_view kHowToFree =
    "the variables of this context hold all of its memory: free some of it (name = null), or raise "
    "the limit";

sw::Value text_value(std::string text) { return {sw::Value::Kind::kText, std::move(text)}; }

/// The line of `code`, from 1; "" if it has fewer.
std::string_view line_of(std::string_view code, std::int64_t number) {
  for (; number > 1; --number) {
    const std::size_t end = code.find('\n');
    if (end == std::string_view::npos) return {};
    code.remove_prefix(end + 1);
  }
  return code.substr(0, code.find('\n'));
}

/// "import x from 'y'" and "export …" are for modules; QuickJS says only that it did not expect
/// them.
std::optional<std::string_view> module_keyword(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  for (const std::string_view keyword : {"import", "export"}) {
    if (!line.starts_with(keyword)) continue;
    const std::string_view rest = line.substr(keyword.size());
    if (!rest.empty() && std::strchr(" \t{*'\"", rest.front()) != nullptr) return keyword;
  }
  return std::nullopt;
}

}  // namespace

Result<Reply> JavaScriptGuest::answer(Owned value, std::string_view file_name) {
  Reply reply;
  if (exit_code_ && *exit_code_ != 0) reply.exit_code = *exit_code_ & 0xFF;
  const JsValue shown = value.get();
  switch (shown.tag()) {
    case JsValue::kUndefined: return reply;
    case JsValue::kNull: reply.value = text_value("null"); return reply;
    case JsValue::kBool: reply.value = text_value(shown.as_bool() ? "true" : "false"); return reply;
    case JsValue::kInt:
      reply.value = text_value(fmt::format("{}", static_cast<std::int32_t>(shown.payload())));
      return reply;
    case JsValue::kFloat: {
      SW_TRY(std::string text, js_.number_text(shown));
      reply.value = text_value(std::move(text));
      return reply;
    }
    case JsValue::kString:
    case JsValue::kRope: {
      // Each of its units takes a byte at least. There may be no memory to write so long a text as
      // UTF-8.
      SW_TRY(const JsValue length, js_.get(shown, length_atom_));
      reply.value_too_long = length.as_number() >= static_cast<double>(value_bytes_max_);
      if (reply.value_too_long) return reply;
      SW_TRY(GuestText text, GuestText::of(js_, shown));
      SW_TRY(std::string quoted, text.quoted(value_bytes_max_));
      reply.value = text_value(std::move(quoted));
      return reply;
    }
    default: return answer_with(shown, std::move(reply), file_name);
  }
}

Result<Reply> JavaScriptGuest::answer_with(JsValue shown, Reply reply, std::string_view file_name) {
  // First as JSON. What is nested too deeply for that is shown as text.
  for (const bool as_text : {false, true}) {
    const std::array arguments = {shown, JsValue::boolean(as_text),
                                  JsValue::number(static_cast<double>(value_bytes_max_))};
    SW_TRY(auto answer, ask(Entry::kShowValue, arguments, value_bytes_max_));
    if (!answer) {
      SW_TRY(Progress progress, uncaught_exception());
      return fail(std::move(progress), file_name);
    }
    SW_TRY(Shown text, parse_shown(*std::move(answer), value_bytes_max_));
    reply.value_too_long = text.kind == Shown::Kind::kTooLong;
    if (reply.value_too_long) return reply;
    if (text.kind == Shown::Kind::kText) {
      reply.value = text_value(without_lone_surrogates(std::move(text.text)));
      return reply;
    }
    if (auto json = normal_json(text.text)) {
      reply.value = sw::Value{sw::Value::Kind::kJson, *std::move(json)};
      return reply;
    }
  }
  return Error{ErrorCode::kCorrupt, "invalid answer from its driver", 0};
}

Result<Reply> JavaScriptGuest::never_settled() {
  SW_CHECK_OK(abandon());
  return error_reply("Error", std::string(kNeverSettled));
}

Result<Reply> JavaScriptGuest::fail(Progress progress, std::string_view file_name) {
  failed_ = true;
  // What is asked of the interpreter from here on must not be stopped by the stop that brought us
  // here.
  answering_ = stop_.load(std::memory_order_acquire);
  if (was_growth_refused()) lend_reserve();
  Reply reply;
  if (exited_) {
    reply.exit_code = *exited_ & 0xFF;
  } else if (!progress || progress->reason.get() == JsValue::undefined()) {
    // A `throw undefined` comes here too; a stop between two jobs has no value either.
    reply = must_stop() ? error_reply("InternalError", std::string(kInterrupted))
                        : error_reply("Error", "undefined");
  } else if (is_lack_of_memory(progress->reason.get())) {
    reply = error_reply("InternalError", std::string(kOutOfMemory));
  } else {
    SW_TRY(GuestError error, describe(progress->reason.get(), file_name));
    reply.error = std::move(error);
  }
  progress.reset();
  SW_CHECK_OK(abandon());
  if (reply.error && is_out_of_memory(*reply.error)) {
    SW_TRY(const bool full, is_full());
    if (full) reply.error->traceback.emplace_back(kHowToFree);
  }
  return reply;
}

Result<Reply> JavaScriptGuest::run_out_of_memory() {
  SW_CHECK_OK(drop_exception());
  return fail(Failure{Owned(js_, JsValue::of(JsValue::kNull))}, file_name_);
}

/// Where there is no memory for an error's object, null is thrown, or nothing.
bool JavaScriptGuest::is_lack_of_memory(JsValue reason) const {
  return was_growth_refused() && (reason.is(JsValue::kNull) || reason.is(JsValue::kUninitialized));
}

Result<Reply> JavaScriptGuest::fail_to_compile(std::string_view code, std::string_view file_name) {
  SW_TRY(const JsValue problem, js_.take_exception());
  SW_TRY(Reply reply, fail(Failure{Owned(js_, problem)}, file_name));
  if (reply.error && reply.error->name == "SyntaxError" && reply.error->line_number) {
    if (const auto keyword = module_keyword(line_of(code, *reply.error->line_number))) {
      reply.error->message =
          *keyword == "import"
              ? "import declarations are only allowed at the top level of a cell; elsewhere use "
                "`await "
                "import(…)`"
              : "a cell cannot export; its top-level names are visible to later cells anyway";
      if (!reply.error->traceback.empty())
        reply.error->traceback[0] = "SyntaxError: " + reply.error->message;
    }
  }
  return reply;
}

Reply JavaScriptGuest::error_reply(std::string name, std::string message) {
  Reply reply;
  reply.error = GuestError{
      .name = name, .message = message, .traceback = {name + ": " + message}, .line_number = {}};
  return reply;
}

Result<GuestError> JavaScriptGuest::describe(JsValue reason, std::string_view file_name) {
  SW_TRY(const JsValue name, js_.new_string(file_name));
  const Owned file(js_, name);
  const JsValue quietly = JsValue::boolean(answering_);
  SW_TRY(auto text,
         ask(Entry::kDescribeError, std::array{reason, name, quietly}, kReplyHeadBytesMax));
  if (!text) {
    // Even to describe the error there is not enough memory or stack; or the stop came now.
    SW_CHECK_OK(drop_exception());
    return *error_reply("InternalError", std::string(must_stop() ? kInterrupted : kOutOfMemory))
                .error;
  }
  SW_TRY(GuestError error, parse_error(*std::move(text)));
  if (was_growth_refused() && error.message == kWordsMissing) {
    error = *error_reply("InternalError", std::string(kOutOfMemory)).error;
  }
  return error;
}

bool JavaScriptGuest::is_out_of_memory(const GuestError& error) const {
  return error.name == "InternalError" && error.message == kOutOfMemory;
}

Result<void> JavaScriptGuest::abandon() {
  // Freeing a million jobs or timers takes longer than a run that was told to stop may still take:
  // the next one does it.
  disarm(kArmTimers);
  disarm(kArmTicks);
  SW_CHECK_OK(internals_.set_aside_jobs(js_, state_ + kAsideWord));
  answering_ = true;
  const Result<void> forgotten = forget_rejections();
  answering_ = false;
  return forgotten;
}

}  // namespace sw::engine::javascript
