#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over translation units of a build, several at once.

usage: tidy.py REPOSITORY BUILD CACHE [UNIT…]      without UNIT: all that the build compiles

CACHE is a folder that remembers which were found good: a unit is looked at again only when its flags, .clang-tidy, or
what the preprocessor makes of it have changed. The last line says what was done; the exit status is 1 if a unit has
findings.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

CLANG_TIDY = "clang-tidy-14"
FORGET_AFTER_S = 30 * 24 * 3600


def compiled(root: pathlib.Path, build: pathlib.Path) -> dict[str, dict]:
    """The compile commands of the repository's own sources, by their path in it."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"])
        if path.suffix == ".cc" and path.is_relative_to(root) and not path.is_relative_to(root / "build"):
            found[str(path.relative_to(root))] = entry
    return found


def digest(root: pathlib.Path, entry: dict) -> str:
    """Of all that the verdict depends on. Clones in other folders have the same."""
    words = shlex.split(entry["command"])
    output = words.index("-o")
    del words[output:output + 2]
    words[words.index("-c")] = "-E"
    seen = subprocess.run(words, cwd=entry["directory"], capture_output=True, check=True).stdout
    flags = "\0".join(words).encode()
    return hashlib.sha256((root / ".clang-tidy").read_bytes() + (flags + seen).replace(bytes(root), b".")).hexdigest()


def look_at(root: pathlib.Path, build: pathlib.Path, cache: pathlib.Path, unit: str, entry: dict) -> str:
    """What clang-tidy finds; nothing if the unit is good."""
    stamp = cache / digest(root, entry)
    if stamp.exists():
        stamp.touch()
        return ""
    done = subprocess.run([CLANG_TIDY, "--quiet", "-p", build, root / unit], capture_output=True, encoding="utf-8",
                          errors="replace", check=False)
    if done.returncode == 0:
        stamp.touch()
        return ""
    return done.stdout + done.stderr


def forget_old(cache: pathlib.Path) -> None:
    for stamp in cache.iterdir():
        if time.time() - stamp.stat().st_mtime > FORGET_AFTER_S:
            stamp.unlink(missing_ok=True)


def main(root: pathlib.Path, build: pathlib.Path, cache: pathlib.Path, *wanted: str) -> int:
    cache.mkdir(parents=True, exist_ok=True)
    entries = compiled(root, build)
    # What no build of ours compiles, such as the examples' own projects, has no flags.
    units = [unit for unit in wanted or entries if unit in entries]
    bad = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        looks = {pool.submit(look_at, root, build, cache, unit, entries[unit]): unit for unit in units}
        for look in concurrent.futures.as_completed(looks):
            if look.result():
                bad.append(looks[look])
                print(look.result(), flush=True)
    forget_old(cache)
    print(f"clang-tidy: {len(units) - len(bad)} of {len(units)} units are good" + "".join(f"\n  not {unit}" for unit in sorted(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:4]), *sys.argv[4:]))
