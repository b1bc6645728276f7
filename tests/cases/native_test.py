# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases marked `native: yes` on the machine's own interpreters and compares with what the cases expect of
the sandbox: stdout, the value, the error's name and the exit code.

usage: native_test.py FOLDER
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1))
BOUND_S = 600

# Each program reads its cells from the file named by its first argument and reports, per cell, a line of JSON
# on descriptor 3: {"text"|"json": value, "error": name, "exit": code}.
PYTHON = r"""
import ast, json, os, sys, types
cells = json.load(open(sys.argv[1]))
report = os.fdopen(3, "w", buffering=1)
main = types.ModuleType("__main__")
sys.modules["__main__"] = main
sys.argv = ["-c"]
def run(number, code):
    import linecache
    name = f"<cell {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    tree = ast.parse(code, name)
    last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), main.__dict__)
    return None if last is None else eval(compile(ast.Expression(last), name, "eval"), main.__dict__)
for number, code in enumerate(cells, 1):
    out = {}
    try:
        value = run(number, code)
        if isinstance(value, (dict, list)):
            try: out["json"] = json.loads(json.dumps(value, allow_nan=False))
            except Exception: out["text"] = repr(value)
        elif value is not None: out["text"] = repr(value)
    except SystemExit as exit:
        sys.stdout.flush()
        if isinstance(exit.code, str): print(exit.code, file=sys.stderr)
        out["exit"] = 0 if exit.code is None else exit.code if isinstance(exit.code, int) else 1
    except BaseException as error: out["error"] = type(error).__name__
    sys.stdout.flush()
    print(json.dumps(out), file=report)
"""
JAVASCRIPT = r"""
{  // Its names are not the programs'.
const fs = require("fs"), vm = require("vm");
globalThis.fs = fs;
globalThis.require = require;
const cells = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
// What the last cell leaves running ends after it: its report is written at the exit.
let last = {}, endsByItself = false;
const report = (out) => fs.writeSync(3, JSON.stringify(out) + "\n");
process.once("beforeExit", () => { endsByItself = true; });
process.on("uncaughtException", (error) => {
  if (process.listenerCount("uncaughtException") > 1) return;  // the program has its own
  last.error ??= error?.name ?? "Error";
  process.exit();
});
process.on("exit", (code) => {
  if (!last.error && (code || !endsByItself)) last.exit = code ?? 0;
  report(last);
});
async function run() {
  for (const [number, code] of cells.entries()) {
    if (number > 0) report(last);
    last = {};
    try {
      let value = vm.runInThisContext(code, { filename: `<cell ${number + 1}>` });
      if (value instanceof Promise) value = await value;
      if (typeof value === "object" && value !== null) last.json = value;
      else if (typeof value === "string") last.text = "'" + value.replace(/[\\']/g, "\\$&") + "'";
      else if (value !== undefined) last.text = Object.is(value, -0) ? "0" : String(value) + (typeof value === "bigint" ? "n" : "");
    } catch (error) { last.error = error?.name ?? "Error"; }
  }
}
run();
}
"""
# Each cell is a program of its own, in a process of its own.
PERL = r"""
package Native;
use strict;
use JSON::PP ();
sub report { my ($out) = @_; syswrite REPORT, JSON::PP->new->utf8->canonical->encode($out) . "\n" }
sub show {
    my ($value) = @_;
    return {} if !defined $value;
    my $plain = ref $value eq 'HASH' || ref $value eq 'ARRAY';
    return $plain ? { json => $value } : { text => "$value" };
}
open REPORT, '>&=', 3 or die $!;
my $cells = do { local (@ARGV, $/) = ($ARGV[0]); no strict; JSON::PP->new->utf8->decode(<>) };
@ARGV = ();
$0 = '-e';
$| = 1;
binmode $_, ':utf8' for *STDIN, *STDOUT, *STDERR;
for my $cell (@$cells) {
    if (fork) { wait; next }
    my @value = run($cell);
    my $error = $@;
    report(ref $error ? { error => ref $error } : $error ne '' ? { error => 'PerlError' }
        : @value > 1 ? { json => \@value } : show(@value));
    exit;
}
sub run { no strict; no warnings; package main; eval "#line 1 \"<cell 1>\"\n" . shift }
"""
RUBY = r"""
require "json"
cells = JSON.parse(File.read(ARGV.shift))
report = IO.for_fd(3)
report.sync = true
cells.each.with_index(1) do |code, number|
  out = {}
  begin
    value = eval(code, TOPLEVEL_BINDING, "<cell #{number}>", 1)
    if value.is_a?(Array) || value.is_a?(Hash)
      begin out["json"] = JSON.parse(JSON.generate(value)); rescue StandardError; out["text"] = value.inspect; end
    elsif !value.nil?
      out["text"] = value.inspect
    end
  rescue SystemExit => exit
    out["exit"] = exit.status
  rescue Exception => error
    out["error"] = error.class.name
  end
  $stdout.flush
  report.puts(JSON.generate(out))
end
"""
INTERPRETERS = {"python": (["python3", "-"], PYTHON), "javascript": (["node", "-"], JAVASCRIPT),
                "perl": (["perl", "-"], PERL), "ruby": (["ruby", "-"], RUBY)}


