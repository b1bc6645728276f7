# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The end of a context: what the interpreter does when it exits, as far as a program can notice.

A stateless run ends after its one cell, a session when its context is deleted. In this order: tasks are cancelled,
exit handlers run, objects with finalizers in __main__ are let go, open files are flushed.
"""
import atexit
import builtins
import gc
import io
import logging
import os
import posix
import types
import weakref

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
_WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_PLAIN = frozenset((int, str, float, bool, bytes, type(None), type, types.ModuleType, types.FunctionType,
                    types.BuiltinFunctionType))


def _let_go():
    main = load('cell').main
    values = list(main.values())
    if all(type(value) in _PLAIN and not (type(value) is type and '__del__' in vars(value)) for value in values):
        return
    everything = any(type(value) is type and '__del__' in vars(value) for value in values)
    del values
    for name in list(main):
        value = main[name]
        if not name.startswith('__') and (everything or hasattr(type(value), '__del__')) and not isinstance(
                value, (types.ModuleType, types.FunctionType, type)):
            del main[name]
    value = None
    gc.collect()
    for value in gc.get_objects():
        if isinstance(value, _WRITERS):
            try:
                value.flush()
            except (OSError, ValueError):
                pass


def end_of_context():
    try:
        _run_exit_handlers()
        _let_go()
    except BaseException as error:
        # Nobody waits for an answer any more.
        streams.write_error(errors.text_of(error, errors.name_of(error), errors.message_of(error)) + '\n')
    streams.flush_replaced()
    return 0, False


def _run_exit_handlers():
    if hard_exit:
        return
    aio.end_of_context()
    if atexit._ncallbacks():
        atexit._run_exitfuncs()
    if len(logging._handlerList) != _logging_handlers:
        logging.shutdown()


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
