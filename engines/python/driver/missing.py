# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What a sandbox cannot have, said in a sentence where it is asked for."""
import os
import sys

_NO_NATIVE = 'a WebAssembly sandbox cannot load or call native libraries'
_NO_NETWORK = 'sandboxes have no network'
_NO_PROCESSES = 'a sandbox is one process with one thread'
_NO_TERMINAL = 'a sandbox has no terminal'
_NO_USERS = 'a sandbox has no user accounts'

WHY = {
    '_ctypes': _NO_NATIVE,
    '_tkinter': 'a sandbox has no display',
    'tkinter': 'a sandbox has no display',
    'turtledemo': 'a sandbox has no display',
    '_ssl': _NO_NETWORK,
    '_multiprocessing': _NO_PROCESSES,
    '_posixshmem': _NO_PROCESSES,
    '_posixsubprocess': _NO_PROCESSES,
    '_interpreters': _NO_PROCESSES,
    'fcntl': 'a sandbox has no file locks: no other process can see its files',
    'resource': 'the limits of a sandbox are set from outside',
    'pwd': _NO_USERS,
    'grp': _NO_USERS,
    'termios': _NO_TERMINAL,
    '_curses': _NO_TERMINAL,
    'readline': _NO_TERMINAL,
    'syslog': 'a sandbox has no system log',
    '_gdbm': 'this build has no gdbm; use sqlite3',
    '_dbm': 'this build has no ndbm; use sqlite3',
    'pip': 'packages cannot be installed in a sandbox',
    'ensurepip': 'packages cannot be installed in a sandbox',
    'venv': 'packages cannot be installed in a sandbox',
}
NO_THREADS = ("can't start new thread: " + _NO_PROCESSES + '; call the function directly, or use asyncio')


class WhyNotFinder:
    """The last finder: whatever reaches it does not exist."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        why = WHY.get(name)
        if why is not None:
            raise ModuleNotFoundError(f'No module named {name!r}: {why}', name=name)
        return None


def _no_thread(*arguments, **options):
    raise RuntimeError(NO_THREADS)


def _no_system(command):
    raise OSError(58, 'sandboxes cannot start processes')


def _no_address(*arguments, **options):
    import socket
    raise socket.gaierror(socket.EAI_FAIL if hasattr(socket, 'EAI_FAIL') else -4, _NO_NETWORK)


def _no_start(self):
    raise OSError(58, 'sandboxes cannot start processes')


def _no_pool(self, *arguments, **options):
    raise OSError(58, 'sandboxes cannot start processes')


def adjust_imported():
    """Modules that would fail in a roundabout way, or complain, say it plainly or do without."""
    modules = sys.modules
    if 'socket' in modules:
        for name in ('getaddrinfo', 'gethostbyname', 'gethostbyname_ex', 'gethostbyaddr', 'getnameinfo'):
            setattr(modules['socket'], name, _no_address)
    if 'multiprocessing' in modules:
        from multiprocessing import context, process
        process.BaseProcess.start = _no_start
        context.BaseContext.Pool = context.BaseContext.ThreadPool = _no_pool
        modules['multiprocessing'].Pool = _no_pool.__get__(modules['multiprocessing'])
    if 'tqdm' in modules:
        modules['tqdm'].tqdm.monitor_interval = 0  # it would start a thread to watch the bar


def install():
    import _thread
    import threading
    sys.meta_path.append(WhyNotFinder)
    # As Python says it where no program file is known; platform.platform() would fail to read the one named before.
    sys.executable = sys._base_executable = ''
    _thread.start_new_thread = _thread.start_new = _thread.start_joinable_thread = _no_thread
    threading._start_joinable_thread = threading._start_new_thread = _no_thread
    # Not os.fork: its absence is how the standard library knows that there is none.
    _no_system.__name__ = _no_system.__qualname__ = 'system'
    os.system = _no_system
