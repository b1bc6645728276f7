# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What the command line answers when its program, or whoever reads it, does not behave.

usage: answers_test.py PROGRAM
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
BOUND_S = 600
# Replaces the driver's own answer by another.
# The driver's calls have no frames; a function that it puts into a module leads to its variables all the same.
ANSWERS = ("import random, _host; g = type(random).__getattribute__.__globals__['_at_home'].__globals__; R = _host.call; "
           "g['answer'] = lambda *a: R({})")
ENDLESS = {"python": "while True: print('x' * 100)", "javascript": "for (;;) console.log('x'.repeat(100))",
           "perl": "print 'x' x 100, qq(\\n) while 1", "ruby": "loop { puts 'x' * 100 }"}
PRINTS = {"python": "print('hi')", "javascript": "console.log('hi')", "perl": "print qq(hi\\n); undef", "ruby": "puts 'hi'"}


def run(*arguments, env=None, **how):
    done = subprocess.run([PROGRAM, *arguments], stderr=subprocess.PIPE, timeout=BOUND_S, check=False,
                          env={**os.environ, **(env or {})}, **{"stdout": subprocess.PIPE, **how})
    return done.returncode, (done.stdout or b"").decode(errors="replace"), done.stderr.decode(errors="replace")


def one_message(err):
    return err.startswith("sandbox-workers: ") and err.count("\n") == 1


def unique(pairs):
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), keys
    return dict(pairs)


class OneLine(unittest.TestCase):
    def answer(self, body, *options):
        """`body` is bytes, or Python that makes them."""
        return run("run", "-l", "python", *options, "-c", ANSWERS.format(repr(body) if isinstance(body, bytes) else body))

    def json_answer(self, body):
        status, out, _ = self.answer(body, "--json")
        self.assertEqual(out.count("\n"), 1, out)
        self.assertEqual(len(out.splitlines()), 1, out)
        return status, json.loads(out, object_pairs_hook=unique), out

    def test_json_is_one_line_whatever_the_driver_says(self):
        self.assertEqual(self.json_answer(b'{"value":"json"}\n[1,\n2\n]')[1]["results"], [{"json": [1, 2]}])
        self.assertIn('[{"json":[12345678901234567890123,1e400,0.10,-0]}]',
                      self.json_answer(b'{"value":"json"}\n[12345678901234567890123, 1e400, 0.10, -0]')[2])
        for text in ('{"a":1,"a":2}', '1}],"code":2', "[1", "", "\xff", "[" * 100000, '"\u2028', "NaN"):
            with self.subTest(text[:10]):
                results = self.json_answer(b'{"value":"json"}\n' + text.encode())[1]["results"]
                self.assertEqual(results, [{"text": text}])
        self.assertEqual(self.json_answer('{"value":"json"}\n"a\u2028\u2029\u0085\\ud800"'.encode())[1]["results"],
                         [{"json": "a\u2028\u2029\u0085\ufffd"}])

    def test_a_value_is_printed_again_without_json_too(self):
        self.assertEqual(self.answer(b'{"value":"json"}\n[1,\n2\n]')[:2], (0, "[1,2]\n"))

    def test_nonsense_is_a_crash_and_not_the_hosts(self):
        error = b'"error":{"name":"E","message":"m"%b}'
        for head in (b"", b"[]", b'{"exit":1e300}', b'{"exit":NaN}', b'{"cwd":1}', b'{"error":{}}',
                     b"{" + error % b',"lineNumber":1e99' + b"}", b"{" + error % b',"traceback":[1]' + b"}",
                     """b'{"error":{"name":"E","message":"","traceback":[' + b'"",' * 11000000 + b'""]}}'"""):
            with self.subTest(head[:60]):
                status, result, _ = self.json_answer(head)
                self.assertEqual((status, result["ending"], result["error"]["name"]), (1, "crashed", "EngineError"))

    def test_long_errors_are_cut(self):
        body = """b'{"error":{"name":"%b","message":"%b","traceback":[%b],"lineNumber":-5},"cwd":"%b"}' % (
            b"N" * 5000000, b"M" * 5000000, b",".join([b'"%b"' % (b"l" * 20)] * 500000), b"/c" * 5000)"""
        status, result, out = self.json_answer(body)
        self.assertEqual((status, result["ending"]), (1, "guest-error"))
        self.assertLess(len(out), 200000)
        self.assertNotIn("lineNumber", result["error"])
        self.assertEqual(len(result["error"]["traceback"]), 500)


