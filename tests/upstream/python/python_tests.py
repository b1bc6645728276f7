# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs CPython's package `test` in the sandbox, each of its modules in a fresh interpreter, and compares what fails with
expected.txt. Tests skip themselves where they need what a sandbox has not: threads, processes, sockets, a C compiler.

expected.txt has groups: a line "# REASON", then lines "MODULE TEST…" with the tests of the module that fail for that
reason. TEST may hold wildcards; a "?" before it says that it fails only at times. "(all)" is a module that cannot be
loaded, or does not come to its end.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "guests/common"))
import sources  # noqa: E402

SOURCE = sources.DebianSource(
    package="python3.13", suite="trixie", file="python3.13_3.13.5.orig.tar.xz",
    sha256="93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640")
BOUND_S = 400


def prepare(work):
    """The folder that the sandbox gets as its workspace: it holds the package `test`."""
    tree = os.environ.get("CPYTHON")
    folder = work / ("given" if tree else SOURCE.sha256[:16])
    if tree:
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        return folder
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        scratch = pathlib.Path(scratch)
        if not tree:
            tree = scratch / "tree"
            sources.unpack(sources.debian_source(SOURCE, None, scratch), tree)
        shutil.copytree(pathlib.Path(tree) / "Lib/test", scratch / "work/test", symlinks=True)
        (scratch / "work").rename(folder)
    return folder


def run_module(program, folder, name, longest):
    """{test: "pass" | "skip" | "fail"}, {test: message} and how long it took, in seconds."""
    begin = time.monotonic()
    done = subprocess.run(
        [program, "run", "--timeout", f"{BOUND_S}s", "--memory", "1G", "--workspace", folder, HERE / "guest.py", name,
         str(longest)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    outcomes, messages = {}, {}
    for line in done.stdout.decode("utf-8", "replace").split("\n"):
        if not line.startswith("@@sw "):
            continue
        outcome, test, message = json.loads(line[5:])
        test = short_name(name, test)
        if outcome == "start":
            outcomes.setdefault(test, "started")
        elif outcome == "stop":  # without a word: a part of it was skipped
            outcomes[test] = "skip" if outcomes[test] == "started" else outcomes[test]
        elif outcome in ("skip", "fail"):
            outcomes[test] = "fail" if outcomes.get(test) == "fail" else outcome
            messages.setdefault(test, message)
        elif outcome == "pass" and outcomes.get(test) != "fail":
            outcomes[test] = outcome
        elif outcome == "end":
            outcomes["(all)"] = "end"
    ended = outcomes.pop("(all)", None) == "end"
    outcomes = {test: "fail" if outcome == "started" else outcome for test, outcome in outcomes.items()}
    if not ended or done.returncode != 0:
        outcomes["(all)"] = "fail"
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        messages["(all)"] = f"status {done.returncode}: {said[-1] if said else ''}"
    return outcomes, messages, time.monotonic() - begin


def short_name(module, test):
    for prefix in (f"test.{module}.", "test."):
        test = test.removeprefix(prefix)
    return test.replace(" ", "_")


def read_expected():
    """{module: [(pattern, always)]} of what fails."""
    expected = collections.defaultdict(list)
    for line in (HERE / "expected.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            module, *tests = line.split()
            expected[module] += [(test.removeprefix("?"), not test.startswith("?")) for test in tests]
    return expected


def surprises_of(failed, patterns):
    """Failures that no pattern foresees, and patterns that foresee what did not fail."""
    unforeseen = [test for test in failed if not any(fnmatch.fnmatchcase(test, pattern) for pattern, _ in patterns)]
    unmet = [pattern for pattern, always in patterns
             if always and not any(fnmatch.fnmatchcase(test, pattern) for test in failed)]
    return unforeseen, unmet


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("filter", nargs="?", default="", help="a part of the modules' names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--longest", type=int, default=200, help="how much of a message to show")
    parser.add_argument("--all", action="store_true", help="show the failures that are expected, too")
    options = parser.parse_args()
    folder = prepare(options.work)
    names = sorted({path.stem for path in (folder / "test").glob("test_*") if path.is_dir() or path.suffix == ".py"})
    names = [name for name in names if options.filter in name]
    expected = read_expected()
    totals = collections.Counter()
    surprised = []

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda name: run_module(options.program, folder, name, options.longest), names)
        for name, (outcomes, messages, seconds) in zip(names, runs):
            failed = sorted(test for test, outcome in outcomes.items() if outcome == "fail")
            totals.update(outcomes.values())
            totals["clean modules"] += not failed
            totals["skipped modules"] += bool(outcomes) and set(outcomes.values()) == {"skip"}
            totals["unended modules"] += "(all)" in failed
            unforeseen, unmet = surprises_of(failed, expected[name])
            for test in failed if options.all else unforeseen:
                print(f"{name} {test}   {' '.join(messages.get(test, 'did not end').split())}", flush=True)
            for pattern in unmet:
                print(f"{name} {pattern}   passes, or is not there, though expected.txt has it", flush=True)
            if unforeseen or unmet:
                surprised.append(name)
            if seconds > 60:
                print(f"({name} took {seconds:.0f} s)", flush=True)
    print(f"{len(names)} modules, {totals['clean modules']} of them without a failure ({totals['skipped modules']} skip "
          f"themselves), {totals['unended modules']} that cannot be loaded or do not end; {totals['pass']} tests passed, "
          f"{totals['fail']} failed, {totals['skip']} skipped themselves")
    if surprised:
        sys.exit(f"{len(surprised)} modules differ from what expected.txt says")


if __name__ == "__main__":
    main()
