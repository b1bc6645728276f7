# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""`sandbox-workers repl` as people use it: in a terminal, with keys, and from a pipe."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from terminal import DEADLINE_S, Terminal

PROGRAM = sys.argv.pop(1)


class InATerminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)

    def test_cells_of_several_lines_wait_for_their_end(self):
        for language, lines, answer in [
            ("python", ["def f(n):", "  return n + 1", "", "f(41)"], "42"),
            ("javascript", ["function f(n) {", "  return n + 1", "}", "f(41)"], "42"),
        ]:
            with self.subTest(language=language):
                terminal = Terminal(PROGRAM, self.home, "-l", language)
                terminal.wait_for(f"{language}> ")
                for line in lines[:-1]:
                    terminal.type(line + "\r")
                    terminal.wait_for(r"(\. |> )$")
                terminal.cell(lines[-1], rf"\n{answer}\r")
                self.assertEqual(terminal.leave(), 0)

    def test_ctrl_c_interrupts_the_cell_and_keeps_the_state(self):
        for language, define, spin, use in [
            ("python", "x = 41", "print('going'); [None for _ in iter(int, 1)]", "x + 1"),
            ("javascript", "let x = 41", "console.log('going'); for (;;) x = 41", "x + 1"),
        ]:
            with self.subTest(language=language):
                terminal = Terminal(PROGRAM, self.home, "-l", language)
                terminal.wait_for("> ")
                terminal.cell(define, "> $")
                terminal.cell(spin, r"\ngoing\r")
                terminal.press("\x03", "interrupted")
                terminal.wait_for("> $")
                terminal.cell(use, r"\n42\r")
                self.assertEqual(terminal.leave(":quit\r"), 0)

    def test_ctrl_c_gives_up_a_line_and_a_cell_begun(self):
        terminal = Terminal(PROGRAM, self.home, "-l", "python")
        terminal.wait_for("> ")
        terminal.type("def broken(:")
        terminal.press("\x03", r"\^C\r\n.*> $")
        terminal.type("def f():\r")
        terminal.wait_for(r"\. $")
        terminal.press("\x03", r"\^C\r\n.*> $")
        terminal.cell("6 * 7", r"\n42\r")
        self.assertEqual(terminal.leave(), 0)

    def test_history_comes_back_also_in_the_next_process(self):
        terminal = Terminal(PROGRAM, self.home, "-l", "javascript")
        terminal.wait_for("> ")
        terminal.cell("'gr\u00fc\u00df' + 'e'", "\n'gr\u00fc\u00dfe'\r")
        terminal.wait_for("> $")
        terminal.type("\x1b[A\r")
        terminal.wait_for("\n'gr\u00fc\u00dfe'\r")
        self.assertEqual(terminal.leave(), 0)
        again = Terminal(PROGRAM, self.home, "-l", "javascript")
        again.wait_for("> ")
        again.type("\x1b[A\r")
        again.wait_for("\n'gr\u00fc\u00dfe'\r")
        self.assertEqual(again.leave(), 0)
        self.assertEqual([f.stat().st_mode & 0o777 for f in self.home.rglob("history-javascript")], [0o600])

    def test_the_state_of_a_sandbox_outlives_the_process(self):
        arguments = ("-l", "python", "--sandbox", "s", "--data", str(self.home / "data"))
        terminal = Terminal(PROGRAM, self.home, *arguments)
        terminal.wait_for("> ")
        terminal.cell("x = 41", "> $")
        os.kill(terminal.pid, signal.SIGKILL)
        self.assertEqual(terminal.end(), -signal.SIGKILL)
        again = Terminal(PROGRAM, self.home, *arguments)
        again.wait_for("> ")
        again.cell("x + 1", r"\n42\r")
        self.assertEqual(again.leave(), 0)


