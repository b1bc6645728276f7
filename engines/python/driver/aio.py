# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""An event loop for one thread without sockets.

It waits by sleeping until its next timer. Nothing from outside can wake it, so a loop without a timer and without
ready callbacks would wait for ever: that is an error at once.

Cells share one loop. A cell that awaits runs it until the cell is done; tasks it started before go on meanwhile.
Between cells tasks rest. At the end of each cell the loop makes one pass, without waiting, so that a task which was
only just created gets going.
"""
import asyncio
from asyncio import base_events, events, tasks
from asyncio.events import _get_running_loop, _set_running_loop
from asyncio.tasks import all_tasks, gather
from contextvars import copy_context
from sys import set_asyncgen_hooks
from time import sleep

DEADLOCK = 'this await can never end: the event loop has no timer and no task left that could wake it'


class _Timer:
    """Stands where other loops have a selector."""

    def select(self, timeout):
        if timeout is None:
            raise RuntimeError(DEADLOCK)
        if timeout > 0:
            sleep(timeout)
        return ()

    def close(self):
        pass

    def get_map(self):
        return {}


class EventLoop(base_events.BaseEventLoop):
    def __init__(self, selector=None):
        super().__init__()
        self._selector = _Timer()

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass  # the one thread that could wait is the one that is calling

    def call_soon_threadsafe(self, callback, *args, context=None):
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor, func, *args):
        """Without threads the function runs now; the future is done when this returns."""
        if executor is not None:
            return super().run_in_executor(executor, func, *args)
        self._check_closed()
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except StopIteration as error:
            future.set_exception(RuntimeError(f'the function raised {error!r}'))
        except Exception as error:
            future.set_exception(error)
        return future


class Policy(events._BaseDefaultEventLoopPolicy):
    """New loops are ours; outside of a running loop the current one is the cells' loop."""
    _loop_factory = EventLoop

    def get_event_loop(self):
        return self._local._loop or cell_loop()


_loop = None
_used = False


def cell_loop():
    global _loop, _used
    _used = True
    if _loop is None or _loop._closed:
        _loop = EventLoop()
    return _loop


def _create_task(coro, **options):
    """Schedule the execution of a coroutine object in a task; return the task.

    Outside of a running loop the task belongs to the cells' loop and runs when a cell awaits.
    """
    return (_get_running_loop() or cell_loop()).create_task(coro, **options)


def run(coroutine):
    """Runs a cell's coroutine to its end on the cells' loop."""
    loop = cell_loop()
    context = copy_context()
    task = loop.create_task(coroutine, name='cell', context=context)
    try:
        value = loop.run_until_complete(task)
    except KeyboardInterrupt:
        after_interrupt()
        _give_up(loop, task)
        raise
    finally:
        _keep_context(context)
    return value


def after_interrupt():
    """An interrupt can hit a loop while it starts or ends, and leave it marked as running. None is."""
    _set_running_loop(None)
    if _loop is not None and _loop._thread_id is not None:
        _loop._thread_id = None
        _loop._stopping = False
        set_asyncgen_hooks(None, None)


def _give_up(loop, task):
    """After an interrupt: lets the cell's coroutine see its cancellation, but not hold us up."""
    for _ in range(8):
        if task.done():
            break
        task.cancel()
        _one_pass(loop)
    if task.done() and not task.cancelled():
        task.exception()  # seen: no complaint about an exception that was never retrieved


def _keep_context(context):
    # A task runs in a copy of the context, but a cell's changes are for the cells after it.
    for variable, value in context.items():
        try:
            if variable.get() is value:
                continue
        except LookupError:
            pass
        variable.set(value)


def _one_pass(loop):
    loop.call_soon(loop.stop)
    loop.run_forever()


def end_of_cell():
    global _loop, _used
    if _used and not _loop._closed and (_loop._ready or _loop._scheduled):
        try:
            _one_pass(_loop)
        except Exception:
            # Not the fault of a task: the loop itself has been changed. It would fail again after every cell.
            _loop = None
            _used = False
            raise


def end_of_context():
    """Cancels what still runs, as asyncio.run does at its end."""
    if not _used or _loop._closed:
        return
    pending = all_tasks(_loop)
    if pending:
        for task in pending:
            task.cancel()
        _loop.run_until_complete(gather(*pending, return_exceptions=True))
    _loop.run_until_complete(_loop.shutdown_asyncgens())


def rest():
    """The state at bake: a loop is ready, and not in use."""
    global _used
    cell_loop()
    _used = False


def install():
    asyncio.SelectorEventLoop = asyncio.EventLoop = asyncio.DefaultEventLoopPolicy = None
    asyncio.SelectorEventLoop = asyncio.EventLoop = EventLoop
    asyncio.DefaultEventLoopPolicy = Policy
    events._event_loop_policy = Policy()
    _create_task.__name__ = _create_task.__qualname__ = 'create_task'
    asyncio.create_task = tasks.create_task = _create_task
