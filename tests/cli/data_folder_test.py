# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Data folders and caches that cannot be used as they are: read-only, full, no folders at all, somebody else's.

usage: data_folder_test.py PROGRAM
"""
import ctypes
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
BOUND_S = 600
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER = 1, 2, 3
PR_CAPBSET_DROP = 24


def obey_permissions():
    """Root does not, but for this: what is executed next lacks the capabilities to ignore them."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "prctl")


def full_disk():
    """What the process writes into a file beyond so much fails, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data = self.folder / "data"

    def start(self, *arguments, env=None, **options):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=BOUND_S, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, **options)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def cell(self, code, **options):
        return self.start("run", "--sandbox", "s", "-l", "javascript", "--data", str(self.data), "-c", code, **options)

    def assert_refused(self, answer, *words, status=(2, 3)):
        self.assertIn(answer[0], status, answer)
        self.assertEqual(answer[1], "", answer)
        self.assertEqual(answer[2].count("\n"), 1, answer)
        for word in (*words, "sandbox-workers: "):
            self.assertIn(word, answer[2])


class Data(Folders):
    COMMANDS = [("run", "--sandbox", "s", "-l", "javascript", "-c", "1"), ("contexts", "s"), ("snapshots", "s"),
                ("context", "undo", "s", "javascript"), ("repl", "-l", "javascript", "--sandbox", "s")]

    def set_mode(self, files, folders):
        for path in (self.data, *self.data.rglob("*")):
            path.chmod(folders if path.is_dir() else files)

    def test_a_read_only_folder_is_refused_by_every_command_and_left_as_it_was(self):
        self.assertEqual(self.cell("var x = 41; undefined"), (0, "", ""))
        before = contents(self.data)
        self.set_mode(0o400, 0o500)
        self.addCleanup(self.set_mode, 0o600, 0o700)
        for command in self.COMMANDS:
            with self.subTest(command):
                self.assert_refused(self.start(*command, "--data", str(self.data), preexec_fn=obey_permissions),
                                    str(self.data), "ermission")
        self.assertEqual(contents(self.data), before)
        self.set_mode(0o600, 0o700)
        self.assertEqual(self.cell("x + 1"), (0, "42\n", ""))

    def test_a_journal_that_is_read_only_is_an_error_that_names_it(self):
        self.assertEqual(self.cell("var x = 41; undefined"), (0, "", ""))
        journal = list(self.data.glob("journal.*"))
        self.assertEqual(len(journal), 2)
        for path in journal:
            path.chmod(0o400)
        answer = self.cell("x + 1", preexec_fn=obey_permissions)
        self.assertIn(answer[0], (2, 3), answer)
        self.assertIn("journal.0", answer[2])
        for path in journal:
            path.chmod(0o600)
        self.assertEqual(self.cell("x + 1"), (0, "42\n", ""))

    def test_a_parent_that_is_read_only_is_an_error_that_names_the_folder(self):
        self.folder.chmod(0o500)
        self.addCleanup(self.folder.chmod, 0o700)
        self.assert_refused(self.cell("1", preexec_fn=obey_permissions), str(self.data), "ermission")

    def test_a_file_or_a_link_to_nowhere_is_no_folder(self):
        self.data.write_text("mine")
        self.assert_refused(self.cell("1"), str(self.data))
        self.assertEqual(self.data.read_text(), "mine")
        self.data.unlink()
        self.data.symlink_to(self.folder / "nowhere" / "at" / "all")
        self.assert_refused(self.cell("1"), str(self.data))
        self.assertFalse((self.folder / "nowhere").exists())

    def test_a_folder_that_others_can_write_is_refused(self):
        self.data.mkdir()
        self.data.chmod(0o777)
        self.assert_refused(self.cell("1"), str(self.data), "writable by you only")
        self.assertEqual(list(self.data.iterdir()), [])

    @unittest.skipIf(os.geteuid() != 0, "only root can give a folder to somebody else")
    def test_a_folder_of_somebody_else_is_refused(self):
        self.data.mkdir(mode=0o700)
        os.chown(self.data, 65534, 65534)
        self.assert_refused(self.cell("1"), str(self.data))
        self.assertEqual(list(self.data.iterdir()), [])

    def test_a_full_disk_is_an_error_and_what_was_stored_is_kept(self):
        self.assertEqual(self.cell("var x = 41; undefined"), (0, "", ""))
        status, _, err = self.cell("x = 0; globalThis.a = crypto.getRandomValues(new Uint8Array(60_000)).join(); undefined",
                                   preexec_fn=full_disk)
        # The run happened, but its memory could not be stored.
        self.assertIn("sandbox-workers: ", err)
        self.assertIn(status, (0, 3))
        status, out, err = self.cell("x + 1")
        self.assertEqual((status, out), (0, "42\n"), err)

    def test_a_link_in_the_place_of_the_lock_is_not_followed(self):
        self.assertEqual(self.cell("1"), (0, "1\n", ""))
        other = self.folder / "other"
        other.write_text("somebody's")
        (self.data / "lock").unlink()
        (self.data / "lock").symlink_to(other)
        self.assert_refused(self.cell("1"))
        self.assertEqual(other.read_text(), "somebody's")

    def test_a_full_disk_at_the_first_run_is_an_error(self):
        def nothing_fits():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        # (Its output goes into pipes, which have no such limit.)
        self.assert_refused(self.cell("1", preexec_fn=nothing_fits), status=(3,))
        self.assertEqual(self.cell("41 + 1"), (0, "42\n", ""))


class Cache(Folders):
    def setUp(self):
        super().setUp()
        user = pathlib.Path(os.environ.get("SANDBOX_WORKERS_CACHE") or pathlib.Path(
            os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sandbox-workers"))
        self.assertEqual(self.start("bake", "javascript")[0], 0)
        self.cache = self.folder / "cache"
        (self.cache / "artifacts").mkdir(parents=True, mode=0o700)
        self.cache.chmod(0o700)
        for artifact in (user / "artifacts").glob("*-javascript-*"):
            # Holes stay holes; what another program bakes at this moment is left out.
            if artifact.is_dir() and not artifact.name.startswith("."):
                subprocess.run(["cp", "-a", "--sparse=always", artifact, self.cache / "artifacts"], check=True)
        self.env = {"SANDBOX_WORKERS_CACHE": str(self.cache)}

    def test_a_read_only_cache_is_enough_for_what_is_baked(self):
        self.assertEqual(self.start("run", "-l", "javascript", "-c", "6 * 7", env=self.env), (0, "42\n", ""))
        for path in (self.cache, *self.cache.rglob("*")):
            path.chmod(0o500 if path.is_dir() else 0o400)
        self.addCleanup(lambda: [path.chmod(0o700) for path in (self.cache, *self.cache.rglob("*"))])
        before = contents(self.cache).keys()
        self.assertEqual(self.start("run", "-l", "javascript", "-c", "6 * 7", env=self.env, preexec_fn=obey_permissions),
                         (0, "42\n", ""))
        self.assertEqual(contents(self.cache).keys(), before)

    def test_a_read_only_cache_that_lacks_something_is_an_error_that_names_it(self):
        for image in (self.cache / "artifacts").glob("image-*"):
            shutil.rmtree(image)
        (self.cache / "artifacts").chmod(0o500)
        self.addCleanup((self.cache / "artifacts").chmod, 0o700)
        status, out, err = self.start("run", "-l", "javascript", "-c", "6 * 7", env=self.env, preexec_fn=obey_permissions)
        self.assertIn(status, (2, 3), err)
        self.assertEqual(out, "")
        self.assertIn(str(self.cache), err)
        self.assertIn("ermission", err)

    def test_a_cache_that_is_a_file_or_a_link_to_nowhere_is_an_error(self):
        place = self.folder / "other"
        place.write_text("mine")
        env = {"SANDBOX_WORKERS_CACHE": str(place)}
        self.assert_refused(self.start("run", "-l", "javascript", "-c", "1", env=env), str(place))
        place.unlink()
        place.symlink_to(self.folder / "nowhere")
        self.assert_refused(self.start("run", "-l", "javascript", "-c", "1", env=env), str(place))


if __name__ == "__main__":
    unittest.main()
