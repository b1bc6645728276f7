# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What went wrong, as the user should read it.

The text is that of the standard traceback module, from a private copy which no cell can patch, without the frames
of the library: the user's own lines are what they can change. If even that copy fails (its own imports are shared with
the cells), a plainer text is made here.

Everything is cut while it is made: an exception can have a text of any size, a million notes or frames, and any number
of other exceptions behind it and in it. What is cut says so.
"""
import sys
import types
from collections import deque

_trace_of = BaseException.__traceback__.__get__
_cause_of = BaseException.__cause__.__get__
_context_of = BaseException.__context__.__get__
_members_of = BaseExceptionGroup.exceptions.__get__
_own_exit_code = SystemExit.code.__get__
_HIDDEN = ('<sandbox/', sys.path[-1], '<frozen ')

# The host cuts the texts of an error at these sizes, in bytes. Cut here first, megabytes need not be escaped, sent and
# parsed, for which there may be neither memory nor time.
LINE_MAX = 8 << 10
MESSAGE_MAX = 64 << 10
_LINES_MAX = 500
_TEXT_LINE_MAX = 6 << 10      # of a text among others, which must not be cut again with them
_TEXT_LINES_MAX = 400
_NAME_MAX = 512
_FRAMES_MAX = 500     # of each exception: this many of the outermost, and of the innermost
_NOTES_MAX = 100      # of each exception
_REPORTS_MAX = 100    # exceptions that are shown: causes, contexts, members of groups
_WIDTH_MAX = 15       # members of a group that traceback shows

sources = load('sources')


def shorten(text, most):
    if len(text) <= most:
        return text
    kept = most - 64
    return f'{text[:kept]} … ({len(text) - kept} more characters)'


def short_lines(text, lines_max=_LINES_MAX, line_max=LINE_MAX):
    """The lines of a text, without those in the middle if there are too many."""
    count = text.count('\n') + 1
    if count <= lines_max:
        lines = text.split('\n')
    else:
        head = lines_max // 2
        tail = lines_max - head - 1
        lines = text.split('\n', head)[:head]
        lines.append(f'  … ({count - head - tail} more lines)')
        lines += text.rsplit('\n', tail)[1:]
    return [shorten(line, line_max) for line in lines]


def _short_text(text):
    if len(text) <= _TEXT_LINE_MAX:
        return text
    return '\n'.join(short_lines(text, _TEXT_LINES_MAX, _TEXT_LINE_MAX))


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
    module._walk_tb_with_full_positions = lambda trace: ()    # _stack_of takes the frames that are shown
    text_of_value = module._safe_string
    module._safe_string = lambda value, what, func=str: _short_text(str.__str__(text_of_value(value, what, func)))
    return module


traceback = _private_traceback_module()


def _shown(filename):
    return not filename.startswith(_HIDDEN)


def _shown_entries(trace):
    """The entries of a traceback that are the user's: the outermost, how many are left out, the innermost."""
    first = []
    last = deque(maxlen=_FRAMES_MAX)
    count = 0
    while trace is not None:
        if _shown(trace.tb_frame.f_code.co_filename):
            if count < _FRAMES_MAX:
                first.append(trace)
            else:
                last.append(trace)
            count += 1
        trace = trace.tb_next
    return first, count - len(first) - len(last), last


class _Stack(traceback.StackSummary):
    left_out = 0

    def format(self, **options):
        if not self.left_out:
            return super().format(**options)
        plain = traceback.StackSummary
        return [*plain(self[:_FRAMES_MAX]).format(**options), f'  … ({self.left_out} more calls)\n',
                *plain(self[_FRAMES_MAX:]).format(**options)]


def _frames(entries):
    for entry in entries:
        positions = traceback._get_code_position(entry.tb_frame.f_code, entry.tb_lasti)
        yield entry.tb_frame, positions if positions[0] is not None else (entry.tb_lineno, *positions[1:])


