# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of the README's tour and compares what it prints with what the README shows.

The tour is the README's ```console blocks: a line "$ command" is run by bash in a copy of nothing but the repository's
`dev`, lines "> more" continue it, and the lines up to the next "$ " are its output, stdout and stderr together.

usage: tour_test.py REPOSITORY
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))


def tour(text: str) -> list[tuple[str, str]]:
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for step in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
            if not step:
                continue
            lines = step.splitlines(keepends=True)
            if not lines[0].startswith("$ "):
                raise ValueError(f"output without a command: {lines[0]!r}")
            count = 1
            while count < len(lines) and lines[count].startswith("> "):
                count += 1
            command = "".join(line[2:] for line in lines[:count])
            steps.append((command, "".join(lines[count:])))
    return steps


class Tour(unittest.TestCase):
    maxDiff = None

    def test_every_command_prints_what_the_readme_shows(self):
        steps = tour((ROOT / "README.md").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(steps), 5)
        environment = {name: value for name, value in os.environ.items() if name != "CDPATH"}
        # One folder for the whole tour: a later step may use a file that an earlier one made.
        with tempfile.TemporaryDirectory() as folder:
            environment["SANDBOX_WORKERS_DATA"] = str(pathlib.Path(folder, "data"))  # not the user's own
            for name in ("dev", "examples"):
                os.symlink(ROOT / name, pathlib.Path(folder, name))
            for command, expected in steps:
                with self.subTest(command=command):
                    done = subprocess.run(
                        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
                    self.assertEqual(done.stdout, expected)

    def test_reads_commands_and_their_output(self):
        text = "x\n```console\n$ a <<E\n> b\n> E\nout\n$ c\n```\n```sh\n$ not this\n```\n"
        self.assertEqual(tour(text), [("a <<E\nb\nE\n", "out\n"), ("c\n", "")])
        with self.assertRaises(ValueError):
            tour("```console\nout\n```\n")


if __name__ == "__main__":
    unittest.main()
