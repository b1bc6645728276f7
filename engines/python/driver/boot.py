# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs once, at bake: loads the driver, imports the common modules, warms up, and takes over the turn.

The bake executes this file in a throw-away namespace that holds FILES (the driver's sources by name) and
IMPORTS (modules to import). What the driver needs afterwards it keeps to itself:

- its modules are in no sys.modules, so no cell can import, shadow or delete them;
- they see a private copy of the builtins, so `len = None` or `builtins.print = 5` in a cell does not reach them;
- the guest's entry point keeps its function object for ever, so replacing that function's code makes every later
  turn one direct call into `cell.run`, with the request as its argument: nothing is looked up by name.

After it the host raises the interpreter's stack limits and proves that it can interrupt a loop (interrupt.py).
"""
import builtins
import sys
import types

PRIVATE_BUILTINS = dict(vars(builtins))
_loaded = {}


def load(name):
    module = _loaded.get(name)
    if module is None:
        module = _loaded[name] = types.ModuleType('sandbox.' + name)
        space = vars(module)
        space['__builtins__'] = PRIVATE_BUILTINS
        space['load'] = load
        exec(compile(FILES[name], '<sandbox/' + name + '>', 'exec', dont_inherit=True), space)
    return module


def import_common_modules(names):
    import importlib
    if 'matplotlib.pyplot' in names:
        load('plots').install()
    for name in names:
        importlib.import_module(name)
    if 'numpy' in names:
        load('integers').install()


def take_over_the_turn(run):
    import _reactor
    entry = _reactor.turn

    def turn(source, environ):
        return _run(source)

    entry.__globals__['_run'] = run
    entry.__code__ = turn.__code__
    del sys.modules['_reactor']


def main():
    at_start = frozenset(sys.modules)
    load('library').install()
    load('streams').install()
    load('missing').install()
    load('waits').install()
    load('aio').install()
    load('sources').install()
    import_common_modules(IMPORTS)
    load('missing').adjust_imported()
    load('hashes').install()
    cell = load('cell')
    load('fresh').install(at_start)
    load('finish').install()
    load('warm').warm_up(cell)
    for name in [name for name in sys.modules if name.startswith('sandbox.')]:
        del sys.modules[name]
    take_over_the_turn(cell.run)


main()