class Printing(unittest.TestCase):
    """What cannot be printed is a failure: status 3 and one message."""

    def refused(self, *arguments, env=None, stdin=None):
        with self.subTest(arguments[:6]):
            with open("/dev/full", "wb") as full:
                status, _, err = run(*arguments, env=env, stdout=full, stdin=stdin)
            self.assertEqual(status, 3, err)
            self.assertIn("No space left on device", err)
            self.assertIn("sandbox-workers: cannot write to standard output", err)
            closed = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', PROGRAM, *arguments], stderr=subprocess.PIPE, timeout=BOUND_S,
                                    check=False, env={**os.environ, **(env or {})})
            self.assertEqual(closed.returncode, 3, closed.stderr)
            self.assertIn(b"sandbox-workers: cannot write to standard output", closed.stderr)
            return err

    def test_values_and_results(self):
        self.assertTrue(one_message(self.refused("run", "-l", "javascript", "-c", "6 * 7")))
        self.assertTrue(one_message(self.refused("run", "-l", "javascript", "--json", "-c", "6 * 7")))

    def test_output_of_programs(self):
        for language, code in PRINTS.items():
            self.refused("run", "-l", language, "-c", code)

    def test_output_of_programs_that_never_stop_printing(self):
        for language, code in ENDLESS.items():
            self.refused("run", "-l", language, "--timeout", "none", "-c", code)

    def test_repl(self):
        cells = b"console.log(1)\n6 * 7\n"
        for how in (">/dev/full", ">&-"):
            with self.subTest(how):
                done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {how}', PROGRAM, "repl", "-l", "javascript"], input=cells,
                                      stderr=subprocess.PIPE, timeout=BOUND_S, check=False)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertTrue(one_message(done.stderr.decode()), done.stderr)

    def test_listings_and_help(self):
        for arguments in (["engines"], ["engines", "--json"], ["--help"], ["--version"], ["run", "--help"], ["bake", "javascript"]):
            self.assertTrue(one_message(self.refused(*arguments)), arguments)
        with tempfile.TemporaryDirectory() as folder:
            env = {"SANDBOX_WORKERS_DATA": folder + "/data"}
            self.assertEqual(run("run", "--sandbox", "s", "-l", "javascript", "-c", "1", env=env)[0], 0)
            for command in ("contexts", "snapshots"):
                self.assertTrue(one_message(self.refused(command, "s", env=env)))
                self.assertTrue(one_message(self.refused(command, "s", "--json", env=env)))

    def test_conformance(self):
        self.assertTrue(one_message(self.refused("conformance", "javascript")))

    def test_stderr_that_is_full_or_closed_is_no_failure(self):
        for closing in ("2>&-", "2>/dev/full", "0>&- 2>&-"):
            for language, code in PRINTS.items():
                done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {closing}', PROGRAM, "run", "-l", language, "-c", code],
                                      stdout=subprocess.PIPE, timeout=BOUND_S, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, b"hi\n"), (closing, language))
            self.assertEqual(subprocess.run(["sh", "-c", f'exec "$0" "$@" {closing}', PROGRAM, "run", "-l", "python", "-c", "raise 1"],
                                            stdout=subprocess.PIPE, timeout=BOUND_S, check=False).returncode, 1)

    def test_a_reader_that_goes_away_ends_the_program_in_every_language(self):
        for language, code in ENDLESS.items():
            with self.subTest(language):
                with subprocess.Popen([PROGRAM, "run", "-l", language, "--timeout", "none", "-c", code], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) as child:
                    child.stdout.readline()
                    child.stdout.close()
                    err = child.stderr.read()
                    self.assertIn(child.wait(BOUND_S), (1, 3), err)
                    self.assertIn(b"pipe", err.lower())

    def test_so_does_one_of_both_streams(self):
        code = {"python": "while True:\n  try: print('x', flush=True)\n  except Exception: pass", "perl": "print STDERR qq(x\\n) while 1"}
        for language, program in code.items():
            with self.subTest(language):
                with subprocess.Popen([PROGRAM, "run", "-l", language, "--timeout", "none", "-c", program], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT) as child:
                    child.stdout.readline()
                    child.stdout.close()
                    self.assertEqual(child.wait(BOUND_S), 3)


