#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""wasi-run as its users see it, and tests/upstream/wasi/wasi_testsuite.py on a suite of two modules. Arguments: the repository,
the program."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(sys.argv[1])
PROGRAM = sys.argv[2]

IMPORTS = """
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func $print (param $fd i32) (param $from i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $from))
    (i32.store (i32.const 4) (local.get $length))
    (if (call $write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable)))
"""


def module(body, data=""):
    return f'(module {IMPORTS} (data (i32.const 1024) "{data}") (func (export "_start") {body}))'


def print_data(fd, length):
    return f"(call $print (i32.const {fd}) (i32.const 1024) (i32.const {length}))"


# Prints what a pair of *_get and *_sizes_get gives, with its NULs.
def dump(name):
    return (f"(drop (call ${name}_sizes (i32.const 16) (i32.const 20)))"
            f"(drop (call ${name} (i32.const 2048) (i32.const 4096)))"
            "(call $print (i32.const 1) (i32.const 4096) (i32.load (i32.const 20)))")


def open_file(fd, length, oflags=1):
    """Opens the file that the data names, creating it; its number lies at 32."""
    return (f"(if (call $open (i32.const {fd}) (i32.const 0) (i32.const 1024) (i32.const {length}) (i32.const {oflags})"
            " (i64.const 66) (i64.const 0) (i32.const 0) (i32.const 32)) (then unreachable))")


class WasiRun(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def run_module(self, text, *options, stdin=b""):
        path = self.folder / "module.wat"
        path.write_text(text)
        return self.run_program(path, *options, stdin=stdin)

    def run_program(self, *words, stdin=b""):
        return subprocess.run([PROGRAM, *map(str, words)], input=stdin, capture_output=True, timeout=600)

    def test_passes_output_and_status_on(self):
        done = self.run_module(module(print_data(1, 3) + print_data(2, 4) + "(call $exit (i32.const 7))", "out err"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"out", b"out "))

    def test_output_that_is_lost_is_a_failure_also_when_the_module_does_not_look(self):
        path = self.folder / "module.wat"
        path.write_text(module("(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 3))"
                               "(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))", "out"))
        for words in ([str(path)], ["--help"]):
            for to in (">/dev/full", ">&-"):
                done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {to}', PROGRAM, *words], stderr=subprocess.PIPE, timeout=600)
                self.assertEqual(done.returncode, 125, (words, to))
                self.assertIn(b"wasi-run: cannot write to standard output", done.stderr)
        self.assertEqual(self.run_program(path).stdout, b"out")

    def test_a_start_that_returns_is_status_0(self):
        self.assertEqual(self.run_module(module("")).returncode, 0)

    def test_a_trap_is_status_134(self):
        done = self.run_module(module("unreachable"))
        self.assertEqual(done.returncode, 134)
        self.assertIn(b"unreachable", done.stderr)

    def test_gives_arguments_and_environment(self):
        done = self.run_module(module(dump("args") + dump("environ")), "--arg", "a b", "--arg=--x", "--env", "K=v=w")
        self.assertEqual(done.stdout, b"module.wat\0a b\0--x\0K=v=w\0")

    def test_the_environment_is_empty_unless_given(self):
        self.assertEqual(self.run_module(module(dump("environ"))).stdout, b"")

    def test_reads_its_own_standard_input_or_a_file(self):
        cat = ("(loop $more (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 100))"
               "(if (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))"
               "(if (i32.load (i32.const 8)) (then"
               " (call $print (i32.const 1) (i32.const 1024) (i32.load (i32.const 8))) (br $more))))")
        text = bytes(range(256)) * 10
        self.assertEqual(self.run_module(module(cat), stdin=text).stdout, text)
        (self.folder / "input").write_bytes(b"from a file")
        self.assertEqual(self.run_module(module(cat), "--stdin", self.folder / "input").stdout, b"from a file")

    def test_writes_folders_back(self):
        for name in ("one", "two"):
            (self.folder / name).mkdir()
        (self.folder / "two" / "old").write_text("old")
        body = (open_file(4, 3) + "(call $print (i32.load (i32.const 32)) (i32.const 1027) (i32.const 7))"
                + "(if (call $unlink (i32.const 4) (i32.const 1034) (i32.const 3)) (then unreachable))")
        done = self.run_module(module(body, "newcontentold"), "--dir", f"{self.folder}/one::/one", "--dir",
                               f"{self.folder}/two::/two")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "two" / "new").read_text(), "content")
        self.assertEqual([p.name for p in (self.folder / "two").iterdir()], ["new"])
        self.assertEqual(list((self.folder / "one").iterdir()), [])

    def test_writes_folders_back_after_a_trap_too(self):
        (self.folder / "one").mkdir()
        done = self.run_module(module(open_file(3, 3) + "unreachable", "new"), "--dir", f"{self.folder}/one")
        self.assertEqual(done.returncode, 134)
        self.assertTrue((self.folder / "one" / "new").exists())

    def test_sees_nothing_of_the_host_without_a_folder(self):
        self.assertEqual(self.run_module(module(open_file(3, 3), "new")).returncode, 134)

    def test_does_not_write_links_that_lead_out(self):
        (self.folder / "one").mkdir()
        link = "(drop (call $symlink (i32.const 1024) (i32.const 4) (i32.const 3) (i32.const 1028) (i32.const 1)))"
        done = self.run_module(module(link, "../xl"), "--dir", f"{self.folder}/one")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"leads out", done.stderr)
        self.assertEqual(list((self.folder / "one").iterdir()), [])

    def test_wrong_use_is_one_line_and_status_2(self):
        for words in ([], ["--no-such-option"], ["a", "b"]):
            self.assertEqual(self.run_program(*words).returncode, 2, words)

    def test_what_cannot_be_run_is_one_line_and_status_125(self):
        (self.folder / "bad.wasm").write_bytes(b"\0asm rubbish")
        (self.folder / "no_start.wat").write_text("(module)")
        (self.folder / "unknown.wat").write_text('(module (import "env" "f" (func)) (func (export "_start")))')
        one = self.folder / "one"
        one.mkdir()
        for words in (["missing.wasm"], [self.folder / "bad.wasm"], [self.folder / "no_start.wat"],
                      [self.folder / "unknown.wat"], [self.folder / "no_start.wat", "--dir", self.folder / "none"],
                      [self.folder / "no_start.wat", "--dir", f"{one}::/", "--dir", f"{one}::/x"],
                      [self.folder / "no_start.wat", "--stdin", self.folder / "none"]):
            done = self.run_program(*words)
            self.assertEqual(done.returncode, 125, words)
            self.assertRegex(done.stderr, rb"\Awasi-run: [^\n]+\n", words)


