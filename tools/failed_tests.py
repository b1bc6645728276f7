#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Repeats what the failed tests printed, so that it stands at the end of a long log.

usage: tools/failed_tests.py PRESET REPORT

REPORT is what `ctest --output-junit` wrote. Of each test's output the last lines are shown.
"""
import sys
import xml.etree.ElementTree

LINES = 60


def main() -> None:
    preset, report = sys.argv[1:]
    for test in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        if test.get("status") != "fail":
            continue
        lines = (test.findtext("system-out") or "").splitlines()
        print(f"\nFAILED ({preset}): {test.get('name')}")
        print(*lines[-LINES:], sep="\n")


main()
