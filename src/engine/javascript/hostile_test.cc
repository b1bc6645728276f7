// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A program replaces whatever it can reach, or puts getters and setters in the way of what the
// driver reads and writes. The cells after that give their right answers, and nothing of the driver
// is seen.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "engine/embedded_engine.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/wasm/guest_thread.h"

namespace sw::engine::javascript {
namespace {

using namespace std::chrono_literals;

struct HostileMachine {
  std::unique_ptr<Machine> machine = Machine::create().value();
  std::shared_ptr<EmbeddedEngine> engine =
      EmbeddedEngine::load(machine->environment(), find_language("javascript").value(), no_progress)
          .value();
};

HostileMachine& machine() {
  static HostileMachine the_machine;  // loading is slow
  return the_machine;
}

/// What the later cells use, taken before anything is replaced; and `places`: each object and key
/// where something can be replaced.
constexpr std::string_view kPrepare = R"(
const kept = { list: [1.5, { a: "x", deep: { er: [null] } }], map: new Map([[1, { a: 1 }]]), ring: { name: "r" },
  error: new RangeError("out", { cause: new TypeError("in") }), log: console.log, fail: console.error, timeout: setTimeout,
  immediate: setImmediate, tick: process.nextTick, set: new Set(["x"]), bytes: new Uint8Array(2), when: new Date(0),
  pattern: /r/g, fn: function named() {}, settled: Promise.resolve(1), big: { big: 1n }, thrown: { code: 7 } };
kept.ring.self = kept.ring;
const tools = ((roots) => {
  const { ownKeys, getOwnPropertyDescriptor: describe, defineProperty: define, getPrototypeOf: parent } = Reflect;
  const call = Function.prototype.call, bind = Function.prototype.bind, uncurry = (f) => bind.apply(call, [f]);
  const seen = new WeakSet(), has = uncurry(WeakSet.prototype.has), add = uncurry(WeakSet.prototype.add), push = uncurry(Array.prototype.push);
  const isThing = (v) => (typeof v === "object" && v !== null) || typeof v === "function";
  const all = [], places = [], skip = { __proto__: null, kept: 1, tools: 1 }, shown = new Set(["constructor", "name", Symbol.toStringTag]);
  const visit = (v) => { if (isThing(v) && !has(seen, v)) { add(seen, v); push(all, v) } };
  const mine = new Set();
  const mark = (v) => { if (typeof v === "object" && v !== null && !mine.has(v)) { mine.add(v); for (const key of ownKeys(v)) mark(describe(v, key).value) } };
  mark(kept); mine.add(kept.fn); mine.add(require("util").inspect.defaultOptions);
  for (const root of roots) visit(root);
  visit(kept);
  for (let i = 0; i < all.length; ++i) {
    for (const key of ownKeys(all[i])) {
      const d = describe(all[i], key);
      visit(d.value); visit(d.get); visit(d.set);
      if (mine.has(all[i]) || (i === 0 && skip[key]) || shown.has(key) || !(d.configurable || d.writable)) continue;
      push(places, [all[i], key, d]);
    }
    visit(parent(all[i]));
  }
  let calls = 0, last = "";
  const recorder = (key) => function () { ++calls; last = String(key); throw "replaced" };
  const record = (key, self, value) => { if (isThing(self) && !has(seen, self) || isThing(value) && !has(seen, value)) { ++calls; last = String(key) } };
  return {
    count: places.length,
    place(i) {
      const object = places[i][0], key = places[i][1], d = places[i][2], put = recorder(key);
      try { define(object, key, "value" in d ? { value: put } : { get: put, set: put }) } catch { return "refused" }
      return calls;
    },
    putBack(i) { const place = places[i]; define(place[0], place[1], place[2]); return calls === 0 ? "unseen" : `${last} was called` },
    watch(key) {
      for (const object of [Object.prototype, Array.prototype, Function.prototype, String.prototype, Number.prototype, RegExp.prototype, Map.prototype, Promise.prototype, Error.prototype]) {
        if (describe(object, key) === undefined) define(object, key, { __proto__: null, get() { record(key, this) }, set(v) { record(key, this, v) }, configurable: true });
      }
    },
    seen: () => calls === 0 ? "unseen" : `${last} was seen`,
    forget() { calls = 0 },
  };
})([globalThis, function* () {}, async function () {}, async function* () {}, [][Symbol.iterator](), new Map().entries(), new Set().values(), ""[Symbol.iterator](), (function* () {})(),
    Uint8Array, require("util"), require("events"), process.stdout, process.stdin, setTimeout(() => {}, 0), setImmediate(() => {})]);
"ready";
)";

class HostileJavaScript : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto ran = machine().engine->on_guest_thread([this] {
      session_ = machine().engine->start_session().value();
      EXPECT_EQ(answer(std::string(kPrepare)), "'ready'");
    });
    ASSERT_TRUE(ran.ok());
  }
  void TearDown() override {
    ASSERT_TRUE(machine().engine->on_guest_thread([this] { session_.reset(); }).ok());
  }

  /// Value or error, then what was printed.
  std::string answer(std::string code) {
    sw::Run request;
    request.code = std::move(code);
    request.limits = {.wall_max = 600s, .cpu_max = 60s};
    RunOutput sink;
    const Outcome outcome = session_->execute(request, sink).value();
    std::string text = outcome.value ? outcome.value->text : "";
    if (outcome.error) text = fmt::format("{}: {}", outcome.error->name, outcome.error->message);
    return text + sink.out + sink.err;
  }

  /// What an untouched interpreter answers to cells that need much of the driver.
  std::vector<std::string> answers() {
    std::vector<std::string> all;
    for (const char* code :
         {"kept.list", "kept.ring", "kept.big", "kept.fn",
          "kept.log('%s %o', 'text', kept.list, kept.map, kept.set, kept.bytes, kept.when, "
          "kept.pattern, kept.settled)",
          "kept.log(kept.error, kept.ring); kept.fail(kept.big)", "throw kept.error",
          "throw kept.thrown", "null.x", "x = = 1", "const typed: number = 1; typed",
          "kept.timeout(() => kept.log('timer'), 0); kept.tick(() => kept.log('tick'))",
          "kept.immediate(() => kept.log('immediate'))",
          "kept.timeout(() => { throw kept.thrown }, 0)"}) {
      all.push_back(answer(code));
    }
    return all;
  }

  std::unique_ptr<Session> session_;
};

