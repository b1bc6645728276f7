# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The files of JavaScript's driver are one function's body, so each name is declared in one of them.

The interpreter refuses a second const, let or class, but lets a second function silently take the place of the first.
"""
import collections
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

# What is at the top level begins its line.
DECLARATION = re.compile(r"^(?:(?:async\s+)?function\s*\*?|const|let|var|class)\s+([\w$]+)", re.MULTILINE)


def complaints(driver: pathlib.Path) -> list[str]:
    places = collections.defaultdict(list)
    for file in sorted(driver.glob("*.js")):
        for name in DECLARATION.findall(file.read_text(encoding="utf-8")):
            places[name].append(file.name)
    return [f"{name} is declared in {' and in '.join(files)}" for name, files in sorted(places.items()) if len(files) > 1]


class DriverScope(unittest.TestCase):
    def test_no_name_is_declared_twice(self):
        self.assertEqual(complaints(ROOT / "engines/javascript/driver"), [])

    def test_a_function_that_hides_another_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = pathlib.Path(folder)
            (driver / "a.js").write_text("function copy(x) {\n  function inner() {}\n}\nasync function wait() {}\n")
            (driver / "b.js").write_text("const other = 1;\nfunction inner() {}\nfunction* copy() {}\n")
            self.assertEqual(complaints(driver), ["copy is declared in a.js and in b.js"])


if __name__ == "__main__":
    unittest.main()
