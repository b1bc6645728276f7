# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Is $SOURCE a whole cell, or does it want more lines? Runs in an interpreter of its own; its value is the answer.
import codeop
import os


def wants_more(source):
    try:
        return codeop.compile_command(source, "<cell>", "single") is None
    except SyntaxError:
        pass
    # Several statements at once, as after pasting.
    try:
        if codeop.compile_command(source, "<cell>", "exec") is None:
            return True
    except SyntaxError:
        return False
    last = source.rsplit("\n", 1)[-1]
    return last.startswith((" ", "\t")) or last.rstrip().endswith(":")


try:
    answer = not wants_more(os.environ["SOURCE"])
except (ValueError, OverflowError, RecursionError, MemoryError):
    answer = True  # it will fail when it is run, and say why
answer
