# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""One cell: request in, reply out.

Request: (source, file, env, argv, cwd, flags) in marshal's format
  source  bytes      the code, in any encoding its coding line names, UTF-8 without one
  file    str        its name in tracebacks
  env     dict       str to str, the whole environment
  argv    list       for sys.argv, or None to leave it as it is
  cwd     str        the folder to start in, or None to stay
  flags   int        FLAG_*
A request of one byte is one of COMMANDS instead.

Reply, through the host's door: a line of JSON (engine/language.h has its format), then the value.
"""
import builtins
import sys
import types
from _ast import Expr, Expression, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from builtins import compile, eval
from marshal import loads
from posix import chdir, getcwd
from sys import gettrace, settrace

from _host import call as answer
from json.encoder import encode_basestring as quote

aio = load('aio')
display = load('display')
errors = load('errors')
finish = load('finish')
frames = load('frames')
fresh = load('fresh')
hooks = load('hooks')
interrupt = load('interrupt')
reserve = load('reserve')
sources = load('sources')
streams = load('streams')

FLAG_FRESH = 1      # the first cell after the image or a snapshot
FLAG_FILES = 2      # /workspace is not empty: its modules may shadow those of the image
FLAG_SCRIPT = 4     # the code is a program in a file: set __file__ and the import path
FLAG_HOME = 8       # the program knows /workspace as /home/user

_PARSE = PyCF_ONLY_AST
_AWAIT = PyCF_ALLOW_TOP_LEVEL_AWAIT
_FUTURES = 0x1FE0000   # the compiler flags of `from __future__ import …`
_COROUTINE = 0x80      # code that has to be awaited

main_module = types.ModuleType('__main__')
main = vars(main_module)
sys_vars = vars(sys)
main['__builtins__'] = builtins
_at_bottom = frames.bottom(main)
sys.modules['__main__'] = main_module
_STATEMENTS = (b' ', b'\t', b'\f', b'import ', b'from ', b'raise ', b'del ', b'for ', b'if ', b'while ', b'with ',
               b'def ', b'class ', b'try', b'async ', b'assert ', b'return', b'global ', b'pass')
_futures = 0
_cwd = '/'
_cwd_json = b'"/"'


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
    flags = _AWAIT | _futures
    if _is_one_line(source):
        # Without a syntax tree this takes a third of the time.
        try:
            return None, compile(source, file, 'eval', flags, True), True
        except SyntaxError:
            pass
    try:
        return _compile_tree(source, file, flags)
    except SyntaxError:
        raise
    except Exception:
        # The program may have changed the classes of the tree. Without them there is no telling the last expression.
        return compile(source, file, 'exec', flags, True), None, False


def _compile_tree(source, file, flags):
    global _futures
    tree = compile(source, file, 'exec', flags | _PARSE, True)
    body = tree.body
    last = body[-1] if body else None
    shown = True
    if type(last) is Expr:
        body.pop()
        shown = b';' not in source or not _semicolon_after(last, sources.lines_of(file))
        last = Expression(last.value)
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


def _evaluate(code):
    if '__builtins__' not in main:
        main['__builtins__'] = builtins  # else eval would put the driver's own there
    hooks.give_back()
    try:
        value = eval(code, main)
        return aio.run(value) if code.co_flags & _COROUTINE else value
    finally:
        # Not by a function of ours: the tracer would be told of its call.
        tracer = gettrace()
        if tracer is not None:
            settrace(None)
        hooks.lay_aside(tracer)


def _execute(statements, expression):
    if statements is not None:
        _evaluate(statements)
    return None if expression is None else _evaluate(expression)


def _exit_code(code):
    """What the operating system would see of `raise SystemExit(code)`."""
    if code is None:
        return 0
    if issubclass(type(code), int):
        code = int.__index__(code)
        return code & 0xFF if -1 << 63 <= code < 1 << 63 else 0xFF
    try:
        streams.write_error(str(code) + '\n')
    except BaseException:
        pass
    return 1


def _failure(error, file):
    """The reply's head for an error."""
    try:
        return _failure_in_full(error, file)
    except BaseException:
        # What the user's code can reach of the library has been changed so that nothing more can be told.
        return b'{"error":{"name":%s,"message":""},"cwd":%s}' % (
            display.to_bytes(quote(errors.name_of(error))), _cwd_json)


