# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that is kept back while cells run, for the time after one that took all there is: an error has to be shown,
and the next cell has to be read and compiled, if only to let go of what the last one holds.

It is the buffer of a reader which nobody reads from, as that is memory which nobody has to write to either.
"""
from io import BufferedReader, BytesIO

_MOST = 4 << 20
_LEAST = 64 << 10
_NONE = 1
_source = BytesIO()
_reader = BufferedReader(_source, _MOST)
_set_size = _reader.__init__
_is_kept = True


def release():
    global _is_kept
    _is_kept = False
    _set_size(_source, _NONE)


def keep():
    """Before a cell. Where memory is short, no more than what is left for the cell."""
    global _is_kept
    if _is_kept:
        return
    size = _MOST
    while size >= _LEAST:
        try:
            _set_size(_source, 2 * size)
            _set_size(_source, size)
        except MemoryError:
            size >>= 1
            continue
        _is_kept = True
        return
    _set_size(_source, _NONE)
