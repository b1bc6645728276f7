#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What a change touches: the translation units that clang-tidy looks at, the rooms whose tests run under
ThreadSanitizer. CONTRIBUTING.md says what counts as the change.

usage: touched.py (units | rooms) REPOSITORY [MAX]

At most MAX are printed, one a line: those whose digest together with the commit is smallest, so that a large change has
others looked at in each of its commits. How many were left out is said on stderr.
"""
import hashlib
import pathlib
import re
import subprocess
import sys


def git(root: pathlib.Path, *arguments: str) -> list[str]:
    """The lines that git prints; none if it fails, as it does where there is no such commit."""
    done = subprocess.run(["git", "-C", root, "-c", "core.quotePath=false", *arguments], capture_output=True,
                          encoding="utf-8", check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def base(root: pathlib.Path) -> str | None:
    """The commit that the change began from."""
    head = git(root, "rev-parse", "HEAD")
    for branch in ("@{upstream}", "origin/main", "main"):
        common = git(root, "merge-base", "HEAD", branch)
        if common and common != head:
            return common[0]
    # On the main branch itself, as in CI, the change is the last commit.
    before = git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")
    return before[0] if before else None


def files(root: pathlib.Path) -> list[str]:
    """Files that the change adds or modifies, whether committed or not. Without an earlier commit: all."""
    begin = base(root)
    changed = git(root, "diff", "--name-only", begin) if begin else git(root, "ls-files")
    names = {*changed, *git(root, "ls-files", "--others", "--exclude-standard")}
    return sorted(name for name in names if (root / name).is_file())


def units(root: pathlib.Path, names: list[str]) -> list[str]:
    """The .cc files among them, and those beside the headers among them."""
    found = set()
    for name in names:
        path = pathlib.PurePosixPath(name)
        if path.parts[:2] == ("include", "sandbox_workers") and len(path.parts) > 3:
            path = pathlib.PurePosixPath("src", *path.parts[2:])
        if path.suffix in (".cc", ".h"):
            stem = path.stem.removesuffix("_test")
            beside = {path.with_suffix(".cc"), path.with_name(stem + ".cc"), path.with_name(stem + "_test.cc")}
            found |= {str(p) for p in (beside if path.suffix == ".h" else {path}) if (root / p).is_file()}
    return sorted(found)


def rooms(root: pathlib.Path, names: list[str]) -> list[str]:
    """Names of the rooms that have tests, of which a file is among them."""
    found = set()
    for name in names:
        path = pathlib.PurePosixPath(name)
        if path.parts[:2] == ("include", "sandbox_workers"):
            path = pathlib.PurePosixPath("src", *path.parts[2:])
        if path.parts[0] != "src":
            continue
        for folder in path.parents:
            lists = root / folder / "CMakeLists.txt"
            room = re.search(r"sw_room\((\w+)[^)]*\bTESTS\b", lists.read_text()) if lists.is_file() else None
            if room:
                found.add(room[1])
                break
    return sorted(found)


def draw(root: pathlib.Path, names: list[str], most: int) -> list[str]:
    commit = "".join(git(root, "rev-parse", "HEAD"))
    drawn = sorted(names, key=lambda name: hashlib.sha256(f"{commit} {name}".encode()).digest())[:most]
    if len(drawn) < len(names):
        print(f"{len(drawn)} of {len(names)} that the change touches were drawn", file=sys.stderr)
    return sorted(drawn)


def main(what: str, folder: str, most: str = "1000000") -> None:
    root = pathlib.Path(folder)
    found = {"units": units, "rooms": rooms}[what](root, files(root))
    for name in draw(root, found, int(most)):
        print(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
