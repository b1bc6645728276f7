# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The source of every cell, for tracebacks, inspect.getsource and warnings."""
import linecache
from io import FileIO, BytesIO
from tokenize import detect_encoding

_BOM = b'\xef\xbb\xbf'
_of_cells = {}
_shared_cache = linecache.cache


def _decode(source):
    try:
        if b'coding' in source[:400]:
            return source.decode(detect_encoding(BytesIO(source).readline)[0])
        return source.removeprefix(_BOM).decode()
    except (SyntaxError, LookupError, UnicodeDecodeError):
        return source.decode('utf-8', 'replace')


def _split(text):
    # str.splitlines also splits at form feeds and the like, which are not line ends to the compiler.
    if '\r' in text:
        text = text.replace('\r\n', '\n').replace('\r', '\n')
    lines = [line + '\n' for line in text.split('\n')]
    if lines[-1] == '\n':
        lines.pop()
    return lines


def register(filename, source):
    lines = _split(_decode(source))
    _of_cells[filename] = lines
    _shared_cache[filename] = (len(source), None, lines, filename)
    return lines


def forget_all():
    for filename in _of_cells:
        _shared_cache.pop(filename, None)
    _of_cells.clear()


def lines_of(filename):
    lines = _of_cells.get(filename)
    if lines is not None:
        return lines
    try:
        if filename.startswith('<'):
            return []
        with FileIO(filename) as file:
            return _split(_decode(file.readall()))
    except (OSError, ValueError):
        return []
