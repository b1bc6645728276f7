# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs Perl's own tests (t/base cmd comp op re uni mro class lib) as programs of the sandbox, each in a fresh
interpreter, and compares with the native build of the same version under the same handicap: no child processes.

What differs must be what expected.txt says. Its lines are "FILE TESTS REASON"; TESTS are numbers and ranges that fail
or are missing in the sandbox only, or "all" for whatever happens in that file.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDERS = "base cmd comp op re uni mro class lib".split()
BOUND_S = 300
# Loaded before each native test: what the sandbox has not either.
HANDICAP = """package NoProcesses;
BEGIN {
    *CORE::GLOBAL::readpipe = sub { $? = -1; wantarray ? () : undef };
    *CORE::GLOBAL::fork = sub { undef };
}
1;
"""


def prepare(work):
    """work/build/perl/native is Perl's tree, built; work/guest and work/native are what the tests run in."""
    if (work / "ready").exists():
        return
    shutil.rmtree(work / "guest", ignore_errors=True)
    shutil.rmtree(work / "native", ignore_errors=True)
    keep = pathlib.Path(os.environ.get("SANDBOX_WORKERS_BUILDS", work / "build"))
    subprocess.run([sys.executable, "-B", ROOT / "guests/perl/build.py", work / "output"], check=True,
                   env={**os.environ, "SANDBOX_WORKERS_BUILDS": str(keep)})
    tree = keep / "perl/native"
    for name in ("guest", "native"):
        shutil.copytree(tree / "t", work / name / "t", symlinks=True, ignore=shutil.ignore_patterns("perl", "rantests"))
    with zipfile.ZipFile(work / "output/perl-lib.zip") as archive:
        archive.extractall(work / "guest/lib")
    shutil.copytree(tree / "lib", work / "native/lib", ignore=shutil.ignore_patterns("*.a"))
    shutil.copyfile(tree / "perl", work / "native/perl")
    (work / "native/perl").chmod(0o755)
    (work / "native/NoProcesses.pm").write_text(HANDICAP)
    (work / "ready").write_text("")


def tests_of(output):
    """The numbers of tests that passed, and of those that failed."""
    passed, failed = set(), set()
    for negation, number, rest in re.findall(r"^(not )?ok (\d+)(.*)$", output, re.M):
        good = not negation or re.search(r"#\s*TODO", rest, re.I)
        (passed if good else failed).add(int(number))
    return passed - failed, failed


def run_native(work, name):
    try:
        done = subprocess.run(["./perl", "-Ilib", "-I.", "-MNoProcesses", f"t/{name}"], cwd=work / "native",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=BOUND_S, check=False, env={"PATH": "/usr/bin:/bin", "PERL_CORE": "1", "LC_ALL": "C"})
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    return output.decode("utf-8", "replace")


def run_guest(work, program, name):
    done = subprocess.run(
        [program, "run", "--timeout", f"{BOUND_S}s", "--memory", "1G", "--env", "PERL_CORE=1", "--workspace",
         work / "guest", work / "guest/t" / name],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return done.stdout.decode("utf-8", "replace"), f"status {done.returncode}: {said[-1] if said else ''}"


def numbers_of(text):
    numbers = set()
    for part in text.split(","):
        begin, _, end = part.partition("-")
        numbers.update(range(int(begin), int(end or begin) + 1))
    return numbers


def text_of(numbers):
    """{1, 2, 3, 7} -> "1-3,7"."""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def read_expected():
    expected = {}
    for line in (HERE / "expected.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, tests, reason = line.split(None, 2)
            expected[name] = (tests, reason)
    return expected


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("filter", nargs="?", default="", help="a part of the files' names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    prepare(options.work)
    names = [str(path.relative_to(options.work / "guest/t")) for folder in FOLDERS
             for path in sorted((options.work / "guest/t" / folder).glob("*.t"))]
    names = [name for name in names if options.filter in name]
    expected = read_expected()
    totals = {"passed": 0, "failed": 0, "also native": 0, "clean": 0}
    surprises = []

    def one(name):
        return name, tests_of(run_native(options.work, name)), run_guest(options.work, options.program, name)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, (native_passed, native_failed), (output, message) in pool.map(one, names):
            passed, failed = tests_of(output)
            totals["passed"] += len(passed)
            totals["failed"] += len(failed)
            totals["also native"] += len(failed & native_failed)
            differs = (failed - native_failed) | (native_passed - passed)
            totals["clean"] += not differs
            tests, _ = expected.get(name, ("", ""))
            if tests != "all" and differs != (numbers_of(tests) if tests else set()):
                surprises.append(name)
                print(f"{name} {text_of(differs) or 'none'}   ({message[:150]})",
                      flush=True)
    print(f"{len(names)} files, {totals['clean']} of them as native; {totals['passed']} tests passed, "
          f"{totals['failed']} failed, {totals['also native']} of these natively too")
    if surprises:
        sys.exit(f"{len(surprises)} files differ from native Perl in another way than expected.txt says")


if __name__ == "__main__":
    main()
