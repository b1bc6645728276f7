// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A session saved between two cells goes on in another instance exactly where it was.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/embedded_engine.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "wasi/tree_state.h"

namespace sw::engine {
namespace {

struct Programs {
  std::string define;  ///< run before saving
  /// After restoring: code and the value's text
  std::vector<std::pair<std::string, std::string>> use;
  /// A value that must differ in every restored copy
  std::string random;
};

const std::map<std::string, Programs>& programs() {
  static const std::map<std::string, Programs> all = {
      {"python",
       {.define = R"(
import time, re, sqlite3, numpy as np, pandas as pd
x = 41
def inc(n): return x + n
class Box:
    def __init__(self, v): self.v = v
box = Box([1, 2])
f = open('/workspace/log.txt', 'w'); f.write('one\n')
gen = (i * i for i in range(5)); next(gen); next(gen)
it = iter([1, 2, 3]); next(it)
make = lambda k: (lambda v: v + k)
closure = make(10)
big = np.arange(1_000_000, dtype='int64'); big[-1] = 7
frame = pd.DataFrame({'a': [1, 2]})
db = sqlite3.connect(':memory:'); db.execute('create table t(a)'); db.execute('insert into t values (5)')
pattern = re.compile('a+')
t0, m0 = time.time(), time.monotonic()
big_bytes = bytearray(40 << 20); big_bytes[-1] = 9)",
        .use =
            {{"inc(1)", "42"},
             {"str(box.v)", "'[1, 2]'"},
             {"next(gen), next(it), closure(1)", "(4, 2, 11)"},
             {"int(big[-1]), int(big[5]), int(frame.a.sum())", "(7, 5, 3)"},
             {"db.execute('select a from t').fetchone(), pattern.match('aab').end()", "((5,), 2)"},
             {"len(big_bytes), big_bytes[-1], big_bytes[12345]", "(41943040, 9, 0)"},
             {"time.monotonic() >= m0, time.time() >= t0", "(True, True)"},
             {"f.write('two\\n'); f.flush(); open('/workspace/log.txt').read()", "'one\\ntwo\\n'"},
             {"more = bytearray(8 << 20); del big_bytes; len(bytearray(60 << 20))", "62914560"}},
        .random = "import random, uuid, secrets, numpy as np\n"
                  "str((random.random(), uuid.uuid4(), secrets.token_hex(4), np.random.rand(), "
                  "np.random.default_rng().random()))"}},
      {"javascript",
       {.define = R"(
let x = 41; const c = 3; var v = 4;
function inc(n) { return x + n }
class Box { #v = [1, 2]; get v() { return this.#v } }
const box = new Box();
const descriptor = fs.openSync("/workspace/log.txt", "w"); fs.writeSync(descriptor, "one\n");
function* count() { for (let i = 0; ; i++) yield i * i }
const gen = count(); gen.next(); gen.next();
const closure = (k => w => w + k)(10);
const big = new Float64Array(1e6); big[big.length - 1] = 7;
const map = new Map([["k", new Set([1])]]);
let later = "no"; const pending = new Promise(done => { globalThis.finish = done }); pending.then(w => { later = w });
const t0 = Date.now(), p0 = performance.now(); undefined)",
        .use = {{"inc(1)", "42"},
                {"String(box.v) + c + v", "'1,234'"},
                {"[gen.next().value, closure(1)].join()", "'4,11'"},
                {"[big.at(-1), big.length, map.get('k').size].join()", "'7,1000000,1'"},
                {"finish('yes'); await 0; later", "'yes'"},
                {"performance.now() >= p0 && Date.now() >= t0", "true"},
                {"fs.writeSync(descriptor, 'two\\n'); fs.readFileSync('/workspace/log.txt', "
                 "'utf8').length",
                 "8"},
                {"new Uint8Array(20e6).length", "20000000"}},
        .random = "`${Math.random()} ${crypto.randomUUID()} ${crypto.getRandomValues(new "
                  "Uint32Array(2))}`"}},
      {"perl",
       {.define = R"(
use List::Util 'sum'; use Time::HiRes ();
my $x = 41; our $v = 4; my %map = (k => [1, { z => 2 }]);
sub inc { $x + $_[0] }
package Box { sub new { bless { v => $_[1] }, $_[0] } sub v { "@{$_[0]{v}}" } }
my $box = Box->new([1, 2]);
open(my $log, '>', '/workspace/log.txt') or die $!; print $log "one\n";
my $closure = do { my $n = 10; sub { $n++ + $_[0] } }; $closure->(0);
package Upper { sub TIESCALAR { my $s; bless \$s } sub FETCH { uc ${$_[0]} } sub STORE { ${$_[0]} = $_[1] } }
tie my $tied, 'Upper'; $tied = 'abc';
my $pattern = qr/(a+)b/; my $text = 'xaab'; $text =~ /a/g;
my @big = (1 .. 200_000); my $bytes = "\0" x (4 << 20); substr($bytes, -1) = 'z';
my $each = { map { $_ => 1 } 'a' .. 'c' }; my $t0 = Time::HiRes::time(); srand(5);
undef)",
        .use = {{"inc(1)", "42"},
                {"$box->v . $v . $map{k}[1]{z}", "1 242"},
                {"$closure->(1) . ',' . $closure->(1)", "12,13"},
                {"$tied", "ABC"},
                {"$text =~ $pattern; $1 . pos($text)", "aa2"},
                {"sum(@big) . ',' . length($bytes) . substr($bytes, -1)", "20000100000,4194304z"},
                {"print $log \"two\\n\"; close $log; open $log, '<', '/workspace/log.txt'; join "
                 "'', <$log>",
                 "one\ntwo\n"},
                {"Time::HiRes::time() >= $t0 ? 'later' : 'before'", "later"},
                {"my $more = 'y' x (8 << 20); undef $bytes; length('w' x (60 << 20))", "62914560"}},
        .random = "join ' ', rand, rand, int rand 1e9"}},
      {"ruby",
       {.define = R"(
require "securerandom"
x = 41
define_method(:inc) { |n| x + n } rescue self.class.send(:define_method, :inc) { |n| x + n }
class Box; attr_reader :v; def initialize(v) = @v = v; end
box = Box.new([1, 2])
f = File.open("/workspace/log.txt", "w"); f.sync = true; f.write("one\n")
squares = Enumerator.new { |out| 10.times { |i| out << i * i } }; squares.next; squares.next
each = [1, 2, 3].each; each.next
fiber = Fiber.new { |a| b = Fiber.yield(a + 1); [1].each { Fiber.yield(b * 2) }; :done }; fiber.resume(1)
make = ->(k) { ->(v) { v + k } }
closure = make.(10)
big = Array.new(500_000) { |i| i.to_s }
pattern = /a+/
t0, m0 = Time.now, Process.clock_gettime(Process::CLOCK_MONOTONIC)
bytes = "x" * (40 << 20); bytes[-1] = "y"
nil)",
        .use = {{"inc(1)", "42"},
                {"box.v.inspect", "\"[1, 2]\""},
                {"GC.start; [squares.next, each.next, closure.(1)].inspect", "\"[4, 2, 11]\""},
                {"fiber.resume(10)", "20"},
                {"fiber.resume", ":done"},
                {"big[-1] + big[5]", "\"4999995\""},
                {"bytes.size.to_s + bytes[-1] + bytes[12345]", "\"41943040yx\""},
                {"'baab'[pattern]", "\"aa\""},
                {"Time.now >= t0 && Process.clock_gettime(Process::CLOCK_MONOTONIC) >= m0", "true"},
                {"f.write(\"two\\n\"); File.read('/workspace/log.txt')", "\"one\\ntwo\\n\""},
                {"more = 'z' * (8 << 20); bytes = nil; ('w' * (60 << 20)).size", "62914560"}},
        .random =
            "[rand, Random.rand(10**9), SecureRandom.uuid, [*1..1000].shuffle.first(5)].inspect"}},
  };
  return all;
}