class TestSuiteRunner(unittest.TestCase):
    HEAD = bytes.fromhex("0061736d01000000" "01040160" "0000" "03020100" "070a01065f7374617274" "0000")
    RETURNS = HEAD + bytes.fromhex("0a040102000b")
    TRAPS = HEAD + bytes.fromhex("0a05010300000b")

    def run_suite(self, modules):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "tests/c/testsuite/wasm32-wasip1"
            folder.mkdir(parents=True)
            for name, (wasm, spec) in modules.items():
                (folder / f"{name}.wasm").write_bytes(wasm)
                if spec:
                    (folder / f"{name}.json").write_text(spec)
            return subprocess.run([sys.executable, REPOSITORY / "tests/upstream/wasi/wasi_testsuite.py", scratch, "--wasi-run", PROGRAM],
                                  capture_output=True, text=True, timeout=600)

    def test_passes_when_all_do(self):
        done = self.run_suite({"a": (self.RETURNS, None), "b": (self.TRAPS, '{"exit_code": 134}')})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("2 passed, 0 failed", done.stdout)

    def test_fails_when_one_does(self):
        done = self.run_suite({"a": (self.RETURNS, '{"operations": [{"type": "run"}, {"type": "wait", "exit_code": 3}]}'),
                               "b": (self.RETURNS, '{"stdout": "text"}'), "c": (self.RETURNS, None)})
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 passed, 2 failed", done.stdout)

    def test_an_empty_suite_is_no_success(self):
        self.assertEqual(self.run_suite({}).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
