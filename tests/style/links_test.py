# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Links between the repository's documents lead somewhere.

usage: links_test.py REPOSITORY
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
SKIPPED = {".git", "build", "node_modules", "target"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def targets(text: str) -> list[str]:
    """The relative paths that a document links to; code is not looked at."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "", text)
    links = (link.split("#")[0] for link in LINK.findall(text))
    return [link for link in links if link and "://" not in link and not link.startswith("mailto:")]


class Links(unittest.TestCase):
    def test_lead_to_files(self):
        documents = [f for f in ROOT.rglob("*.md") if not SKIPPED & set(f.relative_to(ROOT).parts)]
        self.assertGreater(len(documents), 5)
        broken = [f"{f.relative_to(ROOT)}: {link}" for f in documents
                  for link in targets(f.read_text(encoding="utf-8")) if not (f.parent / link).exists()]
        self.assertEqual(broken, [])

    def test_are_found(self):
        self.assertEqual(targets("[a](b.md#c) `[x](y)` [d](https://e/f) [g](#h)\n```\n[i](j)\n```\n[k](l/m)"),
                         ["b.md", "l/m"])


if __name__ == "__main__":
    unittest.main()
