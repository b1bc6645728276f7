# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""./dev and its setup, on a machine made of stand-ins: what it installs, what it says is missing.

usage: dev_test.py REPOSITORY
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

# Real programs that setup.sh uses and that say nothing about the machine's development tools.
PLAIN = ["bash", "cat", "cut", "dirname", "grep", "head", "mkdir", "printf", "sed", "sort", "tail", "touch", "tr"]
TOOLS = {
    "cmake": "echo 'cmake version 3.25.1'",
    "c++": "if [ $1 = --version ]; then echo 'c++ (Debian) 12.2.0'; else echo 12.2.0; fi",
    "make": "exit 0",
    "ninja": "echo 1.11.1",
    "patch": "exit 0",
    "perl": "exit 0",
    "ruby": "exit 0",
    "pkg-config": "echo 1.8.1",
    "rustc": "echo 'rustc 1.95.0 (abc 2026-04-14)'",
    "cargo": "echo 'cargo 1.95.0 (abc 2026-04-14)'",
    "node": "echo v18.20.4",
    "npm": "echo 9.2.0",
    "python3": "case $2 in *platform*) echo 3.11.2 ;; *pip*__version__*) echo 23.0.1 ;; esac",
}


class Machine:
    """Programs in a folder that is the whole PATH; packages are files in another."""

    def __init__(self, folder: str, user: int = 0):
        self.path = pathlib.Path(folder)
        self.programs = self.path / "bin"
        self.packages = self.path / "packages"
        self.programs.mkdir()
        self.packages.mkdir()
        for name in PLAIN:
            os.symlink(shutil.which(name), self.programs / name)
        for name, script in TOOLS.items():
            self.add(name, script)
        self.add("id", f"echo {user}")
        self.add("dpkg-query", f'for last; do :; done; [ -e "{self.packages}/$last" ] && printf installed')
        # Package lists are empty until the first update, as on a new machine.
        self.add("apt-cache", f'[ -e "{self.path}/updated" ]')
        self.add("apt-get", f"""echo "$*" >>"{self.path}/calls"
case " $* " in
  *' update '*) touch "{self.path}/updated" ;;
  *' install '*) [ -e "{self.path}/updated" ] || exit 100
    for word; do case $word in -* | install | *=*) ;; *) touch "{self.packages}/$word" ;; esac; done ;;
esac""")

    def add(self, name: str, script: str):
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def install_all(self):
        for line in (ROOT / "tools/debian-packages.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                (self.packages / line.split()[0]).touch()

    def setup(self, *packages: str):
        return subprocess.run(
            [str(ROOT / "tools/setup.sh"), str(self.path / "build/.setup"), *packages],
            env={"PATH": str(self.programs)}, capture_output=True, encoding="utf-8", check=False)

    def calls(self) -> str:
        file = self.path / "calls"
        return file.read_text() if file.exists() else ""

    def ready(self) -> bool:
        return (self.path / "build/.setup").exists()


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def machine(self, **options) -> Machine:
        return Machine(self.folder.name, **options)

    def test_says_nothing_when_all_is_there(self):
        machine = self.machine()
        machine.install_all()
        done = machine.setup()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertTrue(machine.ready())
        self.assertEqual(machine.calls(), "")

    def test_installs_what_is_missing_as_root_on_a_machine_that_never_updated_its_lists(self):
        machine = self.machine()
        machine.install_all()
        (machine.packages / "libfmt-dev").unlink()
        done = machine.setup()
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertTrue((machine.packages / "libfmt-dev").exists())
        self.assertRegex(machine.calls(), r"(?s)update.*install .*libfmt-dev")
        self.assertTrue(machine.ready())

    def test_leaves_a_tool_from_elsewhere_alone(self):
        machine = self.machine()
        machine.install_all()
        for package in ("nodejs", "npm", "cmake"):
            (machine.packages / package).unlink()
        self.assertEqual(machine.setup().returncode, 0)
        self.assertEqual(machine.calls(), "")

    def test_gives_other_users_one_command_to_paste(self):
        machine = self.machine(user=1000)
        machine.install_all()
        (machine.packages / "libfmt-dev").unlink()
        (machine.packages / "ccache").unlink()
        done = machine.setup()
        self.assertEqual(done.returncode, 1)
        commands = [line for line in done.stderr.splitlines() if "apt-get" in line]
        self.assertEqual(len(commands), 1, done.stderr)
        self.assertRegex(commands[0], r"^  sudo .*install -y .*ccache libfmt-dev$")
        self.assertEqual(machine.calls(), "")
        self.assertFalse(machine.ready())

    def test_names_every_old_or_missing_tool_in_one_line(self):
        machine = self.machine()
        machine.install_all()
        machine.add("rustc", "echo 'rustc 1.63.0'")
        machine.add("npm", "exit 127")
        done = machine.setup()
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertRegex(lines[0], r"rustc is 1\.63\.0, but 1\.95 or newer is required: .*rustup")
        self.assertRegex(lines[1], r"npm is missing")
        self.assertFalse(machine.ready())

    def test_looks_after_named_packages_alone(self):
        machine = self.machine()
        machine.add("rustc", "exit 127")
        self.assertEqual(machine.setup("shellcheck").returncode, 10)
        self.assertEqual([f.name for f in machine.packages.iterdir()], ["shellcheck"])
        self.assertFalse(machine.ready())


class Dev(unittest.TestCase):
    def dev(self, *arguments):
        return subprocess.run([str(ROOT / "dev"), *arguments], capture_output=True, encoding="utf-8", check=False)

    def test_help_names_every_command(self):
        done = self.dev("help")
        self.assertEqual(done.returncode, 0)
        named = set(re.findall(r"^\./dev (\w+)", done.stdout, re.MULTILINE))
        self.assertEqual(named, {"setup", "build", "run", "repl", "bake", "test", "bench", "format", "lint", "clean"})

    def test_refuses_what_it_does_not_know(self):
        for arguments in (["nonsense"], ["clean", "all"], ["test", "--fast"], ["test", "upstream", "no such suite"],
                          ["test", "fuzz", "no such target"]):
            done = self.dev(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)

    def test_hostile_programs_are_a_kind_of_test_and_need_a_language_that_exists(self):
        script = (ROOT / "dev").read_text()
        self.assertIn("./dev test hostile [LANG]", self.dev("help").stdout)
        for language in re.search(r"languages=\(([^)]+)\)", script)[1].split():
            self.assertTrue((ROOT / "tests/hostile" / f"{language}.grammar").is_file(), language)

    def test_repeats_what_failed_tests_printed_and_nothing_of_the_others(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "tests.xml")
            report.write_text("""<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="3" failures="1" disabled="1" skipped="0">
  <testcase name="room.Good" status="run"><system-out>fine</system-out></testcase>
  <testcase name="room.Bad" status="fail"><failure message=""/><system-out>first
1 &lt; 2 expected
</system-out></testcase>
  <testcase name="room.Slow" status="disabled"><system-out>Disabled</system-out></testcase>
</testsuite>""")
            done = subprocess.run([sys.executable, str(ROOT / "tools/failed_tests.py"), "release", str(report)],
                                  capture_output=True, encoding="utf-8", check=True)
        self.assertEqual(done.stdout, "\nFAILED (release): room.Bad\nfirst\n1 < 2 expected\n")


class Touched(unittest.TestCase):
    """tools/touched.py, in a repository of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "-q", "-b", "main")
        for room, tests in (("base", True), ("engine", True), ("engine/perl", True), ("runtime", False)):
            self.write(f"src/{room}/CMakeLists.txt",
                       f"sw_room({pathlib.Path(room).name}\n  SOURCES a.cc\n{'  TESTS a_test.cc' if tests else ''})\n")
            for name in ("a.cc", "a.h", "a_test.cc", "b.cc"):
                self.write(f"src/{room}/{name}", "1")
        self.write("include/sandbox_workers/engine/a.h", "1")
        self.commit("first")
        self.write("src/base/b.cc", "2")
        self.commit("second")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a", *arguments], check=True,
                       capture_output=True)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def touched(self, what, *most):
        done = subprocess.run([sys.executable, str(ROOT / "tools/touched.py"), what, str(self.root), *most],
                              capture_output=True, encoding="utf-8", check=True)
        return done.stdout.split()

    def test_on_the_main_branch_it_is_the_last_commit(self):
        self.assertEqual((self.touched("units"), self.touched("rooms")), (["src/base/b.cc"], ["base"]))

    def test_on_a_branch_it_is_what_differs_from_the_main_branch(self):
        self.git("switch", "-q", "-c", "change")
        self.write("src/engine/perl/b.cc", "2")
        self.commit("third")
        self.write("src/protocol/a.cc", "2")
        self.commit("fourth")
        self.assertEqual(self.touched("units"), ["src/engine/perl/b.cc", "src/protocol/a.cc"])
        self.assertEqual(self.touched("rooms"), ["perl"])  # the other has no tests

    def test_what_is_not_committed_counts_as_well(self):
        self.write("src/engine/a.cc", "2")
        self.write("src/engine/perl/new.cc", "1")
        self.write("docs/new.md", "1")
        self.assertEqual(self.touched("units"), ["src/base/b.cc", "src/engine/a.cc", "src/engine/perl/new.cc"])
        self.assertEqual(self.touched("rooms"), ["base", "engine", "perl"])

    def test_a_header_stands_for_the_units_beside_it(self):
        for header in ("src/engine/a.h", "include/sandbox_workers/engine/a.h"):
            self.git("checkout", "-q", ".")
            self.write(header, "2")
            self.assertEqual(self.touched("units"), ["src/base/b.cc", "src/engine/a.cc", "src/engine/a_test.cc"])
            self.assertEqual(self.touched("rooms"), ["base", "engine"])

    def test_what_is_deleted_is_not_looked_at(self):
        self.git("rm", "-q", "src/base/b.cc")
        self.assertEqual((self.touched("units"), self.touched("rooms")), ([], []))

    def test_of_a_large_change_some_are_drawn_others_in_the_next_commit(self):
        drawn = set()
        for number in range(30):
            for letter in "abcdef":
                self.write(f"src/base/{letter}.cc", str(number))
            self.commit("more")
            units = self.touched("units", "2")
            self.assertEqual(len(units), 2)
            self.assertEqual(units, self.touched("units", "2"))
            drawn.update(units)
        self.assertEqual(len(drawn), 6)

    def test_a_clone_without_earlier_commits_counts_as_a_change_of_everything(self):
        clone = self.root / "clone"
        self.git("clone", "-q", "--depth", "1", f"file://{self.root}", str(clone))
        self.root = clone
        self.assertEqual(self.touched("rooms"), ["base", "engine", "perl"])


if __name__ == "__main__":
    unittest.main()
