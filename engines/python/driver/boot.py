# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Runs once, at bake: loads the driver, imports the common modules, warms up, and takes over the turn.

The bake executes this file in a throw-away namespace that holds FILES (the driver's sources by name) and
IMPORTS (modules to import). What the driver needs afterwards it keeps to itself:

- its modules are in no sys.modules, so no cell can import, shadow or delete them;
- they see a private copy of the builtins, so `len = None` or `builtins.print = 5` in a cell does not reach them;
- their calls have no frames (frames.py), so neither tracebacks nor `sys._getframe` lead into them;
- the guest's entry point keeps its function object for ever, so replacing that function's code makes every later
  turn one direct call into `cell.run`, with the request as its argument: nothing is looked up by name.

After it the host raises the interpreter's stack limits and proves that it can interrupt a loop (interrupt.py).
"""
import builtins
import sys
import types

PRIVATE_BUILTINS = dict(vars(builtins))
_loaded = {}
_without_frames = None    # of frames.py, once that is loaded


def load(name):
    module = _loaded.get(name)
    if module is None:
        module = _loaded[name] = types.ModuleType('sandbox.' + name)
        space = vars(module)
        space['__builtins__'] = PRIVATE_BUILTINS
        space['load'] = load
        code = compile(FILES[name], '<sandbox/' + name + '>', 'exec', dont_inherit=True)
        exec(_without_frames(code) if _without_frames else code, space)
    return module


def import_common_modules(names):
    import importlib
    if 'matplotlib.pyplot' in names:
        load('plots').install()
    for name in names:
        importlib.import_module(name)
    if 'numpy' in names:
        load('integers').install()


def make_repair():
    """Programs can reach the driver's variables by way of the functions that it puts into their modules, such as
    os._exit. A driver that no longer works gets them back as they are now."""
    spaces = [vars(module) for module in _loaded.values()]
    for space in spaces:
        del space['load']
    spaces += [PRIVATE_BUILTINS, vars(_loaded['errors'].traceback)]
    kept = tuple((space, tuple(space.items())) for space in spaces)
    function = type(make_repair)
    code = tuple((value, value.__code__, value.__defaults__, value.__kwdefaults__)
                 for _, items in kept for _, value in items if type(value) is function)

    def repair():
        for space, items in kept:
            space.clear()
            space.update(items)
        for value, *parts in code:
            value.__code__, value.__defaults__, value.__kwdefaults__ = parts

    return repair


def take_over_the_turn(run):
    import _reactor
    entry = _reactor.turn

    def turn(source, environ):
        return _run(source)

    entry.__globals__['_run'] = run
    entry.__code__ = _without_frames(turn.__code__)
    del sys.modules['_reactor']


def main():
    global _without_frames
    at_start = frozenset(sys.modules)
    _without_frames = load('frames').without_frames
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
    load('fresh').install(at_start, cell.at_home)
    load('finish').install(cell.main)
    load('warm').warm_up(cell)
    for name in [name for name in sys.modules if name.startswith('sandbox.')]:
        del sys.modules[name]
    turn = cell.make_turn(repair=make_repair())
    take_over_the_turn(turn)


main()
