# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: the real program, real interpreters.

usage: run_test.py PROGRAM
"""
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
BOUND_S = 600


def run(*arguments, stdin=b"", env=None, cwd=None):
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=BOUND_S, check=False,
                          env={**os.environ, **(env or {})}, cwd=cwd)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def one_line(text):
    return text.count("\n") == 1 and text.startswith("sandbox-workers: ")


class Languages(unittest.TestCase):
    """What every language must do: (language, ending of its files, programs)."""

    PROGRAMS = {
        "python": dict(
            ending=".py", interpreter="python3", hello="print('hi')", value="[1, 'a']", value_shown='[1,"a"]',
            fail="raise ValueError('no')", error="ValueError: no", exit="import sys; sys.exit(7)",
            loop="print('step', flush=True)\nwhile True: pass",
            stubborn="while True:\n  try:\n    while True: pass\n  except BaseException: pass",
            hungry="x = []\nwhile True: x.append(bytearray(1 << 20))",
            echo="import sys; print(sys.stdin.read().upper())", env="import os; print(os.environ['K'])",
            args="import sys; print(sys.argv[1:])", args_shown="['a', '-b']",
            write="open('/workspace/out.txt', 'w').write('new'); None", sleep="import time; time.sleep(3600)"),
        "perl": dict(
            ending=".pl", interpreter="perl", hello="print qq(hi\n); undef", value="[1, 'a']", value_shown='[1,"a"]',
            fail="die 'no'", error="PerlError: no", message="no at <cell 1> line 1.", exit="exit 7",
            loop="print qq(step\n); 1 while 1", stubborn="while (1) { eval { 1 while 1 } }",
            hungry="my @x; push @x, 'x' x (1 << 20) while 1",
            echo="print map({ uc } <STDIN>), qq(\n); undef", env="print qq($ENV{K}\n); undef",
            args="print '[', join(',', map { qq(\"$_\") } @ARGV), qq(]\n); undef", args_shown='["a","-b"]',
            write="open my $f, '>', '/workspace/out.txt' or die; print $f 'new'; undef", sleep="sleep 3600"),
        "ruby": dict(
            ending=".rb", interpreter="ruby", hello="puts 'hi'", value="[1, 'a']", value_shown='[1,"a"]',
            fail="raise ArgumentError, 'no'", error="ArgumentError: no", shown="no (ArgumentError)", exit="exit 7",
            loop="puts 'step'; loop { }", stubborn="begin; loop { }; rescue Exception; retry; end",
            hungry="x = []; loop { x << 'x' * (1 << 20) }",
            echo="puts $stdin.read.upcase", env="puts ENV['K']", args="p ARGV; nil", args_shown='["a", "-b"]',
            write="File.write('/workspace/out.txt', 'new'); nil", sleep="sleep 3600"),
        "javascript": dict(
            ending=".js", interpreter="node", hello="console.log('hi')", value="[1, 'a']", value_shown='[1,"a"]',
            fail="throw new TypeError('no')", error="TypeError: no", exit="process.exit(7)",
            loop="console.log('step'); for (;;);", stubborn="for (;;) { try { for (;;); } catch {} }",
            forced="const a = new Uint8Array(64e6); for (;;) a.fill(1).sort()",  # a stop ends the loop before, not a sort
            hungry="const x = []; for (;;) x.push(new Uint8Array(1 << 20).fill(1))",
            echo="console.log(fs.readFileSync(0, 'utf8').toUpperCase())", env="console.log(process.env.K)",
            args="console.log(JSON.stringify(process.argv.slice(2)))", args_shown='["a","-b"]',
            write="fs.writeFileSync('/workspace/out.txt', 'new'); undefined",
            sleep="await new Promise(done => setTimeout(done, 3.6e6))"),
    }

    def test_output_then_value(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                self.assertEqual(run("run", "-l", language, "-c", p["hello"] + ";\n" + p["value"]),
                                 (0, "hi\n" + p["value_shown"] + "\n", ""))

    def test_an_uncaught_error_is_status_1_with_the_traceback_on_stderr(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                status, out, err = run("run", "-l", language, "-c", p["hello"] + ";\n" + p["fail"])
                self.assertEqual((status, out), (1, "hi\n"))
                self.assertIn(p.get("shown", p["error"]), err)

    def test_exit_status_is_the_programs(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                self.assertEqual(run("run", "-l", language, "-c", p["exit"])[0], 7)

    def test_the_time_limit_is_status_124_and_keeps_the_output(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                status, out, err = run("run", "-l", language, "--timeout", "2s", "-c", p["loop"])
                self.assertEqual((status, out), (124, "step\n"))
                self.assertIn("time limit of 2 s", err)

    def test_the_limit_of_cpu_time_does_not_count_sleeping(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                status, out, err = run("run", "-l", language, "--timeout", "none", "--cpu", "300ms", "-c", p["loop"])
                self.assertEqual((status, out), (124, "step\n"))
                self.assertIn("CPU time limit of 0.3 s", err)
        self.assertEqual(run("run", "-l", "python", "--cpu", "300ms", "-c", "import time; time.sleep(0.6); 1")[:2],
                         (0, "1\n"))

    def test_a_program_that_swallows_the_interruption_is_ended(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                begin = time.monotonic()
                self.assertEqual(run("run", "-l", language, "--timeout", "300ms", "-c", p["stubborn"])[0], 124)
                self.assertLess(time.monotonic() - begin, 60)

    def test_a_reader_that_reads_no_more_does_not_hold_a_run_past_its_limit(self):
        for language, code in (("python", "while True: print('x' * 1000)"),
                               ("javascript", "for (;;) console.log('x'.repeat(1000))")):
            with self.subTest(language):
                with subprocess.Popen([PROGRAM, "run", "-l", language, "--timeout", "300ms", "-c", code],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                    self.assertEqual(process.wait(timeout=BOUND_S), 124)  # with the pipe full and unread

    def test_a_closed_stream_is_no_other_file(self):
        def close_all():
            for fd in range(3):
                os.close(fd)
        with subprocess.Popen([PROGRAM, "run", "-l", "javascript", "--timeout", "60s", "-c",
                               "await new Promise(done => setTimeout(done, 6e4))"], preexec_fn=close_all) as process:
            try:
                folder = f"/proc/{process.pid}/fd"
                begin = time.monotonic()
                while len(os.listdir(folder)) < 5 and time.monotonic() - begin < BOUND_S:
                    pass  # it opens its files
                self.assertEqual([os.readlink(f"{folder}/{fd}") for fd in range(3)], ["/dev/null"] * 3)
            finally:
                process.kill()

    def test_sleeping_counts_as_time(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                self.assertEqual(run("run", "-l", language, "--timeout", "200ms", "-c", p["sleep"])[0], 124)

    def test_the_memory_limit_is_status_137(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                status, _, err = run("run", "-l", language, "--memory", "280M", "-c", p["hungry"])
                self.assertEqual((status, err.count("memory limit of 280 MiB reached")), (137, 1), err)

    def test_stdin_environment_and_arguments(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                self.assertEqual(run("run", "-l", language, "--stdin", "-", "-c", p["echo"], stdin=b"abc")[1], "ABC\n")
                self.assertEqual(run("run", "-l", language, "-c", p["env"], "--env", "K=a=b")[1], "a=b\n")
                self.assertEqual(run("run", "-l", language, "-c", p["args"], "--", "a", "-b")[1], p["args_shown"] + "\n")

    def test_language_by_ending_and_by_first_line(self):
        with tempfile.TemporaryDirectory() as folder:
            for language, p in self.PROGRAMS.items():
                with self.subTest(language):
                    file = pathlib.Path(folder, "program" + p["ending"])
                    file.write_text(p["hello"])
                    self.assertEqual(run("run", str(file)), (0, "hi\n", ""))
                    script = pathlib.Path(folder, "script")
                    script.write_text(f"#!/usr/bin/env {p['interpreter']}\n{p['hello']}\n")
                    self.assertEqual(run("run", str(script)), (0, "hi\n", ""))
                    self.assertEqual(run("run", "-", stdin=script.read_bytes()), (0, "hi\n", ""))

    def test_the_workspace_is_written_back_unless_the_run_was_cut_off(self):
        limit = ("--timeout", "none", "--cpu", "300ms")
        for language, p in self.PROGRAMS.items():
            for ending, status, options, written in [
                    ("", 0, (), True),
                    (p["fail"], 1, (), True),
                    (p["exit"], 7, (), True),
                    (p["loop"], 124, limit, True),
                    (p.get("forced", p["stubborn"]), 124, limit, False),
                    ("", 0, ("--on-error", "rollback"), True),
                    (p["fail"], 1, ("--on-error", "rollback"), False),
                    (p["exit"], 7, ("--on-error", "rollback"), False),
                    (p["loop"], 124, ("--on-error", "rollback", *limit), False)]:
                with self.subTest(language=language, ending=ending, options=options), tempfile.TemporaryDirectory() as folder:
                    out = pathlib.Path(folder, "out.txt")
                    out.write_text("old")
                    done, text, err = run("run", "-l", language, "--workspace", folder, "--json", *options, "-c",
                                          p["write"] + ";\n" + ending)
                    self.assertEqual(done, status, err)
                    self.assertEqual(out.read_text(), "new" if written else "old")
                    self.assertEqual(json.loads(text).get("writeBack"), {"written": 1, "refused": []} if written else None)

    def test_exit_handlers_that_are_cut_off_take_the_files_along(self):
        handler = ("import atexit\ndef wait():\n  while True:\n    try:\n      while True: pass\n    except BaseException: pass\n"
                   "atexit.register(wait); open('f', 'w').close()\n")
        for ending, status in ("", 124), ("1 / 0", 1):
            with self.subTest(ending=ending), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(run("run", "-l", "python", "--workspace", folder, "--timeout", "none", "--cpu", "300ms", "-c",
                                     handler + ending)[0], status)
                self.assertEqual(os.listdir(folder), [])

    def test_a_folder_program_that_fails_leaves_what_it_wrote(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language), tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "main" + p["ending"]).write_text(p["write"] + ";\n" + p["fail"])
                self.assertEqual(run("run", "--on-error", "rollback", folder)[0], 1)
                self.assertFalse(pathlib.Path(folder, "out.txt").exists())
                self.assertEqual(run("run", folder)[0], 1)
                self.assertEqual(pathlib.Path(folder, "out.txt").read_text(), "new")

    def test_a_program_that_failed_and_whose_files_cannot_be_written_is_status_3(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(f"{folder}/q")
            status, out, _ = run("run", "-l", "python", "--workspace", folder, "--json", "-c", "import os; os.mkdir('q'); 1 / 0")
            result = json.loads(out)
            self.assertEqual((status, result["ending"], result["writeBack"]["written"]), (3, "guest-error", 0))

    def test_a_folder_with_a_main_program_is_a_program(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                with tempfile.TemporaryDirectory() as folder:
                    pathlib.Path(folder, "main" + p["ending"]).write_text(p["write"])
                    self.assertEqual(run("run", folder)[0], 0)
                    self.assertEqual(pathlib.Path(folder, "out.txt").read_text(), "new")

    def test_a_program_in_its_workspace_finds_what_lies_beside_it_and_is_named_by_where_it_lies(self):
        beside = {
            "python": ("x.py", "y = 41", "from x import y; print(__file__, y)"),
            "perl": ("x.pm", "package x; our $y = 41; 1",
                     "use FindBin; use lib $FindBin::Bin; use x; print qq(@{[__FILE__]} $x::y\n)"),
            "ruby": ("x.rb", "Y = 41", "require_relative 'x'; puts %(#{__FILE__} #{Y})"),
            "javascript": ("x.js", "exports.y = 41", "console.log(__filename, require('./x.js').y)")}
        for language, (name, text, program) in beside.items():
            with self.subTest(language), tempfile.TemporaryDirectory() as folder:
                ending = self.PROGRAMS[language]["ending"]
                pathlib.Path(folder, "deep").mkdir()
                for place in ("", "deep"):
                    pathlib.Path(folder, place, name).write_text(text)
                    pathlib.Path(folder, place, "main" + ending).write_text(program)
                self.assertIn(f"/workspace/main{ending} 41\n", run("run", folder)[1])
                self.assertIn(f"/workspace/deep/main{ending} 41\n",
                              run("run", "--workspace", folder, f"{folder}/deep/main{ending}")[1])

    def test_a_link_that_leads_out_is_refused_by_name_and_the_rest_written(self):
        links = {
            "python": "import os; os.symlink('.', 's'); os.symlink('s/' * 6 + '../' * 6 + 'etc/passwd', 'e')",
            "perl": "symlink('.', 's'); symlink('s/' x 6 . '../' x 6 . 'etc/passwd', 'e'); undef",
            "ruby": "File.symlink('.', 's'); File.symlink('s/' * 6 + '../' * 6 + 'etc/passwd', 'e'); nil",
            "javascript": "fs.symlinkSync('.', 's'); fs.symlinkSync('s/'.repeat(6) + '../'.repeat(6) + 'etc/passwd', 'e');"
                          " undefined"}
        for language, code in links.items():
            with self.subTest(language), tempfile.TemporaryDirectory() as folder:
                status, out, err = run("run", "-l", language, "--workspace", folder, "-c", code)
                self.assertEqual((status, out), (0, ""), err)
                self.assertEqual(err, "sandbox-workers: not written back: e -> s/s/s/s/s/s/../../../../../../etc/passwd: "
                                      "leads out of the folder\n")
                self.assertEqual(os.listdir(folder), ["s"])

    def test_a_write_back_that_fails_shows_the_result_and_writes_nothing(self):
        make = {"python": "import os; os.mkdir('q'); open('a', 'w').close(); 42", "perl": "mkdir 'q'; open my $f, '>', 'a'; 42",
                "ruby": "Dir.mkdir('q'); File.write('a', ''); 42", "javascript": "fs.mkdirSync('q'); fs.writeFileSync('a', ''); 42"}
        reason = "q is a FIFO on the host, which was not loaded"
        for language, code in make.items():
            with self.subTest(language), tempfile.TemporaryDirectory() as folder:
                os.mkfifo(f"{folder}/q")
                words = ("run", "-l", language, "--workspace", folder, "-c", code)
                self.assertEqual(run(*words), (3, "42\n", "sandbox-workers: skipped, not loaded into the workspace: q\nsandbox-workers: "
                                               f"nothing was written back to {folder}: {reason}\n"))
                status, out, _ = run(*words, "--json")
                result = json.loads(out)
                self.assertEqual((status, result["ending"], len(result["results"])), (3, "completed", 1))
                self.assertEqual(result["writeBack"], {"written": 0, "refused": [], "error": reason})
                self.assertEqual(os.listdir(folder), ["q"])

    def test_a_main_program_that_is_no_file_of_the_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = pathlib.Path(parent, "folder")
            folder.mkdir()
            outside = pathlib.Path(parent, "outside.py")
            outside.write_text("print('outside')")
            main = folder / "main.py"
            os.mkfifo(main)
            self.assertEqual(run("run", str(folder)), (2, "", f"sandbox-workers: {main} is a FIFO, not a file\n"))
            main.unlink()
            main.symlink_to(outside)
            self.assertEqual(run("run", str(folder)),
                             (2, "", f"sandbox-workers: {main} is a link that leads out of its folder\n"))
            self.assertEqual(run("run", str(main)), (0, "outside\n", ""))  # the user named it
            main.unlink()
            main.mkdir()
            self.assertEqual(run("run", str(folder)), (2, "", f"sandbox-workers: {main} is a folder, not a file\n"))
            main.rmdir()
            (folder / "real.py").write_text("print('inside')")
            main.symlink_to("real.py")
            self.assertEqual(run("run", str(folder)), (0, "inside\n", ""))

    def test_runs_at_once_in_one_folder_each_write_all_or_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "shared").write_text("old")
            code = "import sys; n = sys.argv[1]; open('shared', 'w').write(n * 9999); open('own' + n, 'w').write(n)"
            runs = [(n, subprocess.Popen([PROGRAM, "run", "-l", "python", "--workspace", folder, "-c", code + "; None", n],
                                         stderr=subprocess.PIPE)) for n in "abcdef"]
            ended = {n: (child.communicate(timeout=BOUND_S)[1].decode(), child.returncode) for n, child in runs}
            for n, (err, status) in ended.items():
                self.assertEqual(os.path.exists(f"{folder}/own{n}"), status == 0, err)
                if status == 0:
                    self.assertEqual(err, "")
                else:
                    self.assertEqual((status, err), (3, f"sandbox-workers: nothing was written back to {folder}: shared "
                                                        "was changed on the host during the run\n"))
            text = pathlib.Path(folder, "shared").read_text()
            self.assertEqual((text, ended[text[0]][1]), (text[0] * 9999, 0))
            self.assertFalse([name for name in os.listdir(folder) if name.startswith(".")])

    def test_code_and_input_may_come_from_a_socket(self):
        for words, shown in ((["-l", "python", "-"], "7\n"), (["-l", "python", "--stdin", "-", "-c",
                                                              "import sys; sys.stdin.read()"], "'3+4'\n")):
            ours, theirs = socket.socketpair()
            ours.sendall(b"3+4")
            ours.shutdown(socket.SHUT_WR)
            with ours, theirs:
                done = subprocess.run([PROGRAM, "run", *words], stdin=theirs, capture_output=True, timeout=BOUND_S, check=False)
            self.assertEqual((done.returncode, done.stdout.decode()), (0, shown), done.stderr)

    def test_a_program_is_read_from_a_fifo_that_the_user_names(self):
        ends = os.pipe()
        os.write(ends[1], b"print('piped')")
        os.close(ends[1])
        with open(ends[0], "rb") as pipe:
            done = subprocess.run([PROGRAM, "run", "-l", "python", f"/dev/fd/{pipe.fileno()}"], capture_output=True,
                                  timeout=BOUND_S, check=False, pass_fds=[pipe.fileno()])
        self.assertEqual((done.returncode, done.stdout), (0, b"piped\n"))

    def test_json_has_the_protocols_fields(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                status, out, err = run("run", "-l", language, "--json", "-c", p["hello"] + ";\n" + p["value"])
                result = json.loads(out)
                self.assertEqual((status, err), (0, ""))
                self.assertEqual(result["logs"], {"stdout": ["hi"], "stderr": []})
                self.assertEqual(result["results"], [{"json": [1, "a"]}])
                self.assertEqual(result["language"], language)
                self.assertGreater(result["usage"]["memoryBytes"], 0)
                status, out, _ = run("run", "-l", language, "--json", "-c", p["fail"])
                result = json.loads(out)
                self.assertEqual((status, result["results"]), (1, []))
                name, message = p["error"].split(": ")
                self.assertEqual((result["error"]["name"], result["error"]["message"]), (name, p.get("message", message)))
                self.assertEqual(result["error"]["lineNumber"], 1)

    def test_endless_output_is_bounded_in_json(self):
        loops = {"python": "while True: print('spam' * 1000)", "javascript": "for (;;) console.log('spam'.repeat(1000))",
                 "perl": "print 'spam' x 1000, qq(\n) while 1", "ruby": "loop { puts 'spam' * 1000 }"}
        for language, _ in self.PROGRAMS.items():
            with self.subTest(language):
                status, out, _ = run("run", "-l", language, "--json", "--timeout", "1s", "-c", loops[language])
                self.assertEqual(status, 124)
                self.assertTrue(json.loads(out)["usage"]["outputTruncated"])
                self.assertLess(len(out), 4_000_000)

    def test_output_is_passed_on_as_it_is_printed(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                with subprocess.Popen([PROGRAM, "run", "-l", language, "--timeout", "none", "-c", p["loop"]],
                                      stdout=subprocess.PIPE) as child:
                    self.assertEqual(child.stdout.readline(), b"step\n")  # it never ends by itself
                    child.send_signal(signal.SIGINT)
                    self.assertEqual(child.wait(BOUND_S), 130)

    def test_hostile_sources_get_an_answer(self):
        for language, p in self.PROGRAMS.items():
            with self.subTest(language):
                for code in ("\x01\x02\x03", "(" * 10000, "[" * 200000, "a" * 100000, "\ufeff" + p["hello"]):
                    status, _, err = run("run", "-l", language, "-", stdin=code.encode())
                    self.assertIn(status, (0, 1), code[:10])
                    self.assertLess(len(err), 200_000)


class BadInput(unittest.TestCase):
    def refused(self, *arguments, stdin=b"", says):
        status, out, err = run(*arguments, stdin=stdin)
        self.assertEqual((status, out), (2, ""), err)
        self.assertTrue(one_line(err), err)
        self.assertIn(says, err)

    def test_one_clear_line_and_status_2(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = pathlib.Path(folder, "plain")
            plain.write_text("1")
            self.refused("run", "-l", "cobol", "-c", "1", says="unknown language 'cobol'; the languages are javascript, ")
            self.refused("frob", says="unknown command 'frob' (see sandbox-workers --help)")
            self.refused("context", "frob", "s", says="unknown command 'frob' (see sandbox-workers context --help)")
            self.refused("run", "--frob", "-c", "1", says="not expected: --frob; put -- before the program's arguments")
            self.refused("repl", says="--language is required (see sandbox-workers repl --help)")
            self.refused("run", "-c", "1", says="-l")
            self.refused("run", str(plain), says="cannot determine the language")
            self.refused("run", folder, says="has no main program")
            self.refused("run", "-l", "python", "-c", "", says="Non-empty code")
            self.refused("run", "-l", "python", "-c", " \n", says="Non-empty code")
            self.refused("run", "-l", "python", says="nothing to run")
            self.refused("run", "-l", "python", str(plain) + ".py", says="No such file")
            self.refused("run", "-l", "python", "-", stdin=bytes(range(256)), says="not valid UTF-8")
            self.refused("run", "-l", "python", "-", stdin=b"x = '\xff'", says="(byte 5)")
            self.refused("run", "-l", "python", "-", stdin=b"#" * (10 << 20), says="the limit is")
            self.refused("run", "-l", "python", "/dev/zero", says="the limit is")
            self.refused("run", "-l", "python", "-c", "1", "--stdin", "/dev/zero", says="the limit is")
            self.refused("run", "-l", "python", "-c", "1", "--env", "K", says="NAME=VALUE")
            self.refused("run", "-l", "python", "-c", "1", "--env", "=v", says="environment variable")
            self.refused("run", "-l", "python", "-c", "1", "--timeout", "soon", says="invalid duration 'soon'")
            self.refused("run", "-l", "python", "-c", "1", "--memory", "9G", says="invalid size '9G'")
            self.refused("run", "-l", "python", "-c", "1", "--workspace", folder + "/absent", says="absent")
            self.refused("run", "-l", "python", "-c", "1", "--stdin", folder + "/absent", says="absent")

    def test_wrong_options_are_status_2(self):
        for arguments in (["--frobnicate"], ["run", "--frobnicate"], ["frobnicate"], []):
            self.assertEqual(run(*arguments)[0], 2, arguments)


class Sandboxes(unittest.TestCase):
    CELLS = {"python": ("n = 1", "n += 1; n"), "javascript": ("var n = 1; undefined", "n += 1; n"),
             "perl": ("my $n = 1; undef", "use strict; $n += 1"), "ruby": ("n = 1; nil", "n += 1")}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.env = {"SANDBOX_WORKERS_DATA": str(pathlib.Path(folder.name, "data"))}

    def run_in(self, language, code, *options):
        return run("run", "--sandbox", "s", "-l", language, *options, "-c", code, env=self.env)

    def test_state_lives_on_in_the_next_process(self):
        for language, (first, add) in self.CELLS.items():
            with self.subTest(language):
                self.assertEqual(self.run_in(language, first), (0, "", ""))
                self.assertEqual(self.run_in(language, add), (0, "2\n", ""))
                self.assertEqual(self.run_in(language, add, "--context", "other-" + language)[0], 1)
                context = json.loads(self.run_in(language, add, "--json")[1])["context"]
                self.assertEqual((context["id"], context["state"], context["executions"]), (language, "restored", 3))

    def test_contexts_are_forked_undone_marked_and_deleted(self):
        self.run_in("python", "n = 1")
        self.assertEqual(run("context", "checkpoint", "s", "python", "one", env=self.env)[0], 0)
        self.assertEqual(self.run_in("python", "n += 1; n")[1], "2\n")
        self.assertEqual(run("context", "fork", "s", "python", "copy", env=self.env)[0], 0)
        self.assertEqual(self.run_in("python", "n += 10; n", "--context", "copy")[1], "12\n")
        self.assertEqual(run("context", "undo", "s", "copy", env=self.env)[0], 0)
        self.assertEqual(self.run_in("python", "n", "--context", "copy")[1], "2\n")
        self.assertEqual(run("context", "restore", "s", "python", "one", env=self.env)[0], 0)
        self.assertEqual(self.run_in("python", "n")[1], "1\n")
        self.assertEqual(run("context", "delete", "s", "copy", env=self.env)[0], 0)
        listed = json.loads(run("contexts", "s", "--json", env=self.env)[1])
        self.assertEqual([(c["id"], c["stale"]) for c in listed], [("python", False)])
        self.assertIn("python", run("contexts", "s", env=self.env)[1])
        stored = json.loads(run("snapshots", "s", "--json", env=self.env)[1])
        self.assertEqual([(c["context"], c["snapshot"]["stale"]) for c in stored], [("python", False)])
        self.assertGreater(stored[0]["snapshot"]["bytes"], 0)
        self.assertGreater(stored[0]["snapshot"]["storedBytes"], 0)
        self.assertEqual([c["name"] for c in stored[0]["checkpoints"]], ["one"])
        self.assertRegex(run("snapshots", "s", env=self.env)[1], r"python +python +saved .* one\n")

    def test_files_go_back_with_memory_if_they_are_asked_to(self):
        def files():
            listed = json.loads(run("files", "ls", "s", "--json", env=self.env)[1])
            return sorted(entry["path"] for entry in listed)

        def context(*arguments):
            status, out, err = run("context", *arguments, env=self.env)
            self.assertEqual((status, out), (0, ""), err)
            return err

        write = "n = {0}; _ = open('{0}', 'w').write('text')"
        for n in range(1, 7):
            self.run_in("python", write.format(n))
        everything = files()
        self.assertEqual(len(everything), 6)
        told = context("undo", "s", "python", "--runs", "5")
        self.assertEqual(told, "sandbox-workers: files differ from those that the memory saw: 2, 3, 4 and 2 more "
                               "(to put them back: context restore s python 1 --files)\n")
        self.assertEqual(files(), everything)
        self.assertEqual(context("restore", "s", "python", "1", "--files"), "")
        self.assertEqual(files(), everything[:1])
        self.assertEqual(context("restore", "s", "python", "6", "--files"), "")
        self.assertEqual(files(), everything)
        self.assertIn("(to put them back: context restore s copy 5 --files)",
                      context("fork", "s", "python", "copy", "--from", "5"))
        self.assertEqual(context("undo", "s", "python", "--files"), "")
        self.assertEqual(files(), everything[:1])  # as before the last restore
        self.assertEqual(context("restore", "s", "python", "6", "--files"), "")
        self.assertEqual(context("fork", "s", "python", "again", "--from", "2", "--files"), "")
        self.assertEqual(files(), everything[:2])
        self.assertEqual(self.run_in("python", "n", "--context", "again")[1], "2\n")

    def test_unread_input_is_not_the_next_runs(self):
        for language, read in (("python", "input()"), ("perl", "scalar <STDIN>"), ("ruby", "gets")):
            with self.subTest(language):
                first = run("run", "--sandbox", "s", "-l", language, "--stdin", "-", "-c", read, stdin=b"a\nb\n", env=self.env)
                self.assertEqual(first[0], 0)
                rest = {"python": "import sys; sys.stdin.read()", "perl": "join '', <STDIN>",
                        "ruby": "$stdin.read"}[language]
                second = run("run", "--sandbox", "s", "-l", language, "--stdin", "-", "-c", rest, "--json",
                             stdin=b"fresh\n", env=self.env)
                self.assertIn("fresh", second[1])
                self.assertNotIn("b", json.loads(second[1])["results"][0]["text"])

    def test_a_sandbox_that_is_not_there_is_not_made_by_looking(self):
        for command in (["contexts", "ghost"], ["snapshots", "ghost"], ["context", "undo", "ghost", "python"]):
            status, _, err = run(*command, env=self.env)
            self.assertEqual(status, 2)
            self.assertIn("no sandbox 'ghost'", err)
        self.assertEqual(run("run", "--sandbox", "", "-l", "python", "-c", "1", env=self.env)[0], 2)

    def test_paths_as_long_as_the_limits_say_are_stored(self):
        self.assertEqual(self.run_in("python", "import os; os.makedirs('/workspace/' + '/'.join(['d' * 200] * 15))")[0], 0)
        self.assertEqual(self.run_in("python", "len(max((p for p, _, _ in os.walk('/workspace')), key=len))")[1], "3025\n")

    def test_an_emptied_catalog_loses_nothing(self):
        self.run_in("python", "n = 41")
        catalog = pathlib.Path(self.env["SANDBOX_WORKERS_DATA"], "catalog.sqlite")
        catalog.write_bytes(b"")
        self.assertEqual(self.run_in("python", "n + 1")[1], "42\n")

    # Writes a line to a file that stays open, and adds 1 to n.
    LOG = {"python": ("n = 0; log = open('log', 'w')", "n += 1; _ = log.write('%s\\n'), log.flush()", "1 / 0", "n"),
           "javascript": ("var n = 0, log = fs.openSync('log', 'w')", "n += 1; fs.writeSync(log, '%s\\n');", "null.x", "n"),
           "perl": ("use IO::Handle; our $n = 0; open(our $log, '>', 'log'); $log->autoflush(1);",
                    "$n += 1; print $log qq(%s\\n);", "die 'x'", "$n"),
           "ruby": ("n = 0; log = File.open('log', 'w'); log.sync = true; nil", "n += 1; log.puts('%s')", "raise 'x'", "n")}

    def test_an_error_keeps_files_and_memory_or_rolls_both_back(self):
        for language, (first, write, fail, count) in self.LOG.items():
            for options, log, n in [((), "one\ntwo\nthree\n", "3\n"), (("--on-error", "rollback"), "one\nthree\n", "2\n")]:
                with self.subTest(language=language, options=options):
                    context = ("--context", f"{language}-{len(options)}")
                    self.run_in(language, first + "\n" + write % "one", *context)
                    status, _, err = self.run_in(language, write % "two" + "\n" + fail, *context, *options)
                    self.assertEqual((status, "rolled back: memory and files are as before this run" in err), (1, n == "2\n"))
                    self.run_in(language, write % "three", *context)
                    self.assertEqual(self.run_in(language, count, *context), (0, n, ""))
                    self.assertEqual(self.run_in("python", "print(open('log').read(), end='')")[1], log)

    def test_a_run_at_a_limit_is_saved_if_it_ended_when_it_was_asked_to(self):
        self.run_in("python", "n = 1")
        self.assertEqual(self.run_in("python", "n = 2\nwhile True: pass", "--timeout", "300ms")[0], 124)
        self.assertEqual(self.run_in("python", "n"), (0, "2\n", ""))

    def test_a_run_that_was_stopped_by_force_is_told_in_the_next_one(self):
        self.run_in("python", "n = 1")
        cut_off = "n = 2; open('f', 'w').close()\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass"
        status, _, err = self.run_in("python", cut_off, "--timeout", "300ms")
        self.assertEqual(status, 124)
        self.assertIn("the memory of this run was not saved, and its files were rolled back", err)
        status, out, err = self.run_in("python", "import os; n, os.listdir('.')")
        self.assertEqual((status, out), (0, "(1, [])\n"))
        self.assertIn("could not be saved", err)

    def test_tracebacks_name_a_cell_by_the_count_of_its_context(self):
        self.run_in("python", "1")
        self.run_in("python", "import os\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass",
                    "--timeout", "300ms")
        result = json.loads(self.run_in("python", "1 / 0", "--json")[1])
        self.assertEqual(result["executionCount"], 3)
        self.assertIn('File "<cell 3>", line 1', "\n".join(result["error"]["traceback"]))

    def test_tracebacks_name_a_program_by_its_file(self):
        for language, program in Languages.PROGRAMS.items():
            with self.subTest(language), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "prog" + program["ending"])
                path.write_text(program["fail"])
                status, _, err = run("run", "--sandbox", "s", str(path), env=self.env)
                self.assertEqual(status, 1)
                self.assertIn(str(path), err)
                self.assertNotIn("<cell", err)

    def test_wrong_use_is_refused(self):
        self.run_in("python", "1")
        for arguments, says in [
            (["run", "-l", "python", "--context", "c", "-c", "1"], "--context needs --sandbox"),
            (["run", "-l", "python", "--sandbox", "a b", "-c", "1"], "Invalid sandbox id"),
            (["run", "-l", "python", "--sandbox", "s", "--workspace", ".", "-c", "1"], "cannot be combined with --workspace"),
            (["run", "-l", "python", "--on-error", "undo", "-c", "1"], "invalid --on-error 'undo'"),
            (["context", "undo", "s", "absent"], "no context 'absent'"),
            (["contexts", "s", "--data", f"{self.env['SANDBOX_WORKERS_DATA']}/absent"], "no sandbox 's' in "),
        ]:
            status, out, err = run(*arguments, env=self.env)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertTrue(one_line(err), err)
            self.assertIn(says, err)


class Streams(unittest.TestCase):
    def test_a_reader_that_goes_away_ends_the_program(self):
        with subprocess.Popen([PROGRAM, "run", "-l", "python", "-c", "while True: print('x')"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as child:
            child.stdout.readline()
            child.stdout.close()
            self.assertNotEqual(child.wait(BOUND_S), 0)

    def test_bytes_pass_unchanged(self):
        done = subprocess.run([PROGRAM, "run", "-l", "python", "-c",
                               "import sys; sys.stdout.buffer.write(bytes(range(256))); None"],
                              capture_output=True, timeout=BOUND_S, check=True)
        self.assertEqual(done.stdout, bytes(range(256)))


class LargeWork(unittest.TestCase):
    """What the host does for a program ends at the program's limit and stays within its memory."""

    # From the start of the process to its end, most of it for the language's start and the program's own part. Without
    # a look at the limit each of these takes from 5 to 20 s.
    CPU_MAX_S = 4.5

    def run_limited(self, language, code, memory_mib, *options, host_mib=160):
        command = [PROGRAM, "run", "-l", language, "--timeout", "1s", "--memory", f"{memory_mib}M", *options, "-c", code]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            said = process.stderr.read().decode()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(process.returncode, (124, 137), said)
        self.assertLess(used.ru_utime + used.ru_stime, self.CPU_MAX_S, said)
        self.assertLess(used.ru_maxrss >> 10, memory_mib + host_mib, said)

    def test_text_is_decoded_in_pieces(self):
        self.run_limited("javascript", "new TextDecoder().decode(new Uint8Array(4.5e8).fill(255))", 1024)

    def test_digests_are_made_in_pieces(self):
        self.run_limited("javascript", "const data = new Uint8Array(5e8); "
                         "for (;;) await crypto.subtle.digest('SHA-512', data)", 1024)

    def test_a_large_file_is_no_way_around_the_memory_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/f", "wb") as file:
                file.write(b"\xff" * 260_000_000)
            # The files of the folder are not the run's memory.
            self.run_limited("javascript", "fs.readFileSync('/workspace/f', 'utf8').length", 32,
                             "--workspace", folder, host_mib=160 + 2 * 260)

    def test_devices_are_read_in_pieces(self):
        for device in ("urandom", "zero"):
            with self.subTest(device):
                self.run_limited("python", f"import os\nfd = os.open('/dev/{device}', os.O_RDONLY)\n"
                                 "while True: os.read(fd, 2_000_000_000)", 4096)

    def test_random_numbers_come_in_pieces(self):
        self.run_limited("ruby", "loop { File.open('/dev/urandom', 'rb') { |f| f.read(400_000_000) } }", 1024)


