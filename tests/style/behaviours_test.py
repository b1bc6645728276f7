# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Every cell of the table in docs/languages.md names tests that exist, for its language, and look at what it says.

usage: behaviours_test.py REPOSITORY
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
CASES = ROOT / "tests" / "cases"
NAMES = re.compile(r"\[([^\]]+)\](?!\()")
TEST = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)(.*?)^}", re.MULTILINE | re.DOTALL)

# What the tests of some rows must contain, one of them at least. Sections of case files are meant, or words of a GoogleTest.
LOOKS_AT = {
    "value as text": "^--- text",
    "value as JSON": "^--- json",
    "no value": "^--- none",
    "output order": "TheTwoStreamsKeepTheirOrder",
    "output before a limit": "(?s)^--- stdout.*^--- ending time-limit",
    "output limit": "output_truncated",
    "error name": r"^--- error (any |contains )?\w+",
    "error frames": "^--- traceback",
    "error line": "^--- line",
    "syntax error": "^--- error (contains |any )?SyntaxError",
    "exit": "^--- exit",
    "stdin": "stdin=",
    "environment": "env:",
    "files": "^--- (file|write) ",
    "time zone": "env:TZ=|zone",
    "deadline": "^--- ending time-limit",
    "memory limit": "^--- ending memory-limit|kMemoryLimit",
}


def rows(text: str) -> tuple[list[str], list[list[str]]]:
    """The languages and the rows of the first table."""
    lines = [line for line in text.split("\n\n| | ", 1)[1].split("\n\n", 1)[0].splitlines()]
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
    return split[0], split[2:]


def google_tests() -> dict[str, tuple[str, str, str]]:
    """Source file, its text and the test's own of every GoogleTest, by Suite.Name."""
    found = {}
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*_test.cc")):
            text = path.read_text(encoding="utf-8")
            found.update({f"{suite}.{name}": (path.relative_to(ROOT).as_posix(), text, f"{name} {body}")
                          for suite, name, body in TEST.findall(text)})
    return found


class Behaviours(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.languages, cls.rows = rows((ROOT / "docs" / "languages.md").read_text(encoding="utf-8"))
        cls.tests = google_tests()

    def source_of(self, name: str, language: str) -> str:
        """The text of a named test; it fails when there is none for the language."""
        if "." not in name:
            path = CASES / language / f"{name}.case"
            self.assertTrue(path.is_file(), f"no case {path.relative_to(ROOT)}")
            return path.read_text(encoding="utf-8")
        self.assertIn(name, self.tests, "no such test")
        path, file, body = self.tests[name]
        self.assertTrue(path.startswith(f"src/engine/{language}/") or f'"{language}"' in file,
                        f"{name} is not about {language}")
        return body

    def test_every_cell_names_tests_of_its_language(self):
        for behaviour, *cells in self.rows:
            self.assertEqual(len(cells), len(self.languages), behaviour)
            for language, cell in zip(self.languages, cells):
                with self.subTest(behaviour=behaviour, language=language):
                    names = [name for names in NAMES.findall(cell) for name in names.split(", ")]
                    self.assertTrue(names, "names no test")
                    self.assertTrue(NAMES.sub("", cell).strip(), "says nothing")
                    sources = [self.source_of(name, language.lower()) for name in names]
                    wanted = re.compile(LOOKS_AT.get(behaviour, ""), re.MULTILINE)
                    self.assertTrue(any(wanted.search(source) for source in sources),
                                    f"{', '.join(names)}: nothing there matches '{wanted.pattern}'")

    def test_every_language_with_cases_has_a_column(self):
        self.assertEqual(sorted(language.lower() for language in self.languages),
                         sorted(path.name for path in CASES.iterdir() if path.is_dir() and any(path.glob("*.case"))))

    def test_the_rows_that_are_looked_into_are_there(self):
        self.assertEqual([behaviour for behaviour in LOOKS_AT if behaviour not in [row[0] for row in self.rows]], [])


if __name__ == "__main__":
    unittest.main()