/// A saved state with nothing of the session it came from.
struct Saved {
  std::uint64_t memory_bytes = 0;
  std::vector<std::pair<std::uint32_t, Bytes>> pages;
  Bytes host;
};

Saved save(SessionInstance& session) {
  const SessionSnapshot state = session.snapshot().value();
  Saved saved{.memory_bytes = state.memory->memory_bytes(), .pages = {}, .host = state.extra};
  for (const ByteRange& range : state.changed) {
    for (std::size_t at = range.begin; at < range.end; at += kPageBytes) {
      const auto page = static_cast<std::uint32_t>(at / kPageBytes);
      const PageView bytes = state.memory->read(page).value();
      saved.pages.emplace_back(page, Bytes(bytes.begin(), bytes.end()));
    }
  }
  return saved;
}

class SavedSource final : public SnapshotSource {
 public:
  explicit SavedSource(const Saved& saved) : saved_(saved), extra_(saved.host) {}
  SavedSource(const Saved& saved, std::size_t extra_bytes)
      : saved_(saved), extra_(BytesView(saved.host).first(extra_bytes)) {}

  std::uint64_t memory_bytes() const override { return saved_.memory_bytes; }
  Result<BytesView> fill(PageSink& memory, BytesView /*base*/) override {
    for (const auto& [page, bytes] : saved_.pages) {
      SW_TRY(const PageSpan room, memory.write(page));
      std::ranges::copy(bytes, room.begin());
    }
    return extra_;
  }

