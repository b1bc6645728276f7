# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs in the sandbox, from the folder that holds the package `test`: guest.py NAME [TEXT-OF-AN-ERROR-MAX].

Prints a line of JSON for each test as it ends, [outcome, id, message], after a mark, so that nothing is lost when the
run is ended from outside.
"""
import json
import os
import sys
import traceback
import unittest

from test import support

MARK = "\n@@sw "
NAME = sys.argv[1]
LONGEST = int(sys.argv[2]) if len(sys.argv) > 2 else 200


def say(*words):
    # Not print: tests replace sys.stdout.
    os.write(1, (MARK + json.dumps(words) + "\n").encode())


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        say("start", test.id(), "")

    def stopTest(self, test):
        super().stopTest(test)
        say("stop", test.id(), "")

    def addSuccess(self, test):
        say("pass", test.id(), "")

    def addExpectedFailure(self, test, err):
        say("pass", test.id(), "")

    def addSkip(self, test, reason):
        say("skip", test.id(), str(reason)[:LONGEST])

    def addUnexpectedSuccess(self, test):
        say("fail", test.id(), "unexpected success")

    def addFailure(self, test, err):
        say("fail", test.id(), "".join(traceback.format_exception_only(err[1]))[-LONGEST:])

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


support.use_resources = ()
say("begin", NAME, "")
try:
    suite = unittest.defaultTestLoader.loadTestsFromName("test." + NAME)
except unittest.SkipTest as reason:
    say("skip", NAME, str(reason)[:LONGEST])
else:
    suite.run(Result())
say("end", NAME, "")
os._exit(0)
