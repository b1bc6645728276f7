# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Mutexes are those of base/thread_safety.h, so that clang can check which of them guards what.

usage: mutexes_test.py REPOSITORY
"""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

BARE = re.compile(r"\bstd::((?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex|condition_variable(?:_any)?"
                  r"|lock_guard|unique_lock|scoped_lock|shared_lock)\b")
# What the wrappers do not have, and where it is needed.
EXCEPTIONS = {
    # They are the wrappers.
    "src/base/thread_safety.h": {"mutex", "condition_variable", "unique_lock"},
    # A timer may end within its own function.
    "src/object/clock.h": {"recursive_mutex"},
    "src/object/clock.cc": {"lock_guard"},
    # What a run does is the test's, and may ask the same Worker; a wait ends at a stop token, too.
    "src/sandbox/fake_worker.h": {"recursive_mutex", "mutex", "condition_variable_any", "lock_guard", "unique_lock"},
}


def complaints(root: pathlib.Path) -> list[str]:
    found = []
    for folder in ("include", "src"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            name = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                found += [f"{name}:{number} uses std::{word}; base/thread_safety.h has what clang can check"
                          for word in BARE.findall(line.split("//")[0]) if word not in EXCEPTIONS.get(name, ())]
    return found


class Mutexes(unittest.TestCase):
    def test_of_this_repository(self):
        self.assertEqual(complaints(ROOT), [])

    def test_every_exception_is_needed(self):
        for name, words in EXCEPTIONS.items():
            self.assertEqual(sorted(words - set(BARE.findall((ROOT / name).read_text(encoding="utf-8")))), [], name)

    def test_notices_each_kind_of_breach(self):
        breaches = {
            "src/base/a.h": "mutable std::mutex mutex_;",
            "src/base/b.cc": "const std::lock_guard lock(mutex);",
            "src/base/c_test.cc": "std::condition_variable_any changed;",
            "include/sandbox_workers/base/d.h": "std::shared_mutex mutex_;",
        }
        fine = {
            "src/base/e.h": "Mutex mutex_;  // not a std::mutex",
            "src/base/f.cc": "std::call_once(once, [] {});",
            "src/object/clock.h": "std::recursive_mutex firing_;",
        }
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**breaches, **fine}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = complaints(root)
            self.assertEqual(len(found), len(breaches), found)


if __name__ == "__main__":
    unittest.main()
