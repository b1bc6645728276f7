// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// From an instance that holds only the module's data to an interpreter with the driver loaded, at
// bake; and from the facts noted then to an interpreter ready to use, ever after.

#include <fmt/format.h>

#include "engine/javascript/guest.h"
#include "engine/javascript/host_api.h"

namespace sw::engine::javascript {

namespace {

// The module's C stack has 1 MiB; the rest is for the frames between the interpreter's checks.
constexpr std::uint32_t kStackBytes = 512 << 10;

constexpr std::string_view kDriverFile = "sandbox:driver";
// Of the manifest's drivers, those for the realm.
constexpr std::string_view kRealmFolder = "realm/";

constexpr std::array<std::string_view, kEntryCount> kEntryNames = {
    "showValue",  "describeError",    "runTimers",        "runTicks",      "dropTimers",
    "resetRun",   "runExitListeners", "runBeforeExit",    "offerUncaught", "builtinModuleSource",
    "hasBuiltin", "moduleError",      "currentDirectory", "noteDirectory", "rewriteImports",
    "stripTypes"};

// One piece of guest memory, so that a run dirties few pages: scratch, state words, buffer for
// short cells.
constexpr std::uint32_t kStateBytes = 24;

// Grown and freed again, so that an ordinary run finds room without growing the memory: an instance
// whose memory grew cannot be kept for the next run. Untouched pages of an image are holes and cost
// nothing.
constexpr std::size_t kHeadroomBytes = std::size_t{4} << 20;

/// Cells that leave nothing behind and walk the paths that runs take: what the engine makes when
/// first used is then part of the image. Each may fail; that is a path too.
constexpr std::string_view kWarmUp[] = {
    "1 + 1",
    "'text'",
    "[1.5, { a: [1, 2, 3], b: 'x' }, null]",
    "console.log('a', 1, { a: 1, b: ['x', new Map([[1, 2]])], c: new Set([1]) }); "
    "console.error(new Error('e'))",
    "await new Promise((done) => setTimeout(done, 0))",
    "throw new TypeError('t')",
    "x = = 1",
    "(() => { try { null.x } catch (error) { return error.stack.length } })()",
    "JSON.stringify({ a: [1] }) + new Date(0).toISOString() + /a/.exec('a').index + process.env.X "
    "+ Math.max(1, "
    "2)",
    "fs.writeFileSync('/tmp/x', 'x'); fs.readFileSync('/tmp/x', 'utf8'); fs.rmSync('/tmp/x')",
    "Promise.reject(new Error('r'))",
    "(() => { enum E { A } const t: number = E.A; return t })()",
    "(() => { class A { #x = 1; get x() { return this.#x } } return Object.entries({ a: new A().x "
    "})"
    ".map(([k, v]) => `${k}${v}`).join() })()",
};

Error thrown(std::string_view what) {
  return Error{ErrorCode::kInternal, fmt::format("{} threw an exception", what), 0};
}

std::string entry_fact(std::size_t index) { return fmt::format("entry_{}", kEntryNames[index]); }

}  // namespace

Result<void> JavaScriptGuest::boot(BakeFacts& facts) {
  SW_CHECK_OK(js_.bind(instance()));
  const auto& exports = js_.exports();
  SW_CHECK_OK(instance().call(exports.initialize));
  SW_TRY(const std::int32_t failed, instance().call(exports.init));
  if (failed != 0) return Error{ErrorCode::kInternal, "QuickJS did not start", 0};
  SW_CHECK_OK(instance().call(exports.set_max_stack_size, kStackBytes));
  SW_CHECK_OK(instance().call(exports.set_interrupt_handler, 1U));
  SW_CHECK_OK(instance().call(exports.set_module_loader, 1U));

  SW_TRY(const std::uint32_t context, instance().call(exports.context));
  SW_TRY(const std::uint32_t runtime, instance().call(exports.runtime));
  SW_TRY(const std::uint32_t block, js_.allocate(kScratchBytes + kStateBytes + kCodeBufferBytes));
  if (block == 0) return Error{ErrorCode::kInternal, "QuickJS has no memory at its start", 0};
  facts["context"] = context;
  facts["runtime"] = runtime;
  facts["block"] = block;
  js_.set_anchors({.context = context, .runtime = runtime, .scratch = block});
  state_ = block + kScratchBytes;
  set_state_word(kArmedWord, 0);
  set_state_word(kUsedWord, 0);
  set_state_word(kAsideWord, 0);

  SW_TRY(const std::uint32_t length_atom, js_.new_atom("length"));
  facts["length_atom"] = length_atom;
  SW_TRY(const Internals internals, Internals::find(js_));
  internals.add_to(facts);
  SW_CHECK_OK(load_driver(facts));
  SW_CHECK_OK(bind(facts));
  // Only now: what the driver and the probes left unhandled is nobody's error.
  SW_CHECK_OK(instance().call(exports.set_rejection_handler, 1U));
  SW_CHECK_OK(warm_up());
  set_state_word(kArmedWord, 0);
  set_state_word(kUsedWord, 0);
  SW_CHECK_OK(instance().call(exports.run_gc));
  // A collection visits, and so writes, every object of the image. It is for runs that allocate
  // much.
  SW_TRY(const std::uint32_t allocated, instance().call(exports.allocated_size));
  SW_CHECK_OK(instance().call(exports.set_gc_threshold,
                              allocated + static_cast<std::uint32_t>(kHeadroomBytes / 2)));
  return leave_room();
}

Result<void> JavaScriptGuest::leave_room() {
  SW_TRY(const std::uint32_t block, js_.allocate(kHeadroomBytes));
  return js_.deallocate(block);
}

// A second realm, with prototypes and globals of its own, for libraries that were not written with
// hostile users in mind. Only the driver and the host call into it, with plain values, and get
// plain values back: nothing of it can be reached from the user's code, and nothing the user
// changes is seen in it.
Result<void> JavaScriptGuest::load_realm(BakeFacts& facts, JsValue host) {
  const Anchors anchors = js_.anchors();
  SW_TRY(const std::uint32_t realm, instance().call(js_.exports().new_context, anchors.runtime));
  if (realm == 0) return Error{ErrorCode::kInternal, "QuickJS has no memory for a second realm", 0};
  SW_CHECK_OK(share_internal_error(js_, realm));
  js_.set_anchors({.context = realm, .runtime = anchors.runtime, .scratch = anchors.scratch});
  is_loading_realm_ = true;
  for (const DriverFile& file : manifest_.drivers) {
    if (file.name.starts_with(kRealmFolder)) SW_CHECK_OK(evaluate_in_realm(file));
  }
  SW_TRY(const std::uint64_t global, instance().call(js_.exports().global_object, realm));
  {
    const Owned realm_global(js_, JsValue{global});
    for (std::size_t i = kRealmEntry; i < kEntryCount; ++i) {
      SW_TRY(entries_[i], js_.get(realm_global.get(), kEntryNames[i]));
      if (!entries_[i].is(JsValue::kObject)) return thrown(kEntryNames[i]);
      facts[entry_fact(i)] = entries_[i].bits;
    }
    for (const std::string_view name : {"stripTypes", "intl"}) {
      SW_TRY(const JsValue value, js_.get(realm_global.get(), name));
      SW_CHECK_OK(js_.set(host, name, value));
    }
  }
  is_loading_realm_ = false;
  js_.set_anchors(anchors);
  return {};
}

Result<void> JavaScriptGuest::evaluate_in_realm(const DriverFile& file) {
  SW_TRY(const JsValue promise, js_.evaluate(file.content, kDriverFile, kModuleFlag));
  if (promise == JsValue::exception()) return driver_failed(file.name);
  for (;;) {
    SW_TRY(const bool pending, js_.is_job_pending());
    if (!pending) break;
    SW_TRY(const bool ran, js_.run_job());
    if (!ran) return driver_failed(file.name);
  }
  SW_TRY(const auto state, js_.promise_state(promise));
  if (state != QuickJs::PromiseState::kFulfilled) {
    SW_TRY(const JsValue reason, js_.promise_result(promise));
    SW_CHECK_OK(js_.throw_value(reason));
    return driver_failed(file.name);
  }
  return js_.free(promise);
}

Result<std::optional<std::string>> JavaScriptGuest::tune_module(std::string_view path,
                                                                std::string_view source) {
  SW_TRY(const std::uint64_t global,
         instance().call(js_.exports().global_object, js_.anchors().context));
  const Owned realm(js_, JsValue{global});
  SW_TRY(const JsValue function, js_.get(realm.get(), "tuneModule"));
  const Owned tune(js_, function);
  SW_TRY(const JsValue path_text, js_.new_string(path));
  const Owned owned_path(js_, path_text);
  SW_TRY(const JsValue source_text, js_.new_string(source));
  const Owned owned_source(js_, source_text);
  SW_TRY(const JsValue tuned, js_.call(function, std::array{path_text, source_text}));
  if (tuned == JsValue::exception()) return std::optional<std::string>();
  const Owned owned(js_, tuned);
  SW_TRY(std::string text, js_.to_text(tuned));
  return std::optional(std::move(text));
}

Result<void> JavaScriptGuest::load_driver(BakeFacts& facts) {
  std::string source = "(function (host) { 'use strict';\n";
  for (const auto& [name, content] : manifest_.drivers) {
    if (!name.starts_with(kRealmFolder)) source.append(content).append("\n");
  }
  source += "})";
  SW_TRY(const JsValue function, js_.evaluate_without_source(source, kDriverFile));
  if (function == JsValue::exception()) return driver_failed("the driver");
  SW_TRY(const JsValue host, make_host_object(js_));
  SW_TRY(const JsValue version, js_.new_string(manifest_.version));
  SW_CHECK_OK(js_.set(host, "engineVersion", version));
  SW_TRY(const JsValue driver, js_.call(function, std::array{host}));
  if (driver == JsValue::exception()) return driver_failed("the driver");
  for (std::size_t i = 0; i < kRealmEntry; ++i) {
    SW_TRY(entries_[i], js_.get(driver, kEntryNames[i]));
    if (!entries_[i].is(JsValue::kObject)) return thrown(kEntryNames[i]);
    facts[entry_fact(i)] = entries_[i].bits;
  }
  SW_CHECK_OK(load_realm(facts, host));
  SW_TRY(const JsValue names, js_.get(driver, "builtinNames"));
  SW_TRY(const std::string list, js_.to_text(names));
  return import_builtin_modules(list);
}

Error JavaScriptGuest::driver_failed(std::string_view what) {
  auto text = js_.take_exception();
  if (!text.ok()) return std::move(text).error();
  auto message = js_.to_text(*text);
  auto stack = js_.get(*text, "stack");
  auto where = stack.ok() ? js_.to_text(*stack) : Result<std::string>(std::string());
  return Error{ErrorCode::kInternal,
               fmt::format("{} failed: {}\n{}", what, message.ok() ? *message : "?",
                           where.ok() ? *where : ""),
               0};
}

Result<void> JavaScriptGuest::import_builtin_modules(std::string_view names) {
  // All of them now: their source asks for `require`, which user code may later take away.
  std::string source;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    source += fmt::format("import 'node:{}';", names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  SW_TRY(const JsValue promise, js_.evaluate(source, kDriverFile, kModuleFlag));
  if (promise == JsValue::exception()) return driver_failed("importing the built-in modules");
  for (;;) {
    SW_TRY(const bool pending, js_.is_job_pending());
    if (!pending) break;
    SW_TRY(const bool ran, js_.run_job());
    if (!ran) return driver_failed("importing the built-in modules");
  }
  SW_TRY(const auto state, js_.promise_state(promise));
  if (state != QuickJs::PromiseState::kFulfilled) return thrown("importing the built-in modules");
  return js_.free(promise);
}

Result<void> JavaScriptGuest::warm_up() {
  for (const std::string_view code : kWarmUp) {
    Run request;
    request.code = code;
    SW_TRY(const Reply reply, evaluate(request, "<cell>"));
  }
  return {};
}

Result<void> JavaScriptGuest::bind(const BakeFacts& facts) {
  SW_CHECK_OK(js_.bind(instance()));
  SW_TRY(const auto context, fact<std::uint32_t>(facts, "context"));
  SW_TRY(const auto runtime, fact<std::uint32_t>(facts, "runtime"));
  SW_TRY(const auto block, fact<std::uint32_t>(facts, "block"));
  js_.set_anchors({.context = context, .runtime = runtime, .scratch = block});
  state_ = block + kScratchBytes;
  code_buffer_ = state_ + kStateBytes;
  SW_TRY(value_atom_, fact<std::uint32_t>(facts, "value_atom"));
  SW_TRY(length_atom_, fact<std::uint32_t>(facts, "length_atom"));
  SW_TRY(internals_, Internals::from_facts(facts));
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    SW_TRY(const auto bits, fact<std::uint64_t>(facts, entry_fact(i)));
    entries_[i] = JsValue{bits};
  }
  return {};
}

}  // namespace sw::engine::javascript