def _stack_of(trace):
    first, left_out, last = _shown_entries(trace)
    stack = _Stack._extract_from_extended_frame_gen(_frames([*first, *last]), limit=None, lookup_lines=False,
                                                    capture_locals=False)
    for frame in stack:
        frame.filename, frame.name = shorten(frame.filename, _NAME_MAX), shorten(frame.name, _NAME_MAX)
    if left_out and len(stack) == 2 * _FRAMES_MAX:    # sys.tracebacklimit may ask for fewer
        stack.left_out = left_out
    return stack


class _Unseen:
    """For TracebackException: it is one of several, and others take care of what is behind it."""

    def add(self, identity):
        pass


class _Report(traceback.TracebackException):
    """One exception. What is behind it and in it is added by _Reports."""

    def __init__(self, error):
        super().__init__(type(error), error, _trace_of(error), lookup_lines=False, compact=True, _seen=_Unseen())
        self.__cause__ = self.__context__ = self.exceptions = None
        self.stack = _stack_of(_trace_of(error)) or None    # no heading over an empty list
        # The original puts guesses about an installation (site-packages, the platform) in the message's place.
        if issubclass(type(error), ModuleNotFoundError):
            self._str = traceback._safe_string(error, 'exception')
        notes = self.__notes__
        if type(notes) is list and len(notes) > _NOTES_MAX:
            self.__notes__ = [*notes[:_NOTES_MAX], f'… ({len(notes) - _NOTES_MAX} more notes)']
        for name in ('exc_type_qualname', 'exc_type_module', 'filename', 'msg'):
            text = getattr(self, name, None)
            if type(text) is str:
                setattr(self, name, shorten(text, _NAME_MAX))
        if type(getattr(self, 'text', None)) is str and len(self.text) > _TEXT_LINE_MAX:
            self.text = None


class _LeftOut:
    """Stands for a member of a group when enough exceptions are shown."""

    @staticmethod
    def format(*, _ctx, **options):
        return _ctx.emit('… (not shown)\n')


class _Reports:
    """The reports of an exception, of its causes and contexts and of the members of groups."""

    def __init__(self, error):
        self._left = _REPORTS_MAX
        self._waiting = deque()
        self._seen = set()
        self.top = self._add(error)
        while self._waiting:
            self._look_behind(*self._waiting.popleft())

    def _add(self, error):
        self._left -= 1
        self._seen.add(id(error))
        report = _Report(error)
        self._waiting.append((report, error))
        return report

    def _look_behind(self, report, error):
        report.__cause__ = self._add_chained(_cause_of(error))
        if report.__cause__ is None and not report.__suppress_context__:
            report.__context__ = self._add_chained(_context_of(error))
        if issubclass(type(error), BaseExceptionGroup):
            members = _members_of(error)
            shown = [self._add(member) if self._left > 0 else _LeftOut for member in members[:_WIDTH_MAX]]
            report.exceptions = shown + [_LeftOut] * (len(members) - len(shown))

    def _add_chained(self, error):
        if error is None or id(error) in self._seen or self._left == 0:
            return None
        return self._add(error)


def _plain(error, name, message):
    lines = ['Traceback (most recent call last):']
    first, left_out, last = _shown_entries(_trace_of(error))
    for entry in [*first, *last]:
        code = entry.tb_frame.f_code
        file = shorten(code.co_filename, _NAME_MAX)
        lines.append(f'  File "{file}", line {entry.tb_lineno}, in {shorten(code.co_name, _NAME_MAX)}')
        text = _Lines.getline(code.co_filename, entry.tb_lineno or 0).strip()
        if text:
            lines.append('    ' + text)
    lines.append(f'{name}: {message}' if message else name)
    return '\n'.join(lines)


def name_of(error):
    try:
        name = type.__dict__['__name__'].__get__(type(error))
        return shorten(name, LINE_MAX) if type(name) is str else 'Exception'
    except Exception:
        return 'Exception'


def message_of(error):
    try:
        return shorten(str.__str__(str(error)), MESSAGE_MAX)
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
        return ''.join(_Reports(error).top.format()).rstrip('\n')
    except BaseException:
        return _plain(error, name, message)


def complete_syntax_error(error, filename):
    """Errors found after parsing come without their line's text."""
    if error.text is None and error.filename == filename and error.lineno:
        error.text = _Lines.getline(filename, error.lineno) or None
