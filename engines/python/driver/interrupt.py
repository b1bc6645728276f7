# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""At bake the host proves here that it can interrupt a running loop."""
from _host import call as answer

WAITING = b'waiting %d'
INTERRUPTED = b'interrupted'


def prove():
    try:
        answer(WAITING % id(KeyboardInterrupt))
        while True:
            pass
    except KeyboardInterrupt:
        answer(INTERRUPTED)
    return 0, False
