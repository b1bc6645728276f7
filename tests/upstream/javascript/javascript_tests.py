# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs test262, the suite of ECMAScript, in the sandbox: each test in a fresh interpreter, its harness and itself as cells,
in strict and sloppy mode as it asks for. What fails is compared with expected.txt.

expected.txt has groups: a line "# REASON", then lines "PATH", which may hold wildcards, of tests that fail for that reason;
"PATH strict" or "PATH sloppy" if only so; "?PATH" if only at times.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import suite

HERE = pathlib.Path(__file__).resolve().parent
# What QuickJS-NG has not, or the sandbox, by the names the tests give their features.
LEFT_OUT = {
    "proposals that the interpreter does not have": (
        "Temporal", "ShadowRealm", "decorators", "source-phase-imports", "source-phase-imports-module-source",
        "import-defer", "export-defer", "import-text", "import-bytes", "immutable-arraybuffer",
        "nonextensible-applies-to-private", "await-dictionary", "error-stack-accessor", "Iterator.prototype.join",
        "legacy-regexp", "tail-call-optimization", "import-assertions", "FinalizationRegistry.prototype.cleanupSome"),
    "one realm, one thread, no shared memory": (
        "Atomics", "Atomics.pause", "Atomics.waitAsync", "SharedArrayBuffer", "cross-realm", "IsHTMLDDA",
        "host-gc-required"),
}


def words_of(front, name):
    """`name: [a, b]`, or a list of lines with dashes."""
    found = re.search(rf"^[ \t]*{name}:[ \t]*(?:\[([^\]]*)\]|((?:\s*\n[ \t]*-[^\n]*)+))", front, re.M)
    if not found:
        return []
    return [word for word in re.split(r"[,\s]+", (found[1] or "") + (found[2] or "").replace("-  ", " ").replace("- ", " "))
            if word]


class Test:
    def __init__(self, folder, path):
        self.path = path
        self.file = folder / "test" / path
        self.source = self.file.read_bytes().decode("utf-8", "surrogatepass")  # line ends are kept
        found = re.search(r"/\*---(.*?)---\*/", self.source, re.S)
        front = found[1].replace("\r\n", "\n").replace("\r", "\n") if found else ""
        self.flags = set(words_of(front, "flags"))
        self.includes = words_of(front, "includes")
        self.features = set(words_of(front, "features"))
        negative = re.search(r"^[ \t]*negative:\s*\n((?:[ \t]+[^\n]*\n?)+)", front, re.M)
        self.negative = dict(re.findall(r"(\w+):\s*(\w+)", negative[1])) if negative else {}

    def modes(self):
        if "module" in self.flags:
            return ["module"]
        if "raw" in self.flags:
            return ["raw"]
        return [mode for mode, flag in (("sloppy", "onlyStrict"), ("strict", "noStrict")) if flag not in self.flags]

    def program(self, folder, mode):
        hosts = ["host.js", "done.js"] if "async" in self.flags else ["host.js"]
        cells = [] if mode == "raw" else [str(HERE / name) for name in hosts] + [
            str(folder / "harness" / name) for name in
            ["assert.js", "sta.js"] + self.includes]
        if mode == "module":
            cells.append({"code": f"await import({json.dumps('./' + self.file.name)}); undefined"})
        else:
            cells.append({"code": '"use strict";\n' + self.source if mode == "strict" else self.source})
        program = {"cells": cells}
        if mode == "module" or "import(" in self.source or "_FIXTURE" in self.source:
            program["folder"] = str(self.file.parent)
        self_cell = len(cells) - 1
        return program, self_cell

    def verdict(self, answer, self_cell):
        """Empty when the test passed, otherwise what was wrong."""
        error, message = answer.get("error"), " ".join(answer.get("message", "").split())[:200]
        if answer.get("ending") not in ("completed", "guest-error"):
            return f"{answer.get('ending')}: {message}"
        if answer["cell"] != self_cell:
            return f"harness: {error}: {message}"
        if self.negative:
            if error is None:
                return f"no {self.negative['type']}"
            if error == self.negative["type"] or message.startswith(self.negative["type"]):
                return ""
            return f"{error} instead of {self.negative['type']}: {message}"
        if error is not None:
            return f"{error}: {message}"
        if "async" in self.flags and "Test262:AsyncTestComplete" not in answer["out"]:
            return "out: " + " ".join(answer["out"].split())[:200]
        return ""


