#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers one after the other and prints a line for each.

usage: fuzz.py REPOSITORY BUILD CACHE [NAME…] [--seconds N]

Inputs come from fuzz/corpus/NAME and from CACHE/fuzz/NAME, where new ones are kept. An input that leads to a fault is
kept in CACHE/fuzz/faults.
"""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys

MEMORY_MB = 2048
ALLOCATION_MB = 512
SECONDS_PER_INPUT = 20
ENVIRONMENT = {"UBSAN_OPTIONS": "print_stacktrace=1"}


def names(repository: pathlib.Path) -> list[str]:
    return sorted(path.name.removesuffix("_fuzz.cc") for path in (repository / "fuzz").glob("*_fuzz.cc"))


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(arguments, name: str) -> list[str]:
    grown = arguments.cache / "fuzz" / name
    faults = arguments.cache / "fuzz" / "faults"
    made = [
        str(arguments.build / "bin" / f"fuzz_{name}"), str(grown), str(arguments.repository / "fuzz" / "corpus" / name),
        f"-max_total_time={arguments.seconds}", f"-timeout={SECONDS_PER_INPUT}", f"-rss_limit_mb={MEMORY_MB}",
        f"-malloc_limit_mb={ALLOCATION_MB}",
        f"-artifact_prefix={faults}/{name}-", "-print_final_stats=1", "-max_len=4096",
    ]
    words = arguments.repository / "fuzz" / f"{name}.dict"
    return made + ([f"-dict={words}"] if words.exists() else [])


def figures(log: str) -> tuple[int, int]:
    """How many inputs were run, and how many places of the code they reached."""
    executions = re.findall(r"stat::number_of_executed_units: (\d+)", log) or re.findall(r"^#(\d+)", log, re.MULTILINE)
    coverage = re.findall(r"cov: (\d+)", log)
    return int(executions[-1]) if executions else 0, int(coverage[-1]) if coverage else 0


def run(arguments, name: str) -> bool:
    before = cpu_seconds()
    log_path = arguments.cache / "fuzz" / f"{name}.log"
    for folder in (arguments.cache / "fuzz" / name, arguments.cache / "fuzz" / "faults"):
        folder.mkdir(parents=True, exist_ok=True)
    with open(log_path, "w", encoding="utf-8", errors="replace") as log:
        status = subprocess.run(command(arguments, name), stdout=log, stderr=subprocess.STDOUT,
                                env=os.environ | ENVIRONMENT, check=False).returncode
    text = log_path.read_text(encoding="utf-8", errors="replace")
    executions, coverage = figures(text)
    verdict = "no fault" if status == 0 else "FAULT"
    print(f"{name:<14} {executions:>10} executions {coverage:>6} edges {cpu_seconds() - before:>6.0f} CPU s  {verdict}",
          flush=True)
    if status != 0:
        print(f"  {log_path} says:", *text.splitlines()[-40:], sep="\n  ", file=sys.stderr)
    return status == 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    known = names(arguments.repository)
    if unknown := [name for name in arguments.names if name not in known]:
        print(f"Unknown target {unknown[0]}; the targets are {', '.join(known)}.", file=sys.stderr)
        return 2
    return 0 if all([run(arguments, name) for name in arguments.names or known]) else 1


if __name__ == "__main__":
    sys.exit(main())