def _failure_in_full(error, file):
    if issubclass(type(error), (finish.HardExit, SystemExit)):
        return b'{"exit":%d,"cwd":%s}' % (_exit_code(errors.exit_code_of(error)), _cwd_json)
    name = errors.name_of(error)
    message = errors.message_of(error)
    lines = errors.short_lines(errors.text_of(error, name, message))
    line = errors.line_of(error, file)
    head = f'{{"error":{{"name":{quote(name)},"message":{quote(message)},"traceback":[{",".join(map(quote, lines))}]'
    if line is not None:
        head += f',"lineNumber":{line}'
    return b'%s},"cwd":%s}' % (display.to_bytes(head), _cwd_json)


def _begin(file, env, argv, cwd, flags):
    reserve.keep()
    fresh.begin(env, flags & FLAG_FRESH, flags & FLAG_FILES, flags & FLAG_HOME)
    streams.renew_stdin()
    if argv is not None:
        sys_vars['argv'] = argv
    if cwd is not None and cwd != _cwd:
        try:
            chdir(cwd)
            at_home(cwd)
        except OSError:
            pass  # the folder is gone: stay where we are
    if flags & FLAG_SCRIPT:
        main['__file__'] = fresh.place_of_script(file)
    main.pop('__warningregistry__', None)  # a warning in this cell is not the one of an earlier cell's line


def _end():
    aio.end_of_cell()
    streams.flush_replaced()
    now = getcwd()
    if now != _cwd:
        at_home(now)


def at_home(folder):
    """The working folder, as it is from now on."""
    global _cwd, _cwd_json
    _cwd = folder
    _cwd_json = display.to_bytes(quote(folder))


STOPPING = b'.'


def _run(request):
    file = ''
    field = failure = None
    try:
        source, file, env, argv, cwd, flags = loads(request)
        _begin(file, env, argv, cwd, flags)
        sources.register(file, source)
        try:
            statements, expression, shown = _compile(source, file)
        except SyntaxError as error:
            errors.complete_syntax_error(error, file)
            raise
        value = _at_bottom([lambda: _execute(statements, expression)].pop)
        if shown:
            field = display.show(value)
        value = None
        _end()
    except BaseException as error:
        value = None
        if type(error) is MemoryError:
            reserve.release()
        if type(error) is KeyboardInterrupt:
            answer(STOPPING)  # so that the host does not interrupt what follows
            aio.after_interrupt()
        _end_after(error)
        failure = _failure(error, file)
    hooks.lay_aside(gettrace())  # again: code of the user's may have run since, to show a value or in a task
    if failure is not None:
        answer(failure)
    elif field is None:
        answer(b'{"cwd":%s}' % _cwd_json)
    else:
        answer(b'{"value":"%s","cwd":%s}\n%s' % (field[0], _cwd_json, field[1]))


def _end_after(error):
    try:
        _end()
    except BaseException as late:
        # The cell's own error is the one that counts.
        if type(late) is KeyboardInterrupt:
            aio.after_interrupt()


def _release_reserve():
    reserve.release()
    return 0, False


FINISH = b'f'
COMMANDS = {FINISH: finish.end_of_context, b'i': interrupt.prove, b's': fresh.settle, b'm': _release_reserve}
_CUT_SHORT = b'{"error":{"name":"%s","message":"%s"},"cwd":%s}'
_DAMAGED = (b'{"error":{"name":"SystemError","message":"the program has changed the code of the sandbox that runs it; '
            b'that code is as it was again"}}')


def run(request):
    if len(request) < 2:
        return COMMANDS[request]()
    try:
        _run(request)
    except KeyboardInterrupt:
        # An interrupt in the driver's own code, after the cell's had ended.
        settrace(None)
        aio.after_interrupt()
        answer(_CUT_SHORT % (b'KeyboardInterrupt', b'', _cwd_json))
    except MemoryError:
        reserve.release()
        answer(_CUT_SHORT % (b'MemoryError', b'no memory is left to show how the cell ended', _cwd_json))
    return 0, False


def make_turn(repair):
    """The function that every turn of the host calls. Nothing that it needs goes by a name in a module."""
    work, say, damaged = run, answer, _DAMAGED

    def turn(request):
        try:
            return work(request)
        except:  # no name: the builtins may be gone
            repair()
            say(damaged)
            return 0, False

    return turn
