#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Makes bench/RESULTS.md from what `./dev bench --json FILE` wrote.

usage: tools/bench_results.py FILE [COMMAND] > bench/RESULTS.md

One table for each first part of the benchmarks' names; counters become columns. Starting a sandbox is set against
starting the native interpreter of the same run.
"""
import json
import pathlib
import platform
import subprocess
import sys

# Fields of Google Benchmark that are not counters of ours.
KNOWN = {
    "name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index",
    "threads", "iterations", "real_time", "cpu_time", "time_unit", "aggregate_name", "aggregate_unit", "label",
}
TO_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
# Options that the benchmark library appends to a name.
OPTIONS = ("/real_time", "/process_time", "/manual_time", "/min_time", "/iterations", "/repeats")


def plain(name: str) -> str:
    for option in OPTIONS:
        name = name.split(option)[0]
    return name


def read(path: str) -> tuple[dict, dict[str, dict]]:
    """The context, and for each name its time in milliseconds and its counters (the median where there were
    repetitions)."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    runs = {}
    for run in data["benchmarks"]:
        if run.get("error_occurred"):
            sys.exit(f"{run['name']} failed: {run.get('error_message')}")
        if run.get("run_type") == "aggregate" and run.get("aggregate_name") != "median":
            continue
        name = plain(run["run_name"])
        if name in runs and run.get("run_type") != "aggregate":
            continue
        counters = {key: value for key, value in run.items() if key not in KNOWN and isinstance(value, (int, float))}
        runs[name] = {"ms": run["real_time"] * TO_MS[run["time_unit"]], **counters}
    return data["context"], runs


def number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 4
    return f"{value:.{digits}f}"


def table(rows: dict[str, dict]) -> str:
    columns = []
    for row in rows.values():
        columns += [key for key in row if key not in columns]
    lines = ["| | " + " | ".join(column.replace("_", " ") for column in columns) + " |",
             "|---|" + "---:|" * len(columns)]
    for name, row in rows.items():
        lines.append(f"| `{name}` | " + " | ".join(number(row[c]) if c in row else "" for c in columns) + " |")
    return "\n".join(lines)


def machine() -> str:
    model = "unknown processor"
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break

    def version(*command: str) -> str:
        try:
            return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return f"no {command[0]}"

    return (f"{model}, {platform.machine()}, Linux {platform.release().split('-')[0]}; "
            f"{version('python3', '--version')}, node {version('node', '--version')}")


def main() -> None:
    path, command = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "./dev bench")
    context, runs = read(path)
    for name, row in runs.items():
        kind, _, language = name.partition("/")
        start, process = runs.get(f"native_start/{language}"), runs.get(f"native_process/{language}")
        if start and kind.startswith("fresh"):
            row["times_faster_than_native_start"] = start["ms"] / row["ms"]
        if process and kind == "process":
            row["times_native_process"] = row["ms"] / process["ms"]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, encoding="utf-8", check=False)
    print(f"""# Results
Made by `{command} --json FILE` and `tools/bench_results.py FILE`; [README.md](README.md) explains the names.
Commit {commit.stdout.strip()}, {context["date"][:10]}, {context["num_cpus"]} processors: {machine()}; load {context["load_avg"][0]:.1f} at the start.
Times are milliseconds of real time. Ratios are within this one run.""")
    kinds = []
    for name in runs:
        kind = name.split("/")[0]
        if kind not in kinds:
            kinds.append(kind)
    for kind in kinds:
        rows = {name: row for name, row in runs.items() if name.split("/")[0] == kind}
        print(f"\n## {kind.replace('_', ' ').capitalize()}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
