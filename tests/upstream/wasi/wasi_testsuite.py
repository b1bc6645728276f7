#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a checkout of the public WASI test suite (github.com/WebAssembly/wasi-testsuite, a branch with the
compiled tests) against wasi-run.

    tests/upstream/wasi/wasi_testsuite.py SUITE [--wasi-run PROGRAM] [-k TEXT]

A test is a .wasm file, with a .json file beside it that says how to run it and what must come out. Each runs in a
copy of its folder, so that the checkout stays as it is. Exit status 1 if a test that applies fails.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Tests that do not apply, with the reason. A test named here that would pass is reported, so that the list stays true.
NOT_APPLICABLE = {}

TIMEOUT_SECONDS = 60
FOLDERS = ("tests/c/testsuite", "tests/rust/testsuite", "tests/assemblyscript/testsuite")


def find_tests(suite, wanted):
    for folder in FOLDERS:
        for module in sorted((suite / folder).rglob("*.wasm")):
            # Components and preview 3 are other interfaces.
            if "wasip3" in module.parts or any(p.startswith("wasm32-wasip") and p != "wasm32-wasip1" for p in module.parts):
                continue
            if wanted in str(module.relative_to(suite)):
                yield module


def specification(module):
    """The legacy form and the form with operations, as one."""
    path = module.with_suffix(".json")
    raw = json.loads(path.read_text()) if path.exists() else {}
    spec = {"args": [], "env": {}, "root": None, "dirs": [], "exit_code": 0, "stdout": None, "stderr": None}
    for operation in raw.pop("operations", []):
        kind = operation["type"]
        if kind == "run":
            raw.update({k: v for k, v in operation.items() if k != "type"})
        elif kind == "wait":
            raw["exit_code"] = operation.get("exit_code", 0)
        elif kind == "read":
            raw[operation.get("id", "stdout")] = operation.get("payload", "")
        else:
            raise ValueError(f"operation {kind} is not one of preview 1")
    unknown = set(raw) - set(spec) - {"proposals"}
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    spec.update(raw)
    return spec


def command(program, module, spec, folder):
    words = [program, str(folder / module.name)]
    for arg in spec["args"]:
        words += ["--arg=" + arg]
    for name, value in (spec["env"] or {}).items():
        words += [f"--env={name}={value}"]
    if spec["root"]:
        words += ["--dir", f"{folder / spec['root']}::/"]
    for name in spec["dirs"] or []:
        words += ["--dir", f"{folder / name}::{name}"]
    return words


def run_test(program, module, extra_env):
    """An empty text when the test passes, otherwise what was wrong."""
    spec = specification(module)
    spec["env"] = {**(spec["env"] or {}), **extra_env}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        shutil.copy(module, folder)
        for name in [spec["root"], *(spec["dirs"] or [])]:
            if name:
                ignore = shutil.ignore_patterns("*.cleanup")
                shutil.copytree(module.parent / name, folder / name, symlinks=True, dirs_exist_ok=True, ignore=ignore)
        try:
            done = subprocess.run(command(program, module, spec, folder), capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return f"did not end within {TIMEOUT_SECONDS} s"
    wrong = []
    if done.returncode != spec["exit_code"]:
        wrong.append(f"exit status {done.returncode}, expected {spec['exit_code']}")
    for stream in ("stdout", "stderr"):
        text = getattr(done, stream).decode(errors="replace")
        if spec[stream] is not None and text != spec[stream]:
            wrong.append(f"{stream} {text!r}, expected {spec[stream]!r}")
    if wrong and done.stderr:
        wrong.append(done.stderr.decode(errors="replace").strip())
    return "\n    ".join(wrong)


def main():
    here = pathlib.Path(__file__).resolve().parents[3]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("--wasi-run", default=str(here / "build/release/bin/wasi-run"))
    parser.add_argument("-k", default="", help="only tests whose path contains this")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE for every test, such as "
                        "ERRNO_MODE_UNIX=1, by which the Rust tests accept POSIX's error numbers only")
    options = parser.parse_args()
    extra_env = dict(pair.split("=", 1) for pair in options.env)
    passed, failed, skipped = 0, [], []
    for module in find_tests(options.suite, options.k):
        name = str(module.relative_to(options.suite / "tests"))
        problem = run_test(options.wasi_run, module, extra_env)
        if name in NOT_APPLICABLE:
            if problem:
                skipped.append(name)
                print(f"n/a   {name}: {NOT_APPLICABLE[name]}")
            else:
                failed.append(name)
                print(f"FAIL  {name}: passes, though it is listed as not applicable")
        elif problem:
            failed.append(name)
            print(f"FAIL  {name}\n    {problem}")
        else:
            passed += 1
            print(f"ok    {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} not applicable")
    if passed + len(failed) + len(skipped) == 0:
        print("no tests found: use a branch of the suite with compiled tests", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
