# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing in the repository depends on one machine: no home folders, no addresses of package registries.

Packages are named for their registry's own client, which knows where to fetch from.
"""
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

# "[/]" so that this file does not match itself. Tests may use such paths: they are the guests', as is the home "user".
MACHINE = re.compile(r"(^|[\s\"'=(:])[/](home/(?!user\b)|(Users|root|mnt|opt|work)/)\w")
REGISTRY = re.compile(r"https?:[/][/][\w.-]*(npmjs|pypi|pythonhosted|static\.crates|index\.crates|deb\.debian)\b")
SKIPPED_FOLDERS = {".git", "build", "node_modules", "__pycache__", "target"}
SKIPPED_SUFFIXES = {".lock", ".png", ".zip", ".wasm"}


def complaints(root: pathlib.Path) -> list[str]:
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
        for file in files:
            path = pathlib.Path(folder, file)
            name = path.relative_to(root)
            if path.suffix in SKIPPED_SUFFIXES or path.is_symlink():
                continue
            is_test = name.parts[0] == "tests" or path.stem.endswith("_test")
            text = path.read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                if REGISTRY.search(line) or (MACHINE.search(line) and not is_test):
                    found.append(f"{name}:{number}: {line.strip()[:120]}")
    return found


class Paths(unittest.TestCase):
    def test_of_this_repository(self):
        self.assertEqual(complaints(ROOT), [])

    def test_notices_both_kinds(self):
        self.assertTrue(MACHINE.search("cd " + "/home/me/x"))
        self.assertFalse(MACHINE.search("cd " + "/home/user/x"))
        self.assertTrue(REGISTRY.search("https:" + "//registry.npmjs.org/x"))
        self.assertFalse(MACHINE.search("open('/workspace/x')"))
        self.assertFalse(REGISTRY.search("https://docs.rs/wasmtime"))


if __name__ == "__main__":
    unittest.main()
