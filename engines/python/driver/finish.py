# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The end of a context: what the interpreter does when it exits, as far as a program can notice.

A stateless run ends after its one cell, a session when its context is deleted. In this order: tasks are cancelled,
exit handlers run, objects with finalizers in __main__ are let go, open files are flushed.
"""
import atexit
import builtins
import io
import logging
import os
import posix
import types
import weakref
from atexit import _ncallbacks as count_handlers, _run_exitfuncs as run_handlers
from gc import collect, get_objects

aio = load('aio')
errors = load('errors')
streams = load('streams')

hard_exit = False    # os._exit was called: no handlers


class HardExit(BaseException):
    """os._exit(code): ends the cell without exit handlers. (The process it would end is the whole sandbox.)"""

    def __init__(self, code=0):
        self.code = code


def _hard_exit(status):
    global hard_exit
    hard_exit = True
    raise HardExit(status)


class Quitter:
    """exit() and quit(). The interpreter's own would close sys.stdin, which the next cell still needs."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f'Use {self._name}() to exit'

    def __call__(self, code=None):
        raise SystemExit(code)


_logging_handlers = 0
_handlers_of_logging = logging._handlerList
_shut_logging_down = logging.shutdown
_WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_PLAIN = frozenset((int, str, float, bool, bytes, type(None), type, types.ModuleType, types.FunctionType,
                    types.BuiltinFunctionType))
_KEPT = (types.ModuleType, types.FunctionType, type)


def _has_finalizer(value):
    return type(value) is type and '__del__' in vars(value)


def _is_plain(values):
    try:
        return all(type(value) in _PLAIN and not _has_finalizer(value) for value in values)
    except Exception:
        return False  # a metaclass that has no hash


def _let_go(main):
    everything = any(map(_has_finalizer, main.values()))
    for name in list(main):
        if type(name) is not str or name.startswith('__'):
            continue
        kind = type(main[name])
        if (everything or hasattr(kind, '__del__')) and not issubclass(kind, _KEPT):
            del main[name]


def _write_what_is_left():
    collect()
    for value in get_objects():
        if issubclass(type(value), _WRITERS):
            try:
                value.flush()
            except Exception:
                pass


def _end_of_main():
    main = load('cell').main
    if _is_plain(list(main.values())):
        return
    try:
        _let_go(main)
    finally:
        _write_what_is_left()


def end_of_context():
    for step in (_run_exit_handlers, _end_of_main):
        try:
            step()
        except BaseException as error:
            # Nobody waits for an answer any more.
            streams.write_error(errors.text_of(error, errors.name_of(error), errors.message_of(error)) + '\n')
            if type(error) is KeyboardInterrupt:
                break  # there is no time left
    streams.flush_replaced()
    return 0, False


def _run_exit_handlers():
    if hard_exit:
        return
    aio.end_of_context()
    if count_handlers():
        run_handlers()
    if len(_handlers_of_logging) != _logging_handlers:
        _shut_logging_down()


def install():
    """Forgets the handlers of the modules that came with the image; theirs have nothing to do in a sandbox."""
    global _logging_handlers
    _hard_exit.__name__ = _hard_exit.__qualname__ = '_exit'
    posix._exit = os._exit = _hard_exit
    builtins.exit, builtins.quit = Quitter('exit'), Quitter('quit')
    atexit._clear()
    # Registered again by the first finalizer that wants to run at exit.
    weakref.finalize._registered_with_atexit = False
    _logging_handlers = len(logging._handlerList)