 private:
  const Saved& saved_;
  BytesView extra_;
};

class Restore : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Machine> machine_ = Machine::create().value();
  std::shared_ptr<Engine> engine_ = machine_->load(find_language(GetParam()).value()).value();
  Workspace files_{wasi::TreeLimits{}, machine_->clocks().realtime_ns()};
  const Programs& code_ = programs().at(GetParam());

  std::unique_ptr<SessionInstance> boot() { return engine_->boot().value(); }
  std::unique_ptr<SessionInstance> restore(const Saved& saved) {
    SavedSource source(saved);
    return engine_->restore(source).value();
  }

  std::string value_of(SessionInstance& session, const std::string& code) {
    sw::Run request;
    request.code = code;
    request.files = files_.for_run();
    request.limits.wall_max = std::chrono::minutes(10);
    RunOutput sink;
    const auto outcome = session.execute(request, sink);
    if (!outcome.ok()) return "host: " + outcome.error().message;
    EXPECT_TRUE(files_.apply_diff(*outcome->files, 1).ok());
    if (outcome->error) return outcome->error->name + ": " + outcome->error->message;
    return outcome->value ? outcome->value->text : "";
  }

  void on_guest_thread(const std::function<void()>& body) {
    ASSERT_TRUE(engine_->on_guest_thread(body).ok());
  }
};

TEST_P(Restore, EverythingGoesOnInAnotherInstance) {
  on_guest_thread([&] {
    auto session = boot();
    ASSERT_EQ(value_of(*session, code_.define), "");
    for (const auto& [code, value] : code_.use) {
      // Each step in an instance of its own: five and more generations of saving and restoring.
      const Saved saved = save(*session);
      session.reset();
      session = restore(saved);
      EXPECT_EQ(value_of(*session, code), value) << code;
    }
  });
}

// A snapshot tells only of what was written since the one before.
TEST_P(Restore, SnapshotsOfOneInstanceAddUpToItsMemory) {
  on_guest_thread([&] {
    const auto session = boot();
    ASSERT_EQ(value_of(*session, code_.define), "");
    Bytes sum;
    const auto expect_equal = [&](const std::string& after) {
      const SessionSnapshot state = session->snapshot().value();
      if (sum.empty()) sum.assign(state.base.begin(), state.base.end());
      sum.resize(state.memory->memory_bytes());
      for (const ByteRange& range : state.changed) {
        for (std::size_t at = range.begin; at < range.end; at += kPageBytes) {
          const auto page = static_cast<std::uint32_t>(at / kPageBytes);
          std::ranges::copy(state.memory->read(page).value(),
                            sum.begin() + static_cast<std::ptrdiff_t>(at));
        }
      }
      for (std::uint32_t page = 0; page < sum.size() / kPageBytes; ++page) {
        ASSERT_TRUE(std::ranges::equal(state.memory->read(page).value(),
                                       BytesView(sum).subspan(page * kPageBytes, kPageBytes)))
            << "page " << page << " after " << after;
      }
    };
    expect_equal(code_.define);
    for (const auto& [code, value] : code_.use) {
      EXPECT_EQ(value_of(*session, code), value) << code;
      expect_equal(code);
      value_of(*session, code_.random);
      expect_equal(code_.random);
    }
  });
}

TEST_P(Restore, RandomNumbersDifferInEveryCopy) {
  on_guest_thread([&] {
    auto session = boot();
    const std::string original = value_of(*session, code_.random);
    const Saved saved = save(*session);
    std::vector<std::string> seen = {original};
    for (int i = 0; i < 3; ++i) seen.push_back(value_of(*restore(saved), code_.random));
    std::ranges::sort(seen);
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end()) << ::testing::PrintToString(seen);
  });
}

TEST_P(Restore, ADamagedHostStateIsAnError) {
  on_guest_thread([&] {
    auto session = boot();
    value_of(*session, code_.define);
    const Saved saved = save(*session);
    for (std::size_t length = 0; length < saved.host.size(); ++length) {
      SavedSource source(saved, length);
      auto restored = engine_->restore(source);
      // Open files are restored with the first run, when there are files.
      if (restored.ok()) {
        EXPECT_EQ(value_of(**restored, code_.random).rfind("host: ", 0), 0U) << length;
        EXPECT_TRUE((*restored)->invalid()) << length;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Languages, Restore,
                         ::testing::Values("javascript", "perl", "python", "ruby"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace sw::engine
