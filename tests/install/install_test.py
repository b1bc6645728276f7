# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Installs what was built, moves it elsewhere, and builds programs against it as strangers would.

usage: install_test.py BUILD_FOLDER SOURCE_FOLDER
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2])
del sys.argv[1:]
CONSUMER = SOURCE / "tests/install/consumer"


def run(*command, **options) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, encoding="utf-8", check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        first = pathlib.Path(cls.folder.name, "first")
        run("cmake", "--install", BUILD, "--prefix", first)
        # Whatever remembers where it was installed fails from here on.
        cls.prefix = pathlib.Path(cls.folder.name, "moved prefix")
        first.rename(cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, program: pathlib.Path):
        self.assertEqual(run(program, "6 * 7"), "42\n")
        self.assertEqual(run(program, "nothing"), "ReferenceError\n")

    def test_find_package_gives_a_library_that_links_and_runs(self):
        build = pathlib.Path(self.folder.name, "cmake")
        run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.check(build / "consumer")

    def pkg_config(self, *options: str) -> list[str]:
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        return shlex.split(run("pkg-config", "--cflags", "--libs", *options, "sandbox_workers", env=environment))

    def test_pkg_config_says_the_same_with_and_without_static(self):
        self.assertEqual(self.pkg_config(), self.pkg_config("--static"))

    def test_the_programs_of_the_documentation_are_built_by_pkg_config_and_print_what_it_says(self):
        text = (SOURCE / "docs/embedding.md").read_text(encoding="utf-8")
        examples = re.findall(r"```cpp\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
        self.assertEqual(len(examples), 2)
        flags = self.pkg_config("--static")
        for number, (source, expected) in enumerate(examples):
            file, program = (pathlib.Path(self.folder.name, f"example{number}{end}") for end in (".cc", ""))
            file.write_text(source, encoding="utf-8")
            run("c++", "-Wall", "-Wextra", file, *flags, "-o", program)
            self.assertEqual(run(program), expected)

    def test_the_installed_program_runs(self):
        done = run(self.prefix / "bin/sandbox-workers", "run", "-l", "javascript", "-c", "[1, 2].length")
        self.assertEqual(done, "2\n")

    def test_nothing_names_the_folders_of_the_build(self):
        for file in sorted(self.prefix.rglob("*")):
            if file.is_file():
                content = file.read_bytes()
                for folder in (SOURCE, BUILD, pathlib.Path(self.folder.name, "first")):
                    self.assertNotIn(bytes(folder) + b"/", content, file)

    def test_only_public_headers_are_installed(self):
        headers = {str(f.relative_to(self.prefix / "include")) for f in (self.prefix / "include").rglob("*.h")}
        expected = {str(f.relative_to(SOURCE / "include")) for f in (SOURCE / "include").rglob("*.h")}
        self.assertEqual(headers, expected)
        self.assertEqual([h for h in headers if "wasmtime" in h], [])


if __name__ == "__main__":
    unittest.main()
