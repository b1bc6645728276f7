# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""`sandbox-workers repl` when it is treated roughly: signals, broken input, a terminal that changes, no place to write.

usage: repl_rough_test.py PROGRAM
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from terminal import DEADLINE_S, Terminal

PROGRAM = sys.argv.pop(1)
CELLS = {  # what sets x to 41, what prints "going" and loops, what catches every interruption
    "javascript": ("let x = 41", "console.log('going'); for (;;);",
                   "console.log('going'); for (;;) try { for (;;); } catch {} finally { continue }"),
    "perl": ("our $x = 41; undef", "print qq(going\\n); 1 while 1",
             "$| = 1; print qq(going\\n); while (1) { eval { 1 while 1 } }"),
    "python": ("x = 41", "print('going'); [None for _ in iter(int, 1)]",
               "exec('''print(\"going\")\\nwhile True:\\n  try:\\n    while True: pass\\n  except BaseException: pass''')"),
    "ruby": ("x = 41; nil", "puts 'going'; loop { }",
             "puts 'going'; begin; loop { }; rescue Exception; retry; end"),
}
USE = {"javascript": "x + 1", "perl": "$x + 1", "python": "x + 1", "ruby": "x + 1"}


class Rough(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)

    def terminal(self, language="javascript", *arguments):
        terminal = Terminal(PROGRAM, self.home, "-l", language, *arguments)
        terminal.wait_for("> $")
        return terminal


class Signals(Rough):
    def test_ctrl_c_ends_a_cell_in_every_language_even_one_that_catches_it(self):
        for language, (define, spin, stubborn) in CELLS.items():
            with self.subTest(language):
                terminal = self.terminal(language)
                terminal.cell(define, "> $")
                for cell in (spin, stubborn):
                    terminal.cell(cell, r"\ngoing\r")
                    terminal.press("\x03", "interrupted")
                    terminal.wait_for("> $")
                    terminal.cell(USE[language], r"\n42\r")
                    terminal.wait_for("> $")
                terminal.type("\r")
                self.assertEqual(terminal.leave(), 0)

    def test_sigterm_while_a_cell_runs_ends_the_cell_and_the_process(self):
        data = ("--sandbox", "s", "--data", str(self.home / "data"))
        terminal = self.terminal("javascript", *data)
        terminal.cell("let x = 41", "> $")
        terminal.cell("x = 0; console.log('going'); for (;;);", r"\ngoing\r")
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.wait_for("interrupted")
        self.assertEqual(terminal.end(), 130)
        again = self.terminal("javascript", *data)
        again.cell("x + 1", r"\n1\r")  # what the cell did before it ended is kept
        self.assertEqual(again.leave(), 0)

    def test_a_signal_while_a_line_is_edited_gives_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                terminal = self.terminal()
                terminal.type("1 +")
                terminal.wait_for(r"1 \+")
                follower = terminal.follower()  # so that the terminal lives on when the program ends
                os.kill(terminal.pid, number)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), -number)
                self.assertTrue(terminal.echoes())
                os.close(follower)
                os.close(terminal.fd)

    def test_a_terminal_that_is_hung_up_ends_the_process(self):
        terminal = self.terminal()
        os.close(terminal.fd)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), -signal.SIGHUP)

    def test_a_terminal_may_change_its_size_at_any_time(self):
        terminal = self.terminal()
        terminal.type("20 +")
        terminal.wait_for(r"20 \+")
        terminal.resize(10, 20)
        terminal.cell(" 22", r"\n42\r")
        terminal.wait_for("> $")
        terminal.cell("console.log('going'); for (;;);", r"\ngoing\r")
        terminal.resize(50, 200)
        terminal.press("\x03", "interrupted")
        terminal.wait_for("> $")
        # A line longer than the terminal was is not folded now.
        long = "'" + "y" * 100 + "'.length"
        terminal.type(long)
        terminal.wait_for(long.replace(".", r"\."))
        terminal.type("\r")
        terminal.wait_for(r"\n100\r")
        self.assertEqual(terminal.leave(), 0)


