# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The source of every cell, for tracebacks, inspect.getsource and warnings."""
import linecache
from io import FileIO, BytesIO
from tokenize import detect_encoding

_BOM = b'\xef\xbb\xbf'
_of_cells = {}    # file name to source (bytes), or to its lines once somebody asked


def _decode(source):
    try:
        if b'coding' in source[:400]:
            return source.decode(detect_encoding(BytesIO(source).readline)[0])
        return source.removeprefix(_BOM).decode()
    except Exception:
        return source.decode('utf-8', 'replace')


def _split(text):
    # str.splitlines also splits at form feeds and the like, which are not line ends to the compiler.
    if '\r' in text:
        text = text.replace('\r\n', '\n').replace('\r', '\n')
    lines = [line + '\n' for line in text.split('\n')]
    if lines[-1] == '\n':
        lines.pop()
    return lines


def _cell_lines(filename):
    lines = _of_cells.get(filename)
    if type(lines) is bytes:
        lines = _of_cells[filename] = _split(_decode(lines))
    return lines


class _Cache(dict):
    """linecache's cache, in which the cells are found without having been entered one by one."""

    def _fill(self, filename):
        lines = _cell_lines(filename)
        if lines is None:
            return False
        self[filename] = sum(map(len, lines)), None, lines, filename
        return True

    def __contains__(self, filename):
        return dict.__contains__(self, filename) or self._fill(filename)

    def __missing__(self, filename):
        if self._fill(filename):
            return self[filename]
        raise KeyError(filename)

    def get(self, filename, default=None):
        return self[filename] if filename in self else default


def install():
    linecache.cache = _Cache()


def register(filename, source):
    _of_cells[filename] = source


def forget_all():
    _of_cells.clear()
    linecache.cache.clear()


def lines_of(filename):
    lines = _cell_lines(filename)
    if lines is not None:
        return lines
    try:
        if filename.startswith('<'):
            return []
        with FileIO(filename) as file:
            return _split(_decode(file.readall()))
    except (OSError, ValueError):
        return []