class FromAPipe(unittest.TestCase):
    def repl(self, language, text):
        with tempfile.TemporaryDirectory() as home:
            return subprocess.run([PROGRAM, "repl", "-l", language], input=text, capture_output=True, text=True,
                                  timeout=DEADLINE_S, check=False, env={**os.environ, "XDG_STATE_HOME": home})

    def test_every_command_does_what_it_says(self):
        ran = self.repl("python", "\n".join([
            "x = 1", ":checkpoint one", "x = 2", ":checkpoints", ":restore one", "x", "x = 5", ":undo", "x",
            ":fork other", "x = 9", ":context python", "x", "n = open('a.txt', 'w').write('hi')", ":files", ":contexts"]))
        self.assertEqual(ran.stderr, "")
        lines = ran.stdout.splitlines()
        self.assertEqual(lines[:4], ["one", "1", "1", "1"])
        self.assertRegex(lines[4], r"^ +2  a\.txt$")
        self.assertRegex(ran.stdout, r"(?m)^\* python +python +\d+ runs  saved$")
        self.assertRegex(ran.stdout, r"(?m)^  other +python +\d+ runs  saved$")

    def test_files_go_back_with_memory_if_they_are_asked_to(self):
        write = "fs.writeFileSync('a', '{0}'); fs.writeFileSync('{0}', ''); undefined"
        ran = self.repl("javascript", "\n".join([
            *(write.format(n) for n in range(1, 4)), ":undo 2", "fs.readFileSync('a', 'utf8')", ":undo --files",
            ":restore 2 --files", "fs.readFileSync('a', 'utf8')", ":fork other --files", ":files", ":undo 1 --files extra",
            ":restore --files"]))
        self.assertEqual(ran.stdout.split(), ["'3'", "'2'", "0", "1", "0", "2", "1", "a"])
        self.assertEqual(ran.stderr.splitlines(), [
            "sandbox-workers: files differ from those that the memory saw: 2, 3, a (to put them back: :restore 1 --files)",
            "sandbox-workers: invalid number of cells '1 --files extra'", "sandbox-workers: :restore needs a name"])

    def test_errors_are_shown_and_the_next_cell_runs(self):
        ran = self.repl("javascript", "nope\n:nope\n:undo x\n:fork\n1 + 1\n")
        self.assertEqual(ran.stdout, "2\n")
        self.assertIn("ReferenceError", ran.stderr)
        self.assertIn("unknown command :nope", ran.stderr)
        self.assertIn("invalid number of cells 'x'", ran.stderr)
        self.assertIn(":fork needs a name", ran.stderr)
        self.assertEqual(ran.returncode, 0)

    def test_exit_handlers_run_when_the_prompt_is_left(self):
        for language, register in [("python", "import atexit; _ = atexit.register(print, 'bye')"),
                                   ("javascript", "process.on('exit', () => console.log('bye')); undefined"),
                                   ("perl", "END { print \"bye\\n\" } undef"),
                                   ("ruby", "at_exit { puts 'bye' }; nil")]:
            with self.subTest(language=language):
                ran = self.repl(language, f"{register}\n1 + 1\n")
                self.assertEqual((ran.stdout, ran.stderr), ("2\nbye\n", ""))

    def test_exit_handlers_that_never_end_are_stopped_and_named(self):
        ran = self.repl("javascript", "process.on('exit', () => { for (;;); }); 1\n")
        self.assertEqual(ran.stdout, "1\n")
        self.assertIn("context 'javascript': time limit of 5 s reached by exit handlers", ran.stderr)

    def test_what_exit_handlers_print_is_not_cut(self):
        ran = self.repl("javascript", "process.on('exit', () => console.log('x'.repeat(3e6))); 1\n")
        self.assertEqual(len(ran.stdout), 3_000_003)

    def test_exit_in_the_code_is_the_status(self):
        self.assertEqual(self.repl("python", "raise SystemExit(7)\n1 + 1\n").returncode, 7)

    def test_code_in_pieces_is_put_together(self):
        for language, code, answer in [
            ("python", "for i in range(2):\n  print(i)\n\nx = '''a\nb'''\nx\n", "0\n1\n'a\\nb'\n"),
            ("python", "if True:\n  a = 1\nelse:\n  a = 2\n\na\n", "1\n"),
            ("perl", "sub f {\n  return 5\n}\nf()\n", "5\n"),
            ("perl", "my $text = <<END;\nhi\nEND\n$text\n", "hi\n\nhi\n\n"),
            ("ruby", "def f\n  5\nend\nf\n", ":f\n5\n"),
            ("ruby", "text = <<~END\n  hi\nEND\ntext.\n  upcase\n", "\"hi\\n\"\n\"HI\\n\"\n"),
            ("javascript", "const o = {\n  a: [1,\n 2]\n}\no.a\n", "[1,2]\n"),
            ("javascript", "/* a\n b */ 3\n`x\ny`.length\n", "3\n3\n"),
        ]:
            with self.subTest(code=code):
                ran = self.repl(language, code)
                self.assertEqual((ran.stdout, ran.stderr), (answer, ""))


if __name__ == "__main__":
    unittest.main()
