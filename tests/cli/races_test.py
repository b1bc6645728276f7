# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Several programs at once on one data folder, one workspace folder, one cache.

usage: races_test.py PROGRAM
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
BOUND_S = 600
ADD = "globalThis.n = (globalThis.n ?? 0) + 1; fs.writeFileSync('n', String(n)); n"
# Says that it is here, and waits until all that it prints is read: a pipe holds less.
UNTIL_READ = "console.log('here'); process.stdout.write('x'.repeat(1 << 20)); undefined"
LOOK = "[globalThis.n ?? 0, fs.existsSync('n') ? Number(fs.readFileSync('n', 'utf8')) : 0]"


class Races(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data = self.folder / "data"

    def start(self, *arguments, env=None):
        return subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})

    def end(self, process):
        out, err = process.communicate(timeout=BOUND_S)
        return process.returncode, out, err

    def run_to_its_end(self, *arguments, **options):
        return self.end(self.start(*arguments, **options))

    def sandbox(self, *options):
        return ("run", "-l", "javascript", "--sandbox", "s", "--data", str(self.data), *options)

    def counted(self):
        status, out, err = self.run_to_its_end(*self.sandbox("--json", "-c", LOOK))
        self.assertEqual(status, 0, err)
        return json.loads(out)["results"][0]["json"]


class DataFolder(Races):
    def test_of_runs_at_once_each_is_stored(self):
        for _ in range(4):
            processes = [self.start(*self.sandbox("--timeout", "none", "-c", ADD)) for _ in range(5)]
            for process in processes:
                status, _, err = self.end(process)
                self.assertEqual(status, 0, err)
        self.assertEqual(self.counted(), [20, 20])

    def test_the_folder_is_free_as_soon_as_its_process_is_killed(self):
        self.assertEqual(self.run_to_its_end(*self.sandbox("-c", ADD))[0], 0)
        for _ in range(3):
            first = self.start(*self.sandbox("--timeout", "none", "-c", "console.log('here'); n = 0; for (;;);"))
            self.assertEqual(first.stdout.readline(), "here\n")
            status, _, err = self.run_to_its_end(*self.sandbox("--context", "other", "-c", "1"))
            self.assertEqual(status, 0, err)
            first.send_signal(signal.SIGKILL)
            self.assertEqual(self.end(first)[0], -signal.SIGKILL)
            status, _, err = self.run_to_its_end(*self.sandbox("-c", ADD))
            self.assertEqual(status, 0, err)
        self.assertEqual(self.counted(), [4, 4])

    def test_a_second_program_that_is_killed_disturbs_nobody(self):
        first = self.start(*self.sandbox("--timeout", "none", "-c", f"{ADD}; {UNTIL_READ}"))
        self.assertEqual(first.stdout.readline(), "here\n")
        for _ in range(5):
            second = self.start(*self.sandbox("-c", ADD))
            second.kill()
            self.end(second)
        self.assertEqual(self.end(first)[0], 0)
        memory, file = self.counted()
        self.assertEqual(memory, file)

    def test_every_backup_beside_runs_is_a_whole_data_folder(self):
        known = 0
        for number in range(4):
            running = self.start(*self.sandbox("-c", ADD))
            copy = self.folder / f"copy{number}"
            status, _, err = self.run_to_its_end("backup", "--data", str(self.data), str(copy))
            self.assertEqual(self.end(running)[0], 0)
            if not (number == 0 and status != 0):  # there may have been nothing to copy yet
                self.assertEqual(status, 0, err)
                status, out, err = self.run_to_its_end("run", "-l", "javascript", "--sandbox", "s", "--data", str(copy), "--json",
                                                       "-c", LOOK)
                self.assertEqual(status, 0, err)
                memory, file = json.loads(out)["results"][0]["json"]
                # Objects are copied one after the other: one may be of the run before.
                self.assertTrue({memory, file} <= {known, known + 1}, (known, memory, file))
            known += 1
        self.assertEqual(self.counted(), [known, known])


class WorkspaceFolder(Races):
    def test_of_runs_at_once_each_writes_all_or_nothing(self):
        folder = self.folder / "work"
        folder.mkdir()
        (folder / "old").write_text("old")
        texts = {name: name * 100_000 for name in "abcde"}
        processes = {name: self.start("run", "-l", "javascript", "--workspace", str(folder), "-c",
                                      f"fs.writeFileSync('{name}', '{name}'.repeat(100000)); fs.writeFileSync('all', '{name}'.repeat(100000))")
                     for name in texts}
        done = {name: self.end(process) for name, process in processes.items()}
        wrote = {name for name, (status, _, _) in done.items() if status == 0}
        for name, (status, _, err) in done.items():
            if name in wrote:
                self.assertEqual(err, "")
                self.assertEqual((folder / name).read_text(), texts[name])
            else:
                # Another wrote `all` after this one had loaded the folder.
                self.assertEqual((status, err.count("\n")), (3, 1), err)
                self.assertIn("nothing was written back", err)
        self.assertTrue(wrote)
        self.assertIn((folder / "all").read_text(), {texts[name] for name in wrote})
        self.assertEqual({path.name for path in folder.iterdir()}, {"old", "all", *wrote})


class Cache(Races):
    def setUp(self):
        super().setUp()
        user = pathlib.Path(os.environ.get("SANDBOX_WORKERS_CACHE") or pathlib.Path(
            os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sandbox-workers"))
        self.assertEqual(self.run_to_its_end("bake", "javascript")[0], 0)
        self.cache = self.folder / "cache"
        self.env = {"SANDBOX_WORKERS_CACHE": str(self.cache)}
        self.copy_artifacts(user / "artifacts")

    def copy_artifacts(self, artifacts):
        (self.cache / "artifacts").mkdir(parents=True, mode=0o700)
        self.cache.chmod(0o700)
        for artifact in artifacts.glob("*-javascript-*"):
            if artifact.is_dir() and not artifact.name.startswith("."):
                subprocess.run(["cp", "-a", "--sparse=always", artifact, self.cache / "artifacts"], check=True)

    def test_a_cache_that_is_deleted_while_a_program_runs_does_not_disturb_it(self):
        kept = self.folder / "kept"
        shutil.copytree(self.cache / "artifacts", kept)
        # Intl is loaded from the cache's files when it is first used.
        running = self.start("run", "-l", "javascript", "--timeout", "none", "-c",
                             UNTIL_READ + "; new Intl.NumberFormat('de').format(41.5)", env=self.env)
        self.assertEqual(running.stdout.readline(), "here\n")
        shutil.rmtree(self.cache)
        status, out, err = self.end(running)
        self.assertEqual((status, out.lstrip("x")), (0, "'41,5'\n"), err)
        # And the next one makes what it needs again (its package is put back here, so that no registry is asked).
        (self.cache / "artifacts").mkdir(parents=True, mode=0o700)
        self.cache.chmod(0o700)
        for package in kept.glob("package-*"):
            shutil.copytree(package, self.cache / "artifacts" / package.name)
        self.assertEqual(self.run_to_its_end("run", "-l", "javascript", "-c", "6 * 7", env=self.env)[:2], (0, "42\n"))


if __name__ == "__main__":
    unittest.main()
