# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for another thread, where there is none.

A lock that is held stays held: nobody is there to release it. The interpreter would end the whole instance on
such a wait. Here a wait with a time-out sleeps until then, and a wait without one is an error at once.
"""
import threading
from time import sleep

native = load('native')

DEADLOCK = 'this wait can never end: there is no other thread that could release it'


def _wait_in_vain(timeout):
    if timeout is None or timeout < 0:
        raise RuntimeError(DEADLOCK)
    sleep(timeout)


def _lock_methods(lock):
    take, is_held = lock.acquire, lock.locked

    def acquire(self, blocking=True, timeout=-1):
        """Lock the lock; whether it was free."""
        if is_held(self) and blocking and timeout != 0:
            _wait_in_vain(timeout)
            return False
        return take(self, False)

    def __enter__(self):
        if is_held(self):
            _wait_in_vain(None)
        return take(self, False)

    return {'acquire': acquire, 'acquire_lock': acquire, '__enter__': __enter__}


def _queue_methods(queue, empty):
    get_now = queue.get_nowait

    def get(self, block=True, timeout=None):
        """Remove and return an item from the queue."""
        try:
            return get_now(self)
        except empty:
            if not block:
                raise
            _wait_in_vain(timeout)
            raise

    return {'get': get}


def _wait_on_condition(self, timeout=None):
    """Wait until notified or until a timeout occurs: here nobody can notify."""
    if not self._is_owned():
        raise RuntimeError('cannot wait on un-acquired lock')
    _wait_in_vain(timeout)
    return False


def _replace_methods(kind, methods):
    for name, method in methods.items():
        method.__qualname__ = f'{kind.__qualname__}.{name}'
    native.methods_of(kind).update(methods)


def install():
    import _queue
    import _thread
    _replace_methods(_thread.lock, _lock_methods(_thread.lock))
    _replace_methods(_queue.SimpleQueue, _queue_methods(_queue.SimpleQueue, _queue.Empty))
    threading.Condition.wait = _wait_on_condition
    native.forget_lookups()
