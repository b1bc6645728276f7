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
        self.assertRegex(lines[0], r"rustc is 1\.63\.0, but 1\.95 or newer is needed: .*rustup")
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


if __name__ == "__main__":
    unittest.main()