class Notes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.env = {"SANDBOX_WORKERS_DATA": str(pathlib.Path(folder.name, "data"))}

    def run_in(self, *arguments):
        return run("run", "--sandbox", "s", "-l", "python", *arguments, env=self.env)

    STUBBORN = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"

    def test_a_first_run_whose_memory_could_not_be_saved_says_so(self):
        status, _, err = self.run_in("--timeout", "300ms", "-c", self.STUBBORN)
        self.assertEqual(status, 124)
        self.assertIn("sandbox-workers: the context is new; the memory of this run was not saved, "
                      "and its files were rolled back\n", err)
        self.assertIn("no run of the context is saved", self.run_in("-c", "1")[2])

    def test_so_does_its_json(self):
        result = json.loads(self.run_in("--timeout", "300ms", "--json", "-c", self.STUBBORN)[1])
        self.assertIn("the memory of this run was not saved", result["context"]["note"])
        self.assertNotIn("savedBytes", result["context"])

    def test_a_first_run_that_was_saved_says_nothing(self):
        self.assertEqual(self.run_in("-c", "n = 1"), (0, "", ""))


class Endings(unittest.TestCase):
    """A program's own status is told from a limit's."""

    EXITS = {"python": "import os; os._exit(%d)", "javascript": "process.exit(%d)", "perl": "use POSIX; POSIX::_exit(%d)", "ruby": "exit! %d"}
    KILLS = {"python": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "perl": "kill KILL => $$",
             "ruby": "Process.kill(:KILL, $$)"}
    LOOPS = {"python": "while True: pass", "javascript": "for (;;);", "perl": "1 while 1", "ruby": "loop { }"}

    def ending(self, language, code, *options):
        status, out, _ = run("run", "-l", language, "--json", *options, "-c", code)
        result = json.loads(out)
        return status, result["ending"], result.get("exitCode")

    def test_exit_with_the_status_of_a_limit_is_an_exit(self):
        for language, code in self.EXITS.items():
            for number in (124, 130, 137):
                with self.subTest(language, number=number):
                    self.assertEqual(self.ending(language, code % number), (number, "exited", number))

    def test_a_program_that_kills_itself_is_an_exit(self):
        for language, code in self.KILLS.items():
            with self.subTest(language):
                self.assertEqual(self.ending(language, code), (137, "exited", 137))

    def test_a_programs_own_signal_is_an_exit(self):
        kills = {"python": "import os; os.kill(os.getpid(), %d)", "javascript": "process.kill(process.pid, %d)", "perl": "kill %d, $$"}
        for language, code in kills.items():
            for number in (6, 9, 15):
                with self.subTest(language, number=number):
                    self.assertEqual(self.ending(language, code % number), (128 + number, "exited", 128 + number))
            with self.subTest(language, number=0):
                self.assertEqual(self.ending(language, code % 0), (0, "completed", None))
        self.assertEqual(self.ending("javascript", "process.abort()"), (134, "exited", 134))

    def test_a_limit_has_no_exit_code(self):
        for language, code in self.LOOPS.items():
            with self.subTest(language):
                self.assertEqual(self.ending(language, code, "--timeout", "300ms"), (124, "time-limit", None))


class Limits(unittest.TestCase):
    """What the operating system refuses to this process is an error that it tells of."""

    def test_a_file_that_must_not_grow_is_an_error_and_not_the_end_of_the_process(self):
        def no_large_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            status, out, err = run("run", "-l", "javascript", "--json", "--workspace", name, "-c",
                                   "require('fs').writeFileSync('large', 'x'.repeat(5000)); 1", preexec_fn=no_large_files)
            self.assertEqual((status, json.loads(out)["writeBack"]["written"]), (3, 0), err)
            self.assertTrue(one_message(err), err)
            self.assertEqual(list(folder.iterdir()), [])
            with open(folder / "out", "wb") as out:
                status, _, err = run("run", "-l", "javascript", "-c", "'x'.repeat(5000)", stdout=out,
                                     preexec_fn=no_large_files)
            self.assertEqual(status, 3, err)
            self.assertTrue(one_message(err), err)

    def test_a_workspace_without_a_name_is_wrong_use(self):
        status, out, err = run("run", "-l", "javascript", "--workspace", "", "-c", "1")
        self.assertEqual((status, out), (2, ""), err)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main()
