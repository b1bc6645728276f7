# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Cells run at bake, so that the first ones of a user find caches filled and code specialised."""
import io
import sys
from marshal import dumps

_CELLS = (
    b'1+1',
    b'print(1)',
    b'x = 41',
    b'{"a": [1, 2.5, None]}',
    b'import sys; print("warm", file=sys.stderr)',
    b'def f(n):\n    return n / 0\nf(1)',
    b'print("start"',
    b'try:\n    {}["k"]\nexcept KeyError as e:\n    raise ValueError("v") from e',
    b'raise ExceptionGroup("g", [ValueError(1)])',
    b'undefined_name',
    b'import asyncio\nawait asyncio.sleep(0)\nasyncio.create_task(asyncio.sleep(0))',
    b'import asyncio\nasyncio.run(asyncio.sleep(0))',
    b'raise SystemExit(3)',
)
_ROUNDS = 12   # enough for the interpreter to specialise the driver's own code


def warm_up(cell):
    main = cell.main
    before = dict(main)
    answers = []
    real, cell.answer = cell.answer, answers.append
    kept = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = io.StringIO()
    try:
        for number in range(_ROUNDS):
            for source in _CELLS:
                cell.run(dumps((source, '<warm>', {}, [''], '/workspace', cell.FLAG_FRESH)))
                cell.run(cell.FINISH)
                main.clear()
                main.update(before)
    finally:
        sys.stdout, sys.stderr = kept
        cell.answer = real
    load('aio').rest()
    load('sources').forget_all()