def run_programs(runner, programs):
    """The answers, one a program. If the runner dies, so did the program it was at."""
    answers = []
    while len(answers) < len(programs):
        with tempfile.TemporaryFile("w+", encoding="utf-8") as lines:
            for program in programs[len(answers):]:
                lines.write(json.dumps(program) + "\n")
            lines.seek(0)
            done = subprocess.run([runner], stdin=lines, stdout=subprocess.PIPE, check=False)
        complete = done.stdout.decode("utf-8", "replace").split("\n")[:-1]
        answers += [json.loads(line) for line in complete]
        if len(answers) < len(programs):
            answers.append({"ending": "crash", "message": f"the runner ended with status {done.returncode}"})
    return answers


def read_expected():
    """[(path pattern, mode or "", always)]"""
    expected = []
    for line in (HERE / "expected.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            path, _, mode = line.partition(" ")
            expected.append((path.removeprefix("?"), mode, not path.startswith("?")))
    return expected


class Expected:
    def __init__(self, entries):
        self.plain = {(path, mode): always for path, mode, always in entries if "*" not in path}
        self.patterns = [entry for entry in entries if "*" in entry[0]]
        self.met = set()

    def foresees(self, path, mode):
        found = False
        for key in ((path, ""), (path, mode)):
            if key in self.plain:
                self.met.add(key)
                found = True
        for pattern, only, _ in self.patterns:
            if only in ("", mode) and fnmatch.fnmatchcase(path, pattern):
                self.met.add((pattern, only))
                found = True
        return found

    def unmet(self, ran):
        for (path, mode), always in self.plain.items():
            if always and (path, mode) not in self.met and path in ran:
                yield f"{path} {mode}".rstrip()
        for pattern, mode, always in self.patterns:
            if always and (pattern, mode) not in self.met and fnmatch.filter(ran, pattern):
                yield f"{pattern} {mode}".rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runner")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("filter", nargs="?", default="", help="a part of the tests' paths")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--all", action="store_true", help="show the failures that are expected, too")
    options = parser.parse_args()
    folder = suite.prepare(options.work)
    left_out = {feature: reason for reason, features in LEFT_OUT.items() for feature in features}
    skipped = collections.Counter()
    jobs = []
    paths = [str(path.relative_to(folder / "test")) for part in suite.FOLDERS
             for path in sorted((folder / "test" / part).rglob("*.js")) if "_FIXTURE" not in path.name]
    ran = set()
    for path in paths:
        if options.filter not in path:
            continue
        test = Test(folder, path)
        absent = [left_out[feature] for feature in sorted(test.features) if feature in left_out]
        if absent:
            skipped[absent[0]] += 1
            continue
        ran.add(path)
        jobs += [(test, mode) for mode in test.modes()]
    # Dealt out in pieces, so that a slow folder does not keep one process busy while the others wait.
    pieces = [jobs[at:at + 500] for at in range(0, len(jobs), 500)]
    expected = Expected(read_expected())
    passed, failed, surprised = 0, set(), 0

    def run_piece(piece):
        programs = [test.program(folder, mode) for test, mode in piece]
        answers = run_programs(options.runner, [program for program, _ in programs])
        return [test.verdict(answer, self_cell) for (test, _), (_, self_cell), answer in zip(piece, programs, answers)]

    runs = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for piece, verdicts in zip(pieces, pool.map(run_piece, pieces)):
            for (test, mode), wrong in zip(piece, verdicts):
                runs += 1
                passed += not wrong
                if not wrong:
                    continue
                failed.add(test.path)
                foreseen = expected.foresees(test.path, mode)
                surprised += not foreseen
                if options.all or not foreseen:
                    print(f"{test.path} {mode}   {wrong}", flush=True)
    unmet = sorted(expected.unmet(ran))
    for entry in unmet:
        print(f"{entry}   passes, though expected.txt has it")
    for reason, count in skipped.items():
        print(f"{count} tests left out: {reason}")
    print(f"{len(ran)} tests, {len(ran) - len(failed)} of them passed; {runs} runs in sloppy, strict and module code, "
          f"{passed} of them passed")
    if surprised or unmet or not ran:
        sys.exit(f"{surprised + len(unmet)} results differ from what expected.txt says")


if __name__ == "__main__":
    main()