class Cache(unittest.TestCase):
    """Baking in a cache of its own; the package is taken from the user's so that no registry is asked."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = pathlib.Path(self.folder.name, "cache")
        user = pathlib.Path(os.environ.get("SANDBOX_WORKERS_CACHE") or pathlib.Path(
            os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sandbox-workers"))
        run("bake", "javascript")
        (self.cache / "artifacts").mkdir(parents=True)
        self.cache.chmod(0o700)
        (self.cache / "artifacts").chmod(0o700)
        self.env = {"SANDBOX_WORKERS_CACHE": str(self.cache)}
        for package in (user / "artifacts").glob("package-javascript-*"):
            copy = self.cache / "artifacts" / package.name
            shutil.copytree(package, copy)
            if self.engines()["javascript"]["packageBytes"]:
                break
            shutil.rmtree(copy)  # another version's

    def engines(self):
        status, out, _ = run("engines", "--json", env=self.env)
        self.assertEqual(status, 0)
        return {engine["language"]: engine for engine in json.loads(out)}

    def test_engines_says_what_is_baked(self):
        before = self.engines()["javascript"]
        self.assertFalse(before["baked"])
        self.assertGreater(before["packageBytes"], 0)
        self.assertEqual(run("bake", "javascript", env=self.env)[0], 0)
        after = self.engines()["javascript"]
        self.assertTrue(after["baked"])
        self.assertGreater(after["codeBytes"], 0)
        self.assertGreater(after["imageBytes"], 0)
        self.assertIn("javascript", run("engines", env=self.env)[1])

    def test_two_bakes_at_once(self):
        children = [subprocess.Popen([PROGRAM, "bake", "javascript"], env={**os.environ, **self.env},
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        builds = set()
        for child in children:
            out, err = child.communicate(timeout=BOUND_S)
            self.assertEqual(child.returncode, 0, err)
            builds.add(out)
        self.assertEqual(len(builds), 1)
        left = [path.name for path in (self.cache / "artifacts").iterdir() if path.is_dir()]
        self.assertEqual(sorted(name.split("-")[0] for name in left), ["code", "image", "package"])

    def test_a_bake_that_was_killed_is_done_again(self):
        child = subprocess.Popen([PROGRAM, "bake", "javascript"], env={**os.environ, **self.env},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + BOUND_S
        while not any((self.cache / "artifacts").glob(".making-*")) and child.poll() is None:
            self.assertLess(time.monotonic(), deadline)
        child.kill()
        child.wait()
        self.assertEqual(run("run", "-l", "js", "-c", "6 * 7", env=self.env)[:2], (0, "42\n"))
        self.assertEqual(list((self.cache / "artifacts").glob(".making-*")), [])

    def test_damage_is_noticed_and_mended(self):
        self.assertEqual(run("bake", "javascript", env=self.env)[0], 0)
        for file in sorted((self.cache / "artifacts").glob("*/*")):
            if file.name == "quickjs.wasm" or file.suffix == ".zip":
                continue  # mending those needs the registry
            with self.subTest(file.name):
                data = bytearray(file.read_bytes())
                data[len(data) // 2] ^= 0xFF
                with open(file, "r+b") as damaged:
                    damaged.write(data)
                self.assertFalse(self.engines()["javascript"]["baked"] and file.name != "digests")
                status, out, err = run("run", "-l", "js", "-c", "6 * 7", env=self.env)
                self.assertEqual((status, out), (0, "42\n"), err)
                self.assertTrue(self.engines()["javascript"]["baked"])

    def test_a_cache_others_can_write_is_refused(self):
        self.cache.chmod(0o777)
        status, _, err = run("run", "-l", "js", "-c", "1", env=self.env)
        self.assertEqual(status, 3)
        self.assertIn("writable by you only", err)
        self.assertIn("SANDBOX_WORKERS_CACHE", err)

    def test_a_bar_on_a_terminal_and_lines_elsewhere(self):
        _, _, err = run("bake", "javascript", env=self.env)
        self.assertIn("sandbox-workers: compiling QuickJS", err)
        self.assertNotIn("\r", err)
        shutil.rmtree(next((self.cache / "artifacts").glob("code-javascript-*")))
        leader, follower = pty.openpty()
        child = subprocess.Popen([PROGRAM, "bake", "javascript"], env={**os.environ, **self.env},
                                 stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        shown = b""
        try:
            while block := os.read(leader, 4096):
                shown += block
        except OSError:
            pass  # the other end was closed
        self.assertEqual(child.wait(BOUND_S), 0)
        self.assertIn(b"\r", shown)
        self.assertIn(b"compiling QuickJS", shown)


if __name__ == "__main__":
    unittest.main()
