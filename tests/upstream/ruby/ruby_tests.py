# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs Ruby's own tests (the folder test/ of its source) in the sandbox, each file in a fresh interpreter.

A test that asks for what a sandbox has not (another process, threads, sockets) is counted as such. Every other failure
must be in expected.txt. Its lines are "FILE TEST REASON"; TEST may end in * for all that begin so, and is "loading"
where the file does not load at all.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BOUND_S = 300
# What the library of the sandbox has; the rest tests sockets, threads, other programs, or libraries that are not there.
FOLDERS = """base64 benchmark bigdecimal cgi coverage csv date did_you_mean digest erb error_highlight etc fiber fileutils
json logger monitor nkf objspace optparse ostruct pathname psych resolv ripper ruby set stringio strscan uri yaml
zlib""".split()
SINGLE = """test_abbrev test_delegate test_find test_forwardable test_getoptlong test_ipaddr test_observer test_open3 test_pp
test_prettyprint test_pstore test_rbconfig test_securerandom test_shellwords test_singleton test_tempfile test_time
test_timeout test_tmpdir test_tsort test_unicode_normalize test_weakref""".split()
# Files under --stress: where objects are made and moved most.
STRESSED = ["ruby/test_fiber.rb", "ruby/test_array.rb", "ruby/test_hash.rb", "ruby/test_string.rb"]


def prepare(work, given):
    """work/tree holds test/ and tool/lib of the release that the guest is built from."""
    sys.dont_write_bytecode = True
    build = runpy.run_path(str(ROOT / "guests/ruby/build.py"))
    stamp = work / "ready"
    if stamp.exists() and stamp.read_text() == build["RUBY"].sha256:
        return
    sources = build["sources"]
    shutil.rmtree(work / "tree", ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=work) as temporary:
        temporary = pathlib.Path(temporary)
        sources.unpack(sources.debian_source(build["RUBY"], given, temporary), temporary / "ruby")
        # Two libraries' tests load them by their place.
        for name in ("test", "tool/lib", "lib/did_you_mean", "lib/error_highlight"):
            shutil.copytree(temporary / "ruby" / name, work / "tree" / name)
        for name in ("did_you_mean", "error_highlight"):
            shutil.copyfile(temporary / f"ruby/lib/{name}.rb", work / f"tree/lib/{name}.rb")
    stamp.write_text(build["RUBY"].sha256)


def files_of(tree):
    tests = tree / "test"
    found = [path for folder in FOLDERS for path in sorted((tests / folder).rglob("*.rb"))
             if path.name.startswith("test_") or path.name.endswith("_test.rb")]
    found += [tests / f"{name}.rb" for name in SINGLE if (tests / f"{name}.rb").exists()]
    return [path.relative_to(tests).as_posix() for path in found]


def run_file(program, tree, name, stress):
    command = [program, "run", "--timeout", "none" if stress else f"{BOUND_S}s", "--memory", "1G", "--workspace", tree,
               "--env", f"TEST_FILE={name}", "--env", f"STRESS_S={stress or ''}", HERE / "one_file.rb"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    results = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith("@@ "):
            results.append(json.loads(line[3:]))
    if not results or results[-1]["result"] != "end":
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        after = f" after {results[-1]['name']}" if results else ""
        results.append({"result": "fail", "name": "ending",
                        "message": f"status {done.returncode}{after}: {said[-1] if said else ''}"})
    return [result for result in results if result["result"] != "end"]


class Expected:
    def __init__(self, path):
        self.rows = collections.defaultdict(list)
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                name, test, _ = line.split(None, 2)
                self.rows[name].append(test)
        self.seen = set()

    def has(self, name, test):
        for pattern in self.rows[name]:
            if fnmatch.fnmatchcase(test, pattern):
                self.seen.add((name, pattern))
                return True
        return False

    def unseen(self, names):
        return [(name, test) for name in names for test in self.rows[name] if (name, test) not in self.seen]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("filter", nargs="?", default="", help="a part of the files' names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sources", type=pathlib.Path, help="a folder looked into before anything is fetched")
    parser.add_argument("--stress", type=int, nargs="?", const=30, metavar="SECONDS",
                        help="collect garbage at every chance, for SECONDS (30) of each test at most, in "
                        f"{', '.join(STRESSED)} unless a filter is given; an hour or more")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    prepare(options.work, options.sources)
    tree = options.work / "tree"
    names = [name for name in files_of(tree) if options.filter in name]
    if options.stress and not options.filter:
        names = STRESSED
    expected = Expected(HERE / "expected.txt")
    totals = collections.Counter()
    surprises = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, results in zip(names, pool.map(
                lambda name: run_file(options.program, tree, name, options.stress), names)):
            for result in results:
                kind = result["result"]
                if kind == "fail" and expected.has(name, result["name"]):
                    kind = "expected"
                totals[kind] += 1
                if kind == "fail":
                    surprises += 1
                    print(f"{name} {result['name']}   {result['message']!r}", flush=True)
    print(f"{len(names)} files: {totals['pass']} tests passed, {totals['expected']} failed as expected, {totals['fail']} "
          f"failed; {totals['missing']} need what a sandbox has not, {totals['omitted']} left out by themselves"
          + (f"; {totals['cut']} were ended after {options.stress} s" if options.stress else ""))
    if not options.stress:
        for name, test in expected.unseen(names):
            surprises += 1
            print(f"{name} {test}   is in expected.txt and did not fail")
    if surprises:
        sys.exit(f"{surprises} surprises: expected.txt says otherwise")


if __name__ == "__main__":
    main()
