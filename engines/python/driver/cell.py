# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""One cell: request in, reply out.

Request (marshal): (source, file, env, argv, cwd, flags)
  source  bytes      the code, in any encoding its coding line names, UTF-8 without one
  file    str        its name in tracebacks
  env     dict       str to str, the whole environment
  argv    list       for sys.argv, or None to leave it as it is
  cwd     str        the folder to start in, or None to stay
  flags   int        FLAG_*

Reply, through the host's door: {tag byte, length as 4 bytes little-endian, that many bytes} repeated. Tags:
  T value's text   J value as JSON   N error's name   M its message   B its traceback   L its line in the cell
  X exit code      D the working folder, when it changed
"""
import _ast
import builtins
import sys
import types
from builtins import compile, eval, exec
from marshal import loads
from posix import chdir, getcwd

from _host import call as answer

aio = load('aio')
display = load('display')
errors = load('errors')
finish = load('finish')
fresh = load('fresh')
sources = load('sources')
streams = load('streams')

FLAG_ONE_SHOT = 1   # nothing comes after this cell: run the exit handlers
FLAG_FILES = 2      # /workspace is not empty: its modules may shadow those of the image
FLAG_SCRIPT = 4     # the code is a file: set __file__ and the import path
FLAG_FRESH = 8      # first cell of this instance

_PARSE = _ast.PyCF_ONLY_AST
_AWAIT = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_FUTURES = 0x1FE0000   # the compiler flags of `from __future__ import …`
_COROUTINE = 0x80      # code that has to be awaited

main_module = types.ModuleType('__main__')
main = vars(main_module)
sys_vars = vars(sys)
main['__builtins__'] = builtins
sys.modules['__main__'] = main_module
_STATEMENTS = (b' ', b'\t', b'\f', b'import ', b'from ', b'raise ', b'del ', b'for ', b'if ', b'while ', b'with ',
               b'def ', b'class ', b'try', b'async ', b'assert ', b'return', b'global ', b'pass')
_futures = 0
_cwd = '/'


def _is_one_line(source):
    """Whether the code looks like one line that may be an expression."""
    return not (b'\n' in source[:-1] or b'=' in source or b';' in source or b'\\' in source
                or source.startswith(_STATEMENTS))


def _semicolon_after(node, lines):
    """Whether a `;` follows the last expression; comments do not count."""
    row = node.end_lineno - 1
    rest = lines[row].encode()[node.end_col_offset:].decode()
    for text in [rest, *lines[row + 1:]]:
        if ';' in text.partition('#')[0]:
            return True
    return False


def _compile(source, file):
    """(code of the statements or None, code of the last expression or None, whether its value is shown)"""
    global _futures
    flags = _AWAIT | _futures
    if _is_one_line(source):
        # Without a syntax tree this takes a third of the time.
        try:
            return None, compile(source, file, 'eval', flags, True), True
        except SyntaxError:
            pass
    tree = compile(source, file, 'exec', flags | _PARSE, True)
    body = tree.body
    last = body[-1] if body else None
    shown = True
    if type(last) is _ast.Expr:
        body.pop()
        shown = b';' not in source or not _semicolon_after(last, sources.lines_of(file))
        last = _ast.Expression(last.value)
    else:
        last = None
    statements = expression = None
    if body:
        statements = compile(tree, file, 'exec', flags, True)
        new = statements.co_flags & _FUTURES
        if new:
            # As in the interactive interpreter, a __future__ import holds for the cells after it.
            _futures |= new
            flags |= new
    if last is not None:
        expression = compile(last, file, 'eval', flags, True)
    return statements, expression, shown


def _execute(statements, expression):
    value = None
    if statements is not None:
        value = eval(statements, main)
        if statements.co_flags & _COROUTINE:
            aio.run(value)
        value = None
    if expression is not None:
        value = eval(expression, main)
        if expression.co_flags & _COROUTINE:
            value = aio.run(value)
    return value


def _exit_code(code):
    """What the operating system would see of `raise SystemExit(code)`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        streams.write_error(str(code) + '\n')
    except Exception:
        pass
    return 1


def _failure(error, file):
    name = errors.name_of(error)
    message = errors.message_of(error)
    fields = [(b'N', display.to_bytes(name)), (b'M', display.to_bytes(message)),
              (b'B', display.to_bytes(errors.text_of(error, name, message)))]
    line = errors.line_of(error, file)
    if line is not None:
        fields.append((b'L', b'%d' % line))
    if isinstance(error, SystemExit):
        fields.append((b'X', b'%d' % _exit_code(error.code)))
    return fields


def _begin(source, file, env, argv, cwd, flags):
    global _cwd
    fresh.begin(env, flags & FLAG_FRESH, flags & FLAG_FILES)
    if argv is not None:
        sys_vars['argv'] = argv
    if cwd is not None and cwd != _cwd:
        try:
            chdir(cwd)
            _cwd = cwd
        except OSError:
            pass  # the folder is gone: stay where we are
    if flags & FLAG_SCRIPT:
        main['__file__'] = file
        fresh.import_from_folder_of(file)
    main.pop('__warningregistry__', None)  # a warning in this cell is not the one of an earlier cell's line


def _end(flags):
    global _cwd
    aio.end_of_cell()
    if flags & FLAG_ONE_SHOT:
        finish.end_of_context()
    streams.flush_replaced()
    now = getcwd()
    if now != _cwd:
        _cwd = now
        return [(b'D', display.to_bytes(now))]
    return None


def at_home(folder):
    global _cwd
    _cwd = folder


def _run(request):
    fields = []
    file = ''
    flags = 0
    try:
        source, file, env, argv, cwd, flags = loads(request)
        _begin(source, file, env, argv, cwd, flags)
        sources.register(file, source)
        try:
            statements, expression, shown = _compile(source, file)
        except SyntaxError as error:
            errors.complete_syntax_error(error, file)
            raise
        value = _execute(statements, expression)
        if shown:
            field = display.show(value)
            if field is not None:
                fields.append(field)
    except finish.HardExit as error:
        fields = _failure(error.as_system_exit(), file)
        flags &= ~FLAG_ONE_SHOT
    except BaseException as error:
        fields = _failure(error, file)
    value = None
    try:
        more = _end(flags)
        if more:
            fields += more
    except BaseException as error:
        # Only an interrupt gets here: it arrived after the cell's own code had ended.
        fields = _failure(error, file)
    return fields


def run(request):
    fields = None
    while fields is None:
        try:
            fields = _run(request)
        except BaseException as error:
            # An interrupt inside the driver's own handling of an error.
            fields = [(b'N', display.to_bytes(errors.name_of(error))), (b'M', b''), (b'B', b'')]
    if len(fields) == 1:
        tag, data = fields[0]
        answer(tag + len(data).to_bytes(4, 'little') + data)
    else:
        answer(b''.join([part for tag, data in fields for part in (tag, len(data).to_bytes(4, 'little'), data)]))
    return 0, False