TEST_F(HostileJavaScript, EachFunctionReplacedInTurnIsNotAsked) {
  ASSERT_TRUE(machine()
                  .engine
                  ->on_guest_thread([this] {
                    const std::vector<std::string> expected = answers();
                    const int count = std::stoi(answer("tools.count"));
                    EXPECT_GT(count, 1000);
                    for (int i = 0; i < count; ++i) {
                      const std::string place = answer(fmt::format("tools.place({})", i));
                      if (place == "'refused'") continue;
                      EXPECT_EQ(answers(), expected) << "place " << i;
                      EXPECT_EQ(answer(fmt::format("tools.putBack({})", i)), "'unseen'")
                          << "place " << i;
                      ASSERT_FALSE(HasFailure());
                    }
                  })
                  .ok());
}

/// The names of properties in the driver's text.
std::set<std::string> names_in_the_driver() {
  std::set<std::string> names;
  const std::regex pattern(R"(\.([A-Za-z_]\w*)|[{,]\s*([A-Za-z_]\w*)\s*[:,}])");
  for (const DriverFile& file : machine().engine->manifest().drivers) {
    for (std::sregex_iterator at(file.content.begin(), file.content.end(), pattern), end; at != end;
         ++at) {
      names.insert((*at)[1].matched ? (*at)[1] : (*at)[2]);
    }
  }
  return names;
}

TEST_F(HostileJavaScript, GettersAndSettersForEachNameOfTheDriverSeeNothingOfIt) {
  ASSERT_TRUE(machine()
                  .engine
                  ->on_guest_thread([this] {
                    const std::vector<std::string> expected = answers();
                    std::set<std::string> names = names_in_the_driver();
                    EXPECT_GT(names.size(), 500U);
                    // The engine itself reads `then` of what settles a promise, and writes `value`
                    // where it leaves a cell's value. Numbers and texts are asked for `toJSON` as
                    // they are.
                    for (const char* name : {"then", "value", "toJSON", "__proto__"})
                      names.erase(name);
                    std::string watch;
                    for (const std::string& name : names)
                      watch += fmt::format("tools.watch('{}');", name);
                    for (int i = -1; i < 40; ++i) watch += fmt::format("tools.watch('{}');", i);
                    watch +=
                        "tools.watch('NaN'); tools.watch('undefined'); tools.watch(''); "
                        "tools.watch(Symbol.split); tools.watch(Symbol.replace);"
                        "tools.watch(Symbol.species); tools.watch(Symbol.isConcatSpreadable); "
                        "tools.watch(Symbol.asyncIterator); tools.forget()";
                    EXPECT_EQ(answer(watch), "");
                    EXPECT_EQ(answers(), expected);
                    EXPECT_EQ(answer("tools.seen()"), "'unseen'");
                  })
                  .ok());
}

}  // namespace
}  // namespace sw::engine::javascript
