# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The end of a context: what the interpreter does when it exits, as far as a program can notice.

That is after the one cell of a stateless run, or when a session's owner asks for it. In this order: tasks are
cancelled, exit handlers run, objects with finalizers in __main__ are let go, open files are flushed.
"""
import atexit
import builtins
import io
import logging
import os
import posix
import signal
import types
import weakref
from atexit import _ncallbacks as count_handlers, _run_exitfuncs as run_handlers
from gc import collect, get_objects
from operator import index
from signal import getsignal, raise_signal as _raise_natively

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


_SIGNALLED = 128    # what a shell adds to the signal's number
_NEVER_HANDLED = (signal.SIGKILL, signal.SIGSTOP)
_IGNORED = (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
_DEFAULT = signal.SIG_DFL


def _raise_signal(signalnum, /):
    """Send a signal to the executing process."""
    number = index(signalnum)
    if number in _NEVER_HANDLED or number not in _IGNORED and number > 0 and getsignal(number) is _DEFAULT:
        _hard_exit(_SIGNALLED + number)
    _raise_natively(number)


def _kill(pid, signal, /):
    """Send a signal to the only process there is."""
    if pid not in (0, -1, posix.getpid()):
        raise ProcessLookupError(71, 'No such process')
    if signal != 0:
        _raise_signal(signal)


def _abort():
    """Abort the interpreter immediately."""
    _hard_exit(_SIGNALLED + _ABORT)


_ABORT = int(signal.SIGABRT)


class Quitter:
    """exit() and quit(). The interpreter's own would close sys.stdin, which the next cell still needs."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f'Use {self._name}() to exit'

    def __call__(self, code=None):
        raise SystemExit(code)


_main = {}
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
    if _is_plain(list(_main.values())):
        return
    try:
        _let_go(_main)
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


def install(main):
    """Forgets the handlers of the modules that came with the image; theirs have nothing to do in a sandbox."""
    global _logging_handlers, _main
    _main = main
    for function, name in (_hard_exit, '_exit'), (_kill, 'kill'), (_abort, 'abort'):
        function.__name__ = function.__qualname__ = name
        setattr(posix, name, function)
        setattr(os, name, function)
    _raise_signal.__name__ = _raise_signal.__qualname__ = 'raise_signal'
    signal.raise_signal = _raise_signal
    builtins.exit, builtins.quit = Quitter('exit'), Quitter('quit')
    atexit._clear()
    # Registered again by the first finalizer that wants to run at exit.
    weakref.finalize._registered_with_atexit = False
    _logging_handlers = len(logging._handlerList)
