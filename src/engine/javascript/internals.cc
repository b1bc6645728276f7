// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/internals.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "wasi/random.h"

namespace sw::engine::javascript {

namespace {

// A pending job: links to the next and the one before, the context, the function, the number of its
// arguments, the arguments.
constexpr std::uint32_t kJobContextAt = 8;
constexpr std::uint32_t kJobCountAt = 16;
constexpr std::uint32_t kJobArgumentsAt = 24;
constexpr std::uint32_t kJobArgumentsMax = 16;  // none has more than six
// Of a reaction to a promise: two functions that settle the promise it is for, the handler, whether
// it was rejected, with what.
constexpr std::uint32_t kReactionArguments = 5;
constexpr std::uint32_t kReactionIsRejected = 3;

// Jobs that are freed between two looks at the stop.
constexpr int kJobsPerLook = 64;

// The structures are searched this far from their start; the finds lie well inside.
constexpr std::uint32_t kContextBytes = 1024;
constexpr std::uint32_t kRuntimeBytes = 1024;
constexpr std::uint32_t kFunctionBytes = 64;

// What ends the code of a cell: put with its atom, return; and with the longest of what comes
// before.
constexpr std::uint32_t kPutAndReturnBytes = 6;
constexpr std::uint32_t kValueBytesMax = kPutAndReturnBytes + 5;

Error not_found(std::string_view what) {
  return Error{ErrorCode::kInternal, fmt::format("this build of QuickJS hides {}", what), 0};
}

std::uint64_t xorshift(std::uint64_t state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state;
}

Result<void> run_quietly(QuickJs& js, std::string_view code) {
  SW_TRY(const JsValue value, js.evaluate(code, "<probe>", 0));
  if (value == JsValue::exception()) return not_found(fmt::format("why '{}' fails", code));
  return js.free(value);
}

/// The object after the global object in the context is the one that holds a `let`.
Result<JsValue> find_global_variables(QuickJs& js) {
  SW_TRY(const std::uint64_t global,
         js.instance().call(js.exports().global_object, js.anchors().context));
  SW_CHECK_OK(run_quietly(js, "let probedLexical = 7"));
  SW_TRY(const std::uint32_t atom, js.new_atom("probedLexical"));
  for (std::uint32_t at = 0; at < kContextBytes; at += 8) {
    if (word<std::uint64_t>(js, js.anchors().context + at) != global) continue;
    const JsValue candidate{word<std::uint64_t>(js, js.anchors().context + at + 8)};
    if (!candidate.is(JsValue::kObject)) continue;
    SW_TRY(const JsValue value, js.get(candidate, atom));
    if (value != JsValue::of(JsValue::kInt, 7)) continue;
    SW_TRY(const std::int32_t deleted,
           js.instance().call(js.exports().delete_property, js.anchors().context, candidate.bits,
                              atom, 0));
    SW_CHECK_OK(js.free(JsValue{global}));
    if (deleted != 1) return not_found("how to delete a declaration");
    return candidate;
  }
  return not_found("its lexical declarations");
}

/// The word that makes one step of the generator when Math.random is called.
Result<std::uint32_t> find_random_state(QuickJs& js) {
  std::vector<std::uint64_t> before;
  for (std::uint32_t at = 0; at < kContextBytes; at += 8) {
    before.push_back(word<std::uint64_t>(js, js.anchors().context + at));
  }
  SW_CHECK_OK(run_quietly(js, "Math.random()"));
  std::optional<std::uint32_t> found;
  for (std::uint32_t at = 0; at < kContextBytes; at += 8) {
    const std::uint64_t old = before[at / 8];
    if (old == 0 || xorshift(old) != word<std::uint64_t>(js, js.anchors().context + at)) continue;
    if (found) return not_found("which word is the random generator's");
    found = js.anchors().context + at;
  }
  if (!found) return not_found("its random generator");
  return *found;
}

/// Does the job that waits, a reaction to a promise, look like one?
bool is_reaction(const QuickJs& js, std::uint32_t job) {
  const auto is_rejected = word<std::uint64_t>(js, job + kJobArgumentsAt + 8 * kReactionIsRejected);
  return word<std::uint32_t>(js, job + kJobContextAt) == js.anchors().context &&
         word<std::uint32_t>(js, job + kJobCountAt) == kReactionArguments &&
         JsValue{is_rejected} == JsValue::boolean(false);
}

/// The list that the interpreter asks when it is asked whether a job is pending: while one waits,
/// making each list of one element look empty for a moment shows which.
Result<std::uint32_t> find_job_list(QuickJs& js) {
  SW_CHECK_OK(run_quietly(js, "void Promise.resolve().then(() => 1)"));
  std::optional<std::uint32_t> found;
  for (std::uint32_t at = 0; at < kRuntimeBytes; at += 4) {
    const std::uint32_t head = js.anchors().runtime + at;
    const auto element = word<std::uint32_t>(js, head);
    const bool holds_one = element != head && word<std::uint32_t>(js, head + 4) == element &&
                           word<std::uint32_t>(js, element) == head &&
                           word<std::uint32_t>(js, element + 4) == head;
    if (!holds_one) continue;
    const auto set_links = [&](std::uint32_t next) {
      return js.memory().store(head, next) && js.memory().store(head + 4, next);
    };
    if (!set_links(head)) return not_found("its list of jobs");
    SW_TRY(const bool pending, js.is_job_pending());
    if (!set_links(element)) return not_found("its list of jobs");
    if (!pending && is_reaction(js, element)) found = head;
  }
  SW_TRY(const bool ran, js.run_job());
  SW_TRY(const bool pending, js.is_job_pending());
  if (!ran || pending || !found) return not_found("its list of jobs");
  return *found;
}

struct CodeLayout {
  std::uint32_t offset = 0;
  std::uint32_t opcode = 0;
};

/// A program that declares two names begins with two instructions that differ in the atom only.
Result<CodeLayout> find_code_layout(QuickJs& js) {
  SW_TRY(const std::uint32_t first, js.new_atom("probedOne"));
  SW_TRY(const std::uint32_t second, js.new_atom("probedTwo"));
  SW_TRY(const JsValue code,
         js.evaluate("let probedOne; var probedTwo;", "<probe>", kAsyncFlag | kCompileOnlyFlag));
  if (!code.is(JsValue::kBytecode)) return not_found("its compiled code");
  const Owned owned(js, code);
  for (std::uint32_t at = 0; at < kFunctionBytes; at += 4) {
    const auto start = word<std::uint32_t>(js, code.payload() + at);
    const auto next = start + kDeclareBytes;
    if (start == 0 || !js.memory().range(start, 2 * kDeclareBytes)) continue;
    if (word<std::uint8_t>(js, start) == word<std::uint8_t>(js, next) &&
        word<std::uint32_t>(js, start + 1) == first &&
        word<std::uint32_t>(js, next + 1) == second &&
        word<std::uint8_t>(js, start + kDeclareFlagsAt) == kLexicalFlag &&
        word<std::uint8_t>(js, next + kDeclareFlagsAt) == 0) {
      return CodeLayout{at, word<std::uint8_t>(js, start)};
    }
  }
  return not_found("the start of its compiled code");
}

/// Compiles `code`, and says where it gives an object the property `atom`.
Result<std::pair<Owned, std::uint32_t>> compile_property(QuickJs& js, std::string_view code,
                                                         std::uint32_t offset, std::uint32_t atom) {
  SW_TRY(const JsValue compiled, js.evaluate(code, "<probe>", kAsyncFlag | kCompileOnlyFlag));
  if (!compiled.is(JsValue::kBytecode)) return not_found("its compiled code");
  Owned owned(js, compiled);
  const auto start = word<std::uint32_t>(js, compiled.payload() + offset);
  for (std::uint32_t at = start; at < start + kFunctionBytes; ++at) {
    if (word<std::uint32_t>(js, at + 1) == atom) return std::pair(std::move(owned), at);
  }
  return not_found("how it makes objects");
}

}  // namespace

Result<Internals> Internals::find(QuickJs& js) {
  Internals internals;
  SW_TRY(internals.global_variables_, find_global_variables(js));
  SW_TRY(internals.random_state_, find_random_state(js));
  SW_TRY(internals.job_list_, find_job_list(js));
  SW_TRY(const CodeLayout layout, find_code_layout(js));
  internals.code_offset_ = layout.offset;
  internals.declare_opcode_ = layout.opcode;
  SW_CHECK_OK(internals.find_object_opcodes(js));
  SW_CHECK_OK(internals.check_guard(js));
  return internals;
}

Result<void> Internals::find_object_opcodes(QuickJs& js) {
  SW_TRY(value_atom_, js.new_atom("value"));
  SW_TRY(const std::uint32_t atom, js.new_atom("probedOne"));
  // Make the object, push the value, define.
  SW_TRY(const auto plain, compile_property(js, "({ probedOne: 1 })", code_offset_, atom));
  define_opcode_ = word<std::uint8_t>(js, plain.second);
  object_opcode_ = word<std::uint8_t>(js, plain.second - 2);
  SW_TRY(const auto bare,
         compile_property(js, "({ __proto__: null, probedOne: 1 })", code_offset_, atom));
  null_object_kind_ = word<std::uint8_t>(js, bare.second - 2);
  null_object_opcode_ = word<std::uint8_t>(js, bare.second - 3);
  return {};
}

Result<void> Internals::check_guard(QuickJs& js) const {
  SW_CHECK_OK(run_quietly(
      js,
      "for (const key of ['value', 'then']) Object.defineProperty(Object.prototype, key, "
      "{ __proto__: null, get() { throw 1 }, set() { throw 1 }, configurable: true })"));
  SW_TRY(const JsValue code, js.evaluate("7", "<probe>", kAsyncFlag | kCompileOnlyFlag));
  SW_CHECK_OK(guard_value(js, code));
  SW_TRY(const JsValue made, js.run(code));
  const Owned promise(js, made);
  SW_TRY(const auto state, js.promise_state(made));
  if (state != QuickJs::PromiseState::kFulfilled) return not_found("how it hands over a value");
  SW_TRY(const JsValue result, js.promise_result(made));
  const Owned holder(js, result);
  SW_TRY(const JsValue value, js.get(result, value_atom_));
  if (value != JsValue::of(JsValue::kInt, 7)) return not_found("how it hands over a value");
  return run_quietly(js, "delete Object.prototype.value; delete Object.prototype.then");
}

void Internals::add_to(BakeFacts& facts) const {
  facts["global_variables"] = global_variables_.bits;
  facts["random_state"] = random_state_;
  facts["job_list"] = job_list_;
  facts["code_offset"] = code_offset_;
  facts["declare_opcode"] = declare_opcode_;
  facts["value_atom"] = value_atom_;
  facts["object_opcode"] = object_opcode_;
  facts["null_object_opcode"] = null_object_opcode_;
  facts["null_object_kind"] = null_object_kind_;
  facts["define_opcode"] = define_opcode_;
}

Result<Internals> Internals::from_facts(const BakeFacts& facts) {
  Internals internals;
  SW_TRY(const auto variables, fact<std::uint64_t>(facts, "global_variables"));
  internals.global_variables_ = JsValue{variables};
  SW_TRY(internals.random_state_, fact<std::uint32_t>(facts, "random_state"));
  SW_TRY(internals.job_list_, fact<std::uint32_t>(facts, "job_list"));
  SW_TRY(internals.code_offset_, fact<std::uint32_t>(facts, "code_offset"));
  SW_TRY(internals.declare_opcode_, fact<std::uint32_t>(facts, "declare_opcode"));
  SW_TRY(internals.value_atom_, fact<std::uint32_t>(facts, "value_atom"));
  SW_TRY(internals.object_opcode_, fact<std::uint32_t>(facts, "object_opcode"));
  SW_TRY(internals.null_object_opcode_, fact<std::uint32_t>(facts, "null_object_opcode"));
  SW_TRY(internals.null_object_kind_, fact<std::uint32_t>(facts, "null_object_kind"));
  SW_TRY(internals.define_opcode_, fact<std::uint32_t>(facts, "define_opcode"));
  return internals;
}

Result<void> Internals::guard_value(QuickJs& js, JsValue code) const {
  // The last instructions: make an object, duplicate it, get a variable (of one to three bytes),
  // put it into the object as its value, return. Code that cannot reach its end has none.
  const auto start = word<std::uint32_t>(js, code.payload() + code_offset_);
  const auto size = word<std::uint32_t>(js, code.payload() + code_offset_ + 4);
  if (size < kValueBytesMax) return {};
  const std::uint32_t put = start + size - kPutAndReturnBytes;
  if (word<std::uint32_t>(js, put + 1) != value_atom_) return {};
  for (std::uint32_t object = put - 3; object >= put - 5; --object) {
    if (word<std::uint8_t>(js, object) != object_opcode_) continue;
    // The other way to make an object takes the place of the duplication, too, which is not needed:
    // to define a property leaves the object where it is.
    const bool stored =
        js.memory().store(object, static_cast<std::uint8_t>(null_object_opcode_)) &&
        js.memory().store(object + 1, static_cast<std::uint8_t>(null_object_kind_)) &&
        js.memory().store(put, static_cast<std::uint8_t>(define_opcode_));
    if (!stored) return Error{ErrorCode::kCorrupt, "compiled code is outside the memory", 0};
    return {};
  }
  return {};
}

Result<void> Internals::reseed(QuickJs& js) const {
  const auto state = js.memory().range(random_state_, 8);
  if (!state || wasi::fill_random(*state) != wasi::Errno::kSuccess) {
    return Error{ErrorCode::kUnavailable, "cannot get random bytes from the kernel", 0};
  }
  // The generator stays at zero for ever.
  if (word<std::uint64_t>(js, random_state_) == 0) (*state)[0] = std::byte{1};
  return {};
}

Result<void> Internals::set_aside_jobs(QuickJs& js, std::uint32_t list) const {
  const auto store = [&](std::uint32_t address, std::uint32_t value) {
    return js.memory().store(address, value);
  };
  const auto first = word<std::uint32_t>(js, job_list_);
  if (first == job_list_) return {};
  const auto last = word<std::uint32_t>(js, job_list_ + 4);
  // The list set aside ends with 0 and has links in one direction only.
  if (!store(last, word<std::uint32_t>(js, list)) || !store(list, first) ||
      !store(job_list_, job_list_) || !store(job_list_ + 4, job_list_)) {
    return Error{ErrorCode::kCorrupt, "the list of jobs is outside the memory", 0};
  }
  return {};
}

Result<void> Internals::free_jobs(QuickJs& js, std::uint32_t list,
                                  const std::function<bool()>& must_stop) const {
  for (int count = 1;; ++count) {
    const auto job = word<std::uint32_t>(js, list);
    if (job == 0 || (count % kJobsPerLook == 0 && must_stop())) return {};
    const auto arguments = word<std::uint32_t>(js, job + kJobCountAt);
    if (arguments > kJobArgumentsMax || !js.memory().store(list, word<std::uint32_t>(js, job))) {
      return Error{ErrorCode::kCorrupt, "the list of jobs is inconsistent", 0};
    }
    for (std::uint32_t i = 0; i < arguments; ++i) {
      SW_CHECK_OK(js.free(JsValue{word<std::uint64_t>(js, job + kJobArgumentsAt + 8 * i)}));
    }
    SW_CHECK_OK(js.free_raw(job));
  }
}

namespace {

Result<JsValue> internal_error_prototype(QuickJs& js, std::uint32_t context) {
  SW_TRY(const std::uint64_t global, js.instance().call(js.exports().global_object, context));
  const Owned owned_global(js, JsValue{global});
  SW_TRY(const JsValue made, js.get(owned_global.get(), "InternalError"));
  const Owned constructor(js, made);
  return js.get(constructor.get(), "prototype");
}

}  // namespace

Result<void> share_internal_error(QuickJs& js, std::uint32_t realm) {
  SW_TRY(const JsValue from, internal_error_prototype(js, realm));
  SW_TRY(const JsValue to, internal_error_prototype(js, js.anchors().context));
  std::optional<std::uint32_t> found;
  for (std::uint32_t at = 0; at < kContextBytes; at += 8) {
    if (word<std::uint64_t>(js, realm + at) != from.bits) continue;
    if (found) return not_found("which prototype its own errors get");
    found = realm + at;
  }
  // The references to both are kept: neither goes away as long as the image is used.
  if (!found || from == to || !from.is(JsValue::kObject) || !to.is(JsValue::kObject) ||
      !js.memory().store(*found, to.bits)) {
    return not_found("the prototype of its own errors");
  }
  return {};
}

}  // namespace sw::engine::javascript
