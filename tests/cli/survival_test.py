# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""A context goes on exactly where it was after its process was killed: in every language, with everything a person
may have left lying about in it."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
BOUND_S = 600

# For each language: what is typed before the kill, then what is asked after it, each with its answer. The file is
# half written, and part of that may still be in the interpreter's own buffer.
PROGRAMS = {
    "python": (
        ["x = 41",
         "def f(n): return n + x\n",
         "class Point:\n    def __init__(self, a): self.a = a\n    def double(self): return Point(2 * self.a)\n",
         "import json, collections, numpy as np",
         "half = open('half.txt', 'w'); _ = half.write('first half, ')",
         "squares = (n * n for n in range(10)); _ = next(squares), next(squares)",
         "def counter():\n    n = 0\n    def add():\n        nonlocal n\n        n += 1\n        return n\n    return add\n",
         "count = counter(); _ = count()",
         "big = list(range(300_000)); array = np.arange(1_000_000)",
         "point = Point(4); words = collections.Counter('banana')",
         "print('ready')"],
        [("x", "41"), ("f(1)", "42"), ("point.double().a", "8"), ("json.dumps({'a': 1})", "'{\"a\": 1}'"),
         ("next(squares)", "4"), ("count()", "2"), ("len(big), big[-1], int(array.sum())", "(300000, 299999, 499999500000)"),
         ("words['a']", "3"), ("half.write('second half')", "11"), ("half.close(); open('half.txt').read()",
                                                                   "'first half, second half'")]),
    "javascript": (
        ["let x = 41",
         "function f(n) { return n + x }",
         "class Point { constructor(a) { this.a = a } double() { return new Point(2 * this.a) } }",
         "const path = require('path')",
         "const half = fs.openSync('half.txt', 'w'); fs.writeSync(half, 'first half, ')",
         "function* all() { for (let n = 0; n < 10; n++) yield n * n }",
         "const squares = all(); squares.next(); squares.next()",
         "const count = (() => { let n = 0; return () => ++n })(); count()",
         "const big = Array.from({ length: 300000 }, (_, i) => i); const array = new Float64Array(1e6).fill(0.5)",
         "const point = new Point(4); const words = new Map([['a', 3]])",
         "console.log('ready')"],
        [("x", "41"), ("f(1)", "42"), ("point.double().a", "8"), ("path.join('a', 'b')", "'a/b'"),
         ("squares.next().value", "4"), ("count()", "2"), ("[big.length, big[299999], array[999999]]", "[300000,299999,0.5]"),
         ("words.get('a')", "3"), ("fs.writeSync(half, 'second half')", "11"),
         ("fs.closeSync(half); fs.readFileSync('half.txt', 'utf8')", "'first half, second half'")]),
    "perl": (
        ["my $x = 41; undef",
         "sub f { $_[0] + $x } undef",
         "package Point { sub new { bless { a => $_[1] }, $_[0] } sub double { Point->new(2 * $_[0]{a}) } } undef",
         "use List::Util qw(sum); use POSIX (); undef",
         "open(our $half, '>', 'half.txt') or die $!; print $half 'first half, '; undef",
         "our $count = do { my $n = 0; sub { ++$n } }; $count->(); undef",
         "our %each = (a => 1); our @big = (0 .. 299_999); undef",
         "our $point = Point->new(4); our $text = 'banana'; $text =~ /a/g; undef",
         "print \"ready\\n\"; undef"],
        [("$x", "41"), ("f(1)", "42"), ("$point->double->{a}", "8"), ("sum(1, 2, 3)", "6"), ("$count->()", "2"),
         ("pos($text)", "2"), ("$big[-1] + @big", "599999"), ("print $half 'second half'; close $half", "1"),
         ("do { open(my $in, '<', 'half.txt'); scalar <$in> }", "first half, second half")]),
    "ruby": (
        ["x = 41; nil",
         "def f(n) = n + 1; nil",
         "class Point; attr_reader :a; def initialize(a) = @a = a; def double = Point.new(2 * @a); end; nil",
         "require 'json'; require 'set'; nil",
         "half = File.open('half.txt', 'w'); half.write('first half, '); nil",
         "squares = Enumerator.new { |y| 10.times { |n| y << n * n } }; squares.next; squares.next; nil",
         "fiber = Fiber.new { n = 0; loop { Fiber.yield(n += 1) } }; fiber.resume; nil",
         "count = (n = 0; -> { n += 1 }); count.call; nil",
         "big = (0...300_000).to_a; nil",
         "point = Point.new(4); words = 'banana'.chars.tally; nil",
         "puts 'ready'; nil"],
        [("x", "41"), ("f(41)", "42"), ("point.double.a", "8"), ("JSON.generate([1])", '"[1]"'), ("squares.next", "4"),
         ("fiber.resume", "2"), ("count.call", "2"), ("big.size + big.last", "599999"), ("words['a']", "3"),
         ("half.write('second half')", "11"), ("half.close; File.read('half.txt')", '"first half, second half"')]),
}


class Survival(unittest.TestCase):
    def test_every_language_has_its_programs(self):
        listed = subprocess.run([PROGRAM, "engines", "--json"], capture_output=True, timeout=BOUND_S, check=True)
        self.assertLessEqual({engine["language"] for engine in json.loads(listed.stdout)}, set(PROGRAMS))

    def test_a_context_goes_on_where_it_was_when_its_process_was_killed(self):
        listed = subprocess.run([PROGRAM, "engines", "--json"], capture_output=True, timeout=BOUND_S, check=True)
        for engine in json.loads(listed.stdout):
            with self.subTest(engine["language"]), tempfile.TemporaryDirectory() as data:
                self.check(engine["language"], pathlib.Path(data) / "data")

    def check(self, language, data):
        define, uses = PROGRAMS[language]
        sandbox = ["--sandbox", "s", "--data", str(data)]
        with subprocess.Popen([PROGRAM, "repl", "-l", language, *sandbox], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            process.stdin.write("\n".join(define) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                if line == "ready\n":
                    break
            # The cell that printed this may not have ended; it is the one in flight, and defines nothing.
            process.send_signal(signal.SIGKILL)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        for code, answer in uses:
            done = subprocess.run([PROGRAM, "run", "-l", language, *sandbox, "--json", "-c", code], capture_output=True,
                                  text=True, timeout=BOUND_S, check=False)
            result = json.loads(done.stdout)
            self.assertNotIn("error", result, done.stdout)
            self.assertEqual(result["context"]["state"], "restored")
            value = result["results"][0]
            text = value.get("text", json.dumps(value.get("json"), separators=(",", ":")))
            self.assertEqual(text, answer, code)


if __name__ == "__main__":
    unittest.main()