def read_case(path):
    """The (name, words, body) of every section, and the lines before them."""
    sections, head = [], ""
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("--- "):
            name, *words = line[4:].split()
            sections.append([name, words, ""])
        elif sections:
            sections[-1][2] += line
        else:
            head += line
    return head, [(name, words, body.removesuffix("\n")) for name, words, body in sections]


def run_native(language, runs):
    """What was printed, the reports and the complaints. `runs` are (name, code): cells share an interpreter, programs
    have one each (Perl's get theirs by themselves)."""
    codes = [code for _, code in runs]
    alone = language in ("javascript", "python") and all(name == "one-shot" for name, _ in runs)
    out, reports, err = zip(*(run_program(language, part) for part in ([[code] for code in codes] if alone else [codes])))
    return "".join(text if text.endswith("\n") or not text else text + "\n" for text in out), sum(reports, []), "".join(err)


def run_program(language, cells):
    command, program = INTERPRETERS[language]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "cells.json")
        file.write_text(json.dumps(cells))
        with open(pathlib.Path(folder, "report"), "w+", encoding="utf-8") as report:
            done = subprocess.run(["bash", "-c", 'exec 3>"$0"; exec "$@"', report.name, *command, str(file)],
                                  input=program, capture_output=True, encoding="utf-8", timeout=BOUND_S, check=False,
                                  cwd=folder)
            report.seek(0)
            return done.stdout, [json.loads(line) for line in report], done.stderr


class Native(unittest.TestCase):
    def check(self, path):
        language = path.parent.name
        _, sections = read_case(path)
        cells, stdout, expected = [], "", []
        for name, words, body in sections:
            if name in ("cell", "one-shot"):
                self.assertFalse([word for word in words if not word.startswith("timeout=")],
                                 "a native case has plain cells, with more time at most")
                cells.append((name, body))
                expected.append({})
            elif name == "stdout":
                stdout += body + "\n"
            elif name == "json":
                expected[-1]["json"] = json.loads(body)
            elif name == "error":
                expected[-1]["error"] = words[0]
            elif name == "exit":
                expected[-1]["exit"] = int(words[0])
            elif name == "text":
                expected[-1]["text"] = body
        out, reports, err = run_native(language, cells)
        self.assertEqual(len(reports), len(cells), err)
        self.assertEqual(out.rstrip("\n"), stdout.rstrip("\n"), err)
        for number, (want, got) in enumerate(zip(expected, reports), 1):
            with self.subTest(cell=number):
                for key in ("text", "json", "error", "exit"):
                    if key in want or key in ("error", "exit"):
                        self.assertEqual(got.get(key), want.get(key))

    def test_every_native_case(self):
        count = 0
        programs = collections.Counter()
        for path in sorted(FOLDER.glob("*/*.case")):
            if "native: yes" in read_case(path)[0]:
                count += 1
                programs[path.parent.name] += sum(name == "one-shot" for name, _, _ in read_case(path)[1])
                with self.subTest(path.stem):
                    self.check(path)
        self.assertGreater(count, 0)
        for language in ("javascript", "perl", "python", "ruby"):
            self.assertGreaterEqual(programs[language], 60, language)


if __name__ == "__main__":
    unittest.main()
