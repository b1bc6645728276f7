# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What went wrong, as the user should read it.

The text is that of the standard traceback module, from a private copy which no cell can patch, without the frames
of the driver and of the library: the user's own lines are what they can change. If even that copy fails (its own
imports are shared with the cells), a plainer text is made here.
"""
import sys
import types

_trace_of = BaseException.__traceback__.__get__
_own_exit_code = SystemExit.code.__get__
_HIDDEN = ('<sandbox/', sys.path[-1], '<frozen ')

# The host cuts the texts of an error at these sizes, in bytes. Cut here first, megabytes need not be escaped, sent and
# parsed, for which there may be neither memory nor time.
LINE_MAX = 8 << 10
MESSAGE_MAX = 64 << 10
_LINES_MAX = 500

sources = load('sources')


class _Lines:
    """Stands for linecache in the private traceback module: cells' sources first, then files."""

    @staticmethod
    def getlines(filename, module_globals=None):
        return sources.lines_of(filename)

    @staticmethod
    def getline(filename, lineno, module_globals=None):
        lines = sources.lines_of(filename)
        return lines[lineno - 1] if 1 <= lineno <= len(lines) else ''

    @staticmethod
    def _getline_from_code(filename, lineno):
        return ''

    @staticmethod
    def _getlines_from_code(code):
        return []

    @staticmethod
    def _register_code(*arguments):
        return None

    @staticmethod
    def checkcache(filename=None):
        pass

    @staticmethod
    def lazycache(filename, module_globals):
        return False

    cache = {}


def _builtins_with_modules(modules):
    """Builtins whose `import` finds these modules, whatever has become of sys.modules since, and no others."""
    def find(name, globals=None, locals=None, fromlist=(), level=0):
        found = modules.get(name if fromlist else name.partition('.')[0])
        if found is None:
            raise ImportError(name)
        return found

    return {**__builtins__, '__import__': find}


def _private_traceback_module():
    import traceback
    # What it imports only once there is an error to show: the user's file of that name is not meant.
    import _colorize, ast, tokenize  # noqa: E401
    for name in ('_suggestions', '_missing_stdlib_info'):
        try:
            __import__(name)
        except ImportError:
            pass
    module = types.ModuleType('traceback')
    vars(module)['__builtins__'] = _builtins_with_modules(dict(sys.modules))
    exec(traceback.__loader__.get_code('traceback'), vars(module))
    module.linecache = _Lines

    class Report(module.TracebackException):
        def __init__(self, exc_type, exc_value, exc_traceback, **options):
            super().__init__(exc_type, exc_value, exc_traceback, **options)
            # The original puts guesses about an installation (site-packages, the platform) in the message's place.
            if isinstance(exc_type, type) and issubclass(exc_type, ModuleNotFoundError):
                self._str = module._safe_string(exc_value, 'exception')

    # Chained errors become reports by this name too.
    module.TracebackException = Report
    return module


_traceback = _private_traceback_module()


def _shown(filename):
    return not filename.startswith(_HIDDEN)


def _trim(report, seen):
    """Takes the frames that are not the user's out of a TracebackException and of all it is chained to."""
    while report is not None and id(report) not in seen:
        seen.add(id(report))
        if report.stack:
            frames = [frame for frame in report.stack if _shown(frame.filename)]
            if frames:
                report.stack[:] = frames
            else:
                report.stack = None  # raised inside a library: no heading over an empty list
        for member in report.exceptions or ():
            _trim(member, seen)
        _trim(report.__cause__, seen)
        report = report.__context__


def _plain(error, name, message):
    lines = ['Traceback (most recent call last):']
    trace = _trace_of(error)
    while trace is not None:
        code = trace.tb_frame.f_code
        if _shown(code.co_filename):
            lines.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}')
            text = _Lines.getline(code.co_filename, trace.tb_lineno or 0).strip()
            if text:
                lines.append('    ' + text)
        trace = trace.tb_next
    lines.append(f'{name}: {message}' if message else name)
    return '\n'.join(lines)


def shorten(text, most):
    if len(text) <= most:
        return text
    kept = most - 64
    return f'{text[:kept]} … ({len(text) - kept} more characters)'


def short_lines(text):
    """The lines of a text, without those in the middle if there are too many."""
    count = text.count('\n') + 1
    if count <= _LINES_MAX:
        lines = text.split('\n')
    else:
        head = _LINES_MAX // 2
        tail = _LINES_MAX - head - 1
        lines = text.split('\n', head)[:head]
        lines.append(f'  … ({count - head - tail} more lines)')
        lines += text.rsplit('\n', tail)[1:]
    return [shorten(line, LINE_MAX) for line in lines]


def name_of(error):
    try:
        name = type.__dict__['__name__'].__get__(type(error))
        return name if type(name) is str else 'Exception'
    except Exception:
        return 'Exception'


def message_of(error):
    try:
        return str.__str__(str(error))
    except BaseException:
        return '<exception str() failed>'


def exit_code_of(error):
    """What an exception that ends the cell has as its code; a subclass may compute it."""
    try:
        return error.code
    except BaseException:
        return _own_exit_code(error) if issubclass(type(error), SystemExit) else 1


def line_of(error, filename):
    """The line of the cell that raised, was calling, or does not parse."""
    line = None
    trace = _trace_of(error)
    last = None
    while trace is not None:
        code = trace.tb_frame.f_code.co_filename
        if code == filename:
            line = trace.tb_lineno
        elif _shown(code):
            last = trace.tb_lineno
        trace = trace.tb_next
    if line is None and issubclass(type(error), SyntaxError):
        try:
            if error.filename == filename and type(error.lineno) is int:
                line = error.lineno
        except Exception:
            pass
    return line if line is not None else last


def text_of(error, name, message):
    try:
        report = _traceback.TracebackException(type(error), error, _trace_of(error), lookup_lines=False,
                                               compact=True)
        _trim(report, set())
        return ''.join(report.format()).rstrip('\n')
    except BaseException:
        return _plain(error, name, message)


def complete_syntax_error(error, filename):
    """Errors found after parsing come without their line's text."""
    if error.text is None and error.filename == filename and error.lineno:
        error.text = _Lines.getline(filename, error.lineno) or None
