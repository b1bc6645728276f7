# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Standard streams that hold nothing back.

Each write goes to the descriptor at once: what was printed is never lost when a run is stopped hard, a line
without its newline is seen, and stdout and stderr keep their order. The descriptors are never closed, so a cell
that closes sys.stdout closes only the Python object.
"""
import sys
# By name: what a cell puts in the place of these in their module is not used.
from io import BufferedReader, FileIO, TextIOWrapper


def _writer(fd, errors):
    raw = FileIO(fd, 'w', closefd=False)
    raw.name = '<stdout>' if fd == 1 else '<stderr>'
    stream = TextIOWrapper(raw, encoding='utf-8', errors=errors, newline='\n', write_through=True)
    stream.mode = 'w'
    return stream


def _reader():
    raw = FileIO(0, 'r', closefd=False)
    raw.name = '<stdin>'
    stream = TextIOWrapper(BufferedReader(raw), encoding='utf-8', errors='strict')
    stream.mode = 'r'
    return stream


_sys = vars(sys)
_ours = ()
_stdin = None


def install():
    global _ours, _stdin
    sys.stdin = sys.__stdin__ = _stdin = _reader()
    sys.stdout = sys.__stdout__ = _writer(1, 'strict')
    sys.stderr = sys.__stderr__ = _writer(2, 'backslashreplace')
    _ours = (sys.stdout, sys.stderr)


def renew_stdin():
    """Before a cell: what the one before left unread in the buffer was its own input."""
    global _stdin
    if _sys.get('stdin') is _stdin:
        try:
            _sys['stdin'] = _sys['__stdin__'] = _stdin = _reader()
        except Exception:
            pass  # without its codecs a program keeps the reader that it has


def flush_replaced():
    """Flushes what the user put in the place of our streams; ours never hold anything."""
    for name in ('stdout', 'stderr'):
        stream = _sys.get(name)
        if stream is None or stream is _ours[0] or stream is _ours[1]:
            continue
        try:
            stream.flush()
        except Exception:
            pass  # closed, or not a stream at all: the user's own affair


def write_error(text):
    """Text for the user's sys.stderr, or for descriptor 2 when that does not work."""
    stream = _sys.get('stderr')
    if stream is None:
        return
    try:
        stream.write(text)
    except BaseException:
        try:
            _ours[1].write(text)
        except BaseException:
            pass
