# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Commands beside a process that has the data folder: a prompt, or another command.

usage: asking_test.py PROGRAM
"""
import array
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from terminal import DEADLINE_S, Terminal

PROGRAM = sys.argv.pop(1)
OWNER_ENDED = 4
SPIN = "console.log('here'); for (;;);"
# Prints until somebody reads it: a pipe holds less.
FLOOD = "console.log('here'); for (;;) console.log('x'.repeat(1000));"


class Owned(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data = self.folder / "data"
        self.env = {**os.environ, "SANDBOX_WORKERS_DATA": str(self.data), "XDG_STATE_HOME": str(self.folder / "state")}

    def start(self, *arguments, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder,
                   "text": True, "env": self.env, **options}
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], **options)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def run_to_its_end(self, *arguments, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*arguments, **options)
        out, err = process.communicate(input, timeout=DEADLINE_S)
        return process.returncode, out, err

    def cell(self, code, *options, **more):
        return self.run_to_its_end("run", "--sandbox", "s", "-l", "javascript", *options, "-c", code, **more)

    def prompt(self, *options):
        """A prompt at a pipe, which has the folder once it answers."""
        process = self.start("repl", "-l", "javascript", "--sandbox", "s", *options, stdin=subprocess.PIPE)
        self.assertEqual(self.ask(process, "var x = 41; 'ready'"), "'ready'\n")
        return process

    def ask(self, prompt, cell):
        prompt.stdin.write(cell + "\n")
        prompt.stdin.flush()
        return prompt.stdout.readline()

    def leave(self, prompt):
        out, err = prompt.communicate(timeout=DEADLINE_S)
        self.assertEqual((prompt.returncode, out), (0, ""), err)
        return err

    def spinning(self, code=SPIN, *options, **more):
        """A run beside the owner that has begun and does not end."""
        process = self.start("run", "--sandbox", "s", "--context", "other", "-l", "javascript", "--timeout", "none",
                             *options, "-c", code, **more)
        self.assertEqual(process.stdout.readline(), "here\n")
        return process


class BesideAPrompt(Owned):
    def test_each_command_sees_what_the_prompt_did_and_the_other_way_round(self):
        prompt = self.prompt()
        self.assertEqual(self.cell("x + 1"), (0, "42\n", ""))
        self.assertEqual(self.cell("x = 1; fs.writeFileSync('f', 'text'); undefined"), (0, "", ""))
        self.assertEqual(self.ask(prompt, "[x, fs.readFileSync('f', 'utf8')].join()"), "'1,text'\n")
        self.assertEqual(json.loads(self.run_to_its_end("sandboxes", "--json")[1])[0]["id"], "s")
        self.assertEqual(json.loads(self.run_to_its_end("sandboxes", "info", "s", "--json")[1])["id"], "s")
        self.assertIn("javascript", self.run_to_its_end("contexts", "s")[1])
        self.assertIn("saved", self.run_to_its_end("snapshots", "s")[1])
        self.assertEqual(self.run_to_its_end("context", "fork", "s", "javascript", "copy"), (0, "", ""))
        self.assertEqual(self.cell("x + 10", "--context", "copy"), (0, "11\n", ""))
        self.assertEqual(self.run_to_its_end("context", "delete", "s", "copy"), (0, "", ""))
        self.assertEqual(self.run_to_its_end("backup", "copy"), (0, "2 objects copied to copy\n", ""))
        self.assertTrue((self.folder / "copy" / "catalog.sqlite").exists())
        self.assertEqual(self.cell("1", "--context", "c"), (0, "1\n", ""))
        self.assertEqual(self.run_to_its_end("run", "--sandbox", "t", "-l", "javascript", "-c", "2"), (0, "2\n", ""))
        self.assertEqual(self.run_to_its_end("sandboxes", "delete", "t"), (0, "", ""))
        self.assertEqual(self.leave(prompt), "")
        self.assertEqual([entry["id"] for entry in json.loads(self.run_to_its_end("sandboxes", "--json")[1])], ["s"])

    def test_a_prompt_in_a_terminal_is_not_disturbed(self):
        terminal = Terminal(PROGRAM, self.folder / "state", "-l", "javascript", "--sandbox", "s", "--data", str(self.data))
        terminal.wait_for("> $")
        terminal.cell("var x = 41", "> $")
        self.assertEqual(self.cell("console.error('loud'); x++"), (0, "41\n", "loud\n"))
        terminal.cell("x", r"\n42\r")
        self.assertEqual(terminal.leave(), 0)

    def test_runs_in_the_prompt_s_context_take_their_turn(self):
        prompt = self.prompt()
        prompt.stdin.write("console.log('here'); const end = Date.now() + 2000; while (Date.now() < end); x = 'late'; undefined\n")
        prompt.stdin.flush()
        self.assertEqual(prompt.stdout.readline(), "here\n")
        self.assertEqual(self.cell("x"), (0, "'late'\n", ""))
        self.leave(prompt)

    def test_paths_are_the_asking_process_s(self):
        prompt = self.prompt()
        place = self.folder / "place"
        place.mkdir()
        (place / "main.js").write_text("console.log(require('process').argv.slice(1).join())")
        (place / "in").write_text("input")
        self.assertEqual(self.run_to_its_end("run", "--sandbox", "s", "main.js", "a", cwd=place)[1].split(",")[-1], "a\n")
        self.assertEqual(self.run_to_its_end("files", "put", "s", "in", cwd=place), (0, "", ""))
        self.assertEqual(self.run_to_its_end("files", "get", "s", "in", "out", cwd=place), (0, "", ""))
        self.assertEqual((place / "out").read_text(), "input")
        self.assertEqual(self.run_to_its_end("files", "cp", "s:in", ".", cwd=self.folder)[0], 0)
        self.assertEqual((self.folder / "in").read_text(), "input")
        self.assertEqual(self.run_to_its_end("backup", "copy", cwd=place)[0], 0)
        self.assertTrue((place / "copy").is_dir())
        self.leave(prompt)

    def test_standard_input_is_the_asking_process_s(self):
        prompt = self.prompt()
        program = ("run", "--sandbox", "s", "-l", "python")
        self.assertEqual(self.run_to_its_end(*program, "-", input="6 * 7"), (0, "42\n", ""))
        self.assertEqual(self.run_to_its_end(*program, "--stdin", "-", "-c", "input()", input="a line\n"), (0, "'a line'\n", ""))
        much = "x" * 3_000_000
        self.assertEqual(self.run_to_its_end("files", "put", "s", "-", "much", input=much), (0, "", ""))
        self.assertEqual(self.run_to_its_end("files", "cat", "s", "much"), (0, much, ""))
        read, write = os.pipe()
        os.write(write, b"6 * 8")
        os.close(write)
        self.assertEqual(self.run_to_its_end(*program, f"/dev/fd/{read}", pass_fds=(read,)), (0, "48\n", ""))
        os.close(read)
        self.leave(prompt)

    def answer(self, *command):
        status, out, err = self.run_to_its_end(*command)
        return status, out, re.sub(r"<cell \d+>", "<cell>", err)

    def test_sandboxes_are_exported_and_imported_beside_a_prompt(self):
        self.prompt()
        self.assertEqual(self.run_to_its_end("sandboxes", "export", "s", "file"), (0, "", ""))
        self.assertEqual(self.run_to_its_end("sandboxes", "import", "copy", "file"), (0, "", ""))
        with (self.folder / "file").open("rb") as file:
            self.assertEqual(self.run_to_its_end("sandboxes", "import", "again", stdin=file), (0, "", ""))
        for sandbox in ("copy", "again"):
            self.assertEqual(self.run_to_its_end("run", "--sandbox", sandbox, "-l", "javascript", "-c", "x")[1], "41\n")

    def test_statuses_and_messages_are_those_of_a_command_alone(self):
        commands = [("run", "--sandbox", "s", "-l", "javascript", "-c", "process.exit(7)"),
                    ("run", "--sandbox", "s", "-l", "javascript", "-c", "nope"),
                    ("run", "--sandbox", "s", "-l", "javascript", "--timeout", "100ms", "-c", "for (;;);"),
                    ("run", "--sandbox", "s", "absent.py"), ("contexts", "absent"), ("context", "undo", "s", "absent"),
                    ("files", "cat", "s", "absent"), ("files", "get", "s", "absent"), ("files", "rm", "s", "/workspace"),
                    ("files", "cp", "a", "b"), ("sandboxes", "delete", "absent"), ("sandboxes", "info", "a b")]
        alone = [self.answer(*command) for command in commands]
        prompt = self.prompt()
        for command, answer in zip(commands, alone):
            with self.subTest(command):
                self.assertNotEqual(answer[0], 0)
                self.assertEqual(self.answer(*command), answer)
        self.leave(prompt)

    def test_another_prompt_is_told_who_has_the_folder(self):
        prompt = self.prompt()
        status, out, err = self.run_to_its_end("repl", "-l", "python", "--sandbox", "s")
        self.assertEqual((status, out), (3, ""))
        self.assertIn(f"in use by process {prompt.pid}: end it first, or use `run --sandbox`", err)
        self.leave(prompt)

    def test_ctrl_c_ends_the_run_of_who_asked_and_keeps_its_state(self):
        prompt = self.prompt()
        for number in (signal.SIGINT, signal.SIGTERM):
            run = self.spinning("globalThis.n = (globalThis.n ?? 0) + 1; " + SPIN)
            run.send_signal(number)
            out, err = run.communicate(timeout=DEADLINE_S)
            self.assertEqual((run.returncode, out), (130, ""), err)
            self.assertIn("interrupted", err)
        self.assertEqual(self.cell("n", "--context", "other"), (0, "2\n", ""))
        self.assertEqual(self.ask(prompt, "x"), "41\n")
        self.leave(prompt)

    def test_a_killed_asker_s_run_ends_and_its_context_goes_on(self):
        prompt = self.prompt()
        for code in (SPIN, FLOOD):
            run = self.spinning(code)
            run.kill()
            # What waits for a reader is stopped by force, and not stored.
            self.assertEqual(self.cell("6 * 7", "--context", "other")[:2], (0, "42\n"))
        self.assertEqual(self.ask(prompt, "x"), "41\n")
        self.leave(prompt)

    def test_output_that_cannot_be_printed_is_the_asker_s_failure_only(self):
        prompt = self.prompt()
        with open("/dev/full", "w", encoding="utf-8") as full:
            status, _, err = self.run_to_its_end("files", "ls", "s", "-R", "--json", stdout=full)
            self.assertEqual((status, err), (3, "sandbox-workers: cannot write to standard output: No space left on device\n"))
            self.assertEqual(self.cell("'x'", stdout=full)[0], 3)
        run = self.spinning(FLOOD)
        run.stdout.close()
        self.assertIn(run.wait(DEADLINE_S), (1, 3))
        run.stdout = None
        slow = self.spinning(FLOOD)
        self.assertEqual(self.ask(prompt, "x"), "41\n")
        self.assertEqual(self.cell("x"), (0, "41\n", ""))
        slow.send_signal(signal.SIGINT)
        slow.communicate(timeout=DEADLINE_S)
        self.leave(prompt)

    def test_fifty_commands_at_once_are_all_done(self):
        prompt = self.prompt()
        code = "x += 1; undefined"
        runs = [self.start("run", "--sandbox", "s", "-l", "javascript", "--timeout", "none", "-c", code) for _ in range(50)]
        for run in runs:
            self.assertEqual((*run.communicate(timeout=DEADLINE_S), run.returncode), ("", "", 0))
        self.assertEqual(self.ask(prompt, "x"), "91\n")
        self.leave(prompt)


class WhenTheOwnerEnds(Owned):
    def test_a_killed_owner_is_named_and_the_folder_is_free(self):
        prompt = self.prompt()
        run = self.spinning()
        prompt.kill()
        _, err = run.communicate(timeout=DEADLINE_S)
        self.assertEqual((run.returncode, err),
                         (OWNER_ENDED, f"sandbox-workers: process {prompt.pid}, which ran this command, ended before it was done\n"))
        self.assertTrue((self.data / "commands").is_socket())  # which nobody listens to any more
        self.assertEqual(self.cell("x"), (0, "41\n", ""))
        self.assertFalse((self.data / "commands").exists())

    def test_a_prompt_that_is_left_lets_commands_end(self):
        prompt = self.prompt()
        # It ends once all that it prints is read: a pipe holds less.
        run = self.spinning("console.log('here'); process.stdout.write('x'.repeat(1 << 20)); 'done'")
        prompt.stdin.close()
        self.assertIn("waiting for commands of other processes: 1 ", prompt.stderr.readline())
        out, err = run.communicate(timeout=DEADLINE_S)
        self.assertEqual((run.returncode, out.lstrip("x"), err), (0, "'done'\n", ""))
        self.assertEqual(prompt.wait(DEADLINE_S), 0)
        prompt.stdin = None

    def test_what_does_not_end_by_itself_is_interrupted_and_stored(self):
        prompt = self.prompt()
        run = self.spinning("var n = 1; " + SPIN)
        self.leave(prompt)
        _, err = run.communicate(timeout=DEADLINE_S)
        self.assertEqual(run.returncode, OWNER_ENDED)
        self.assertIn(f"process {prompt.pid}, which ran this command, is ending and interrupted it", err)
        self.assertEqual(self.cell("n", "--context", "other"), (0, "1\n", ""))

    def test_a_run_serves_others_while_it_lasts(self):
        first = self.spinning()
        self.assertEqual(self.cell("6 * 7"), (0, "42\n", ""))
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=DEADLINE_S)
        self.assertEqual(first.returncode, 130)

    def test_of_many_at_once_without_an_owner_all_are_done(self):
        code = "globalThis.n = (globalThis.n ?? 0) + 1; undefined"
        runs = [self.start("run", "--sandbox", "s", "-l", "javascript", "--timeout", "none", "-c", code) for _ in range(30)]
        for run in runs:
            out, err = run.communicate(timeout=DEADLINE_S)
            # One that owns the folder says so if it has to wait for the others.
            err = re.sub(r"sandbox-workers: waiting for commands of other processes: \d+ \(Ctrl-C interrupts them\)\n", "", err)
            self.assertEqual((out, err, run.returncode), ("", "", 0))
        self.assertEqual(self.cell("n"), (0, "30\n", ""))


class Strangers(Owned):
    def test_a_program_without_the_socket_is_named_at_once(self):
        self.assertEqual(self.cell("1"), (0, "1\n", ""))
        with open(self.data / "lock", "r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            for command in (("sandboxes",), ("run", "--sandbox", "s", "-l", "javascript", "-c", "1"), ("files", "ls", "s")):
                self.assertEqual(self.run_to_its_end(*command), (3, "", (
                    f"sandbox-workers: the data folder {self.data} is in use by process {os.getpid()}, which takes no commands: "
                    "wait until it ends, or use another folder (--data)\n")))

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.connect(str(self.data / "commands"))
        return client

    def test_hostile_clients_harm_nobody(self):
        prompt = self.prompt()
        silent = [self.connect() for _ in range(30)]
        for garbage in (b"\0" * 100, os.urandom(100_000), b"SWc1\xff\xff\xff\xff", b"SWc1\0\0\0\0", b"SWc1\3\0\0\0/a\0",
                        b"SWc1\0\0\x10\0" + b"x" * 1000):
            client = self.connect()
            try:
                client.sendall(garbage)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        # A command that only the owner's own process may give, and one whose streams are not for writing.
        for words in (b"/\0repl\0-l\0javascript\0", b"/\0run\0-l\0javascript\0-c\x001\0", b"/\0bake\0", b"/\0", b"/\0sandboxes\0"):
            client = self.connect()
            null = os.open("/dev/null", os.O_RDONLY)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 3))]
            client.sendmsg([b"SWc1" + struct.pack("<I", len(words)) + words], rights)
            os.close(null)
            self.assertEqual(client.recv(2), b"b\0")
            self.assertEqual(client.recv(1), b"e")
            self.assertNotEqual(client.recv(1), b"\0")
        self.assertEqual(self.ask(prompt, "x"), "41\n")
        self.assertEqual(self.cell("x"), (0, "41\n", ""))
        self.leave(prompt)
        del silent

    def test_a_run_without_a_sandbox_needs_no_folder(self):
        prompt = self.prompt()
        self.assertEqual(self.run_to_its_end("run", "-l", "javascript", "-c", "6 * 7"), (0, "42\n", ""))
        os.kill(prompt.pid, signal.SIGSTOP)  # whoever asked it would wait
        self.assertEqual(self.run_to_its_end("run", "-l", "javascript", "-c", "6 * 7"), (0, "42\n", ""))
        os.kill(prompt.pid, signal.SIGCONT)
        self.leave(prompt)


if __name__ == "__main__":
    unittest.main()