class Typed(Rough):
    def test_a_prompt_is_shown_when_keys_are_keys(self):
        terminal = self.terminal()
        for _ in range(100):
            terminal.type("\r")
            shown = b""
            while not shown.endswith(b"> "):
                shown += os.read(terminal.fd, 4096)
            self.assertFalse(terminal.echoes())
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_bytes_that_are_not_utf_8_are_no_end_of_input(self):
        terminal = self.terminal()
        terminal.type(b"\xff\xc3(\xf0\x9f ")
        terminal.press("\x03", r"\^C\r\n.*> $")
        terminal.cell("6 * 7", r"\n42\r")
        self.assertEqual(terminal.leave(), 0)

    def test_a_long_line_is_a_line(self):
        terminal = self.terminal()
        terminal.resize(50, 1000)
        for _ in range(20):  # the terminal has a buffer of its own, which is not to overflow
            terminal.type("1111111111" * 100 + " +")
            terminal.wait_for(r"\+$")
        terminal.cell("1", r"\nInfinity\r")  # a sum of numbers of a thousand digits
        self.assertEqual(terminal.leave(), 0)

    def test_ctrl_d_within_a_cell_runs_what_there_is(self):
        terminal = self.terminal()
        terminal.type("[6 * 7,\r")
        terminal.wait_for(r"\. $")
        terminal.press("\x04", "SyntaxError")
        terminal.wait_for("> $")
        terminal.cell("6 * 7", r"\n42\r")
        self.assertEqual(terminal.leave(), 0)

    def test_a_history_that_cannot_be_kept_does_not_matter(self):
        state = self.home / "sandbox-workers"
        for make in (lambda: state.write_text(""), lambda: state.symlink_to("nowhere/at/all"), lambda: (
                state.mkdir(), (state / "history-javascript").mkdir()), lambda: (
                state.mkdir(), (state / "history-javascript").write_bytes(b"_HiStOrY_V2_\n\xff\x00\\\n" + b"x" * 200_000))):
            make()
            terminal = self.terminal()
            terminal.cell("6 * 7", r"\n42\r")
            self.assertEqual(terminal.leave(), 0)
            for path in sorted(self.home.rglob("*"), reverse=True):
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                else:
                    path.unlink()


class FromAPipe(unittest.TestCase):
    def repl(self, data, *arguments, **options):
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run([PROGRAM, "repl", "-l", "javascript", *arguments], input=data, capture_output=True,
                                  timeout=DEADLINE_S, check=False, env={**os.environ, "XDG_STATE_HOME": home}, **options)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_a_cell_without_its_end_is_an_error(self):
        status, out, err = self.repl(b"6 * 7\nfunction f() {\n")
        self.assertEqual((status, out), (0, "42\n"))
        self.assertIn("SyntaxError", err)

    def test_bytes_that_are_not_utf_8_are_refused_and_the_next_cell_runs(self):
        status, out, err = self.repl(b"'\xff'\n6 * 7\n")
        self.assertEqual((status, out), (0, "42\n"))
        self.assertIn("not valid UTF-8 (byte 1)", err)

    def test_lines_and_cells_of_any_length_take_no_more_memory_than_code_may_have(self):
        def bounded():
            import resource
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
        status, out, err = self.repl(b"x" * (1500 << 20) + b"\n6 * 7\n", preexec_fn=bounded)
        self.assertEqual((status, out), (0, "42\n"), err[:500])
        self.assertIn("the limit is 4194304", err)
        status, out, err = self.repl((b"/*" + b"x" * (1 << 20) + b"\n") * 9 + b"*/\n6 * 7\n", preexec_fn=bounded)
        self.assertEqual((status, out), (0, "42\n"), err[:500])
        self.assertIn("the limit is 4194304", err)

    def test_commands_refuse_what_makes_no_sense_and_the_next_cell_runs(self):
        refused = {
            ":": "unknown command :", ": files": "unknown command :", ":Files": "unknown command :Files",
            ":context": ":context needs a name", ":fork": ":fork needs a name", ":fork \t ": ":fork needs a name",
            ":checkpoint": ":checkpoint needs a name", ":restore": ":restore needs a name",
            ":restore none": "no checkpoint 'none'", ":fork javascript": "javascript", ":undo -1": "cells '-1'",
            ":undo 0": "cells '0'", ":undo 1e3": "cells '1e3'", ":undo 99999999999999999999": "cells '9999",
            ":undo 4000000000": "cannot undo 4000000000 runs", ":checkpoint " + "n" * 2000: "1 to 256 bytes",
            ":context " + "n" * 2000: "", ":fork " + "n" * 2000: "",
        }
        status, out, err = self.repl("\n".join(["1", *refused, ":context javascript", "6 * 7", ""]).encode())
        self.assertEqual((status, out), (0, "1\n42\n"), err)
        lines = err.splitlines()
        self.assertEqual(len(lines), len(refused), err)
        for says, line in zip(refused.values(), lines):
            self.assertTrue(line.startswith("sandbox-workers: "), line)
            self.assertIn(says, line)


if __name__ == "__main__":
    unittest.main()
