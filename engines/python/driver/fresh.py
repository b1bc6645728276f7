# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What has to differ between two instances made from one image, or may have changed since it was made."""
import gc
import os
import random
import sys
from importlib.machinery import ModuleSpec
from posix import listdir, putenv, unsetenv, urandom

WORKSPACE = '/workspace'

_environ = os.environ._data          # bytes to bytes
_modules = sys.modules
_importers = sys.path_importer_cache
_random_state = random._inst
_seed = random._inst.__class__.__base__.seed   # the C method: the Python one asks for 2.5 KB of entropy
_numpy = None
_baked = frozenset()                 # modules of the image that a file in /workspace may stand for
_shadowed = set()


def set_environment(env):
    """os.environ and the C library's environment become exactly `env`."""
    wanted = {key.encode('utf-8', 'surrogateescape'): value.encode('utf-8', 'surrogateescape')
              for key, value in env.items()} if env else {}
    if _environ == wanted:
        return
    for key in list(_environ):
        if key not in wanted:
            del _environ[key]
            unsetenv(key)
    for key, value in wanted.items():
        if _environ.get(key) != value:
            _environ[key] = value
            putenv(key, value)


def reseed():
    """The random module's generator gets a seed from the host; numpy's when it is first asked for."""
    _seed(_random_state, int.from_bytes(urandom(32)))
    _random_state.gauss_next = None
    NumpyRandomFinder.arm()


class NumpyRandomFinder:
    """Seeds numpy's global generator when `numpy.random` is first used in this instance.

    Seeding takes half a millisecond, four times as long as everything else in a small run. So the loaded module
    is taken out of sys.modules and out of its package, and whoever wants it comes through here.
    """
    _names = ('numpy.random', 'numpy.random.mtrand')
    _kept = {}
    _armed = False

    @classmethod
    def arm(cls):
        if cls._armed or _numpy is None:
            return
        for name in cls._names:
            module = _modules.pop(name, None)
            if module is not None:
                cls._kept[name] = module, module.__spec__
        _numpy.__dict__.pop('random', None)
        sys.meta_path.insert(0, cls)
        cls._armed = True

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls._names:
            return None
        cls._armed = False
        try:
            sys.meta_path.remove(cls)
        except ValueError:
            pass  # a cell emptied the list
        for kept, (module, spec) in cls._kept.items():
            _modules[kept] = module
        _numpy.random = cls._kept['numpy.random'][0]
        cls._kept['numpy.random'][0].seed()
        return ModuleSpec(name, _Loaded(*cls._kept[name]))


class _Loaded:
    """A loader for a module that is loaded already."""

    def __init__(self, module, spec):
        self._module, self._spec = module, spec

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec
        module.__loader__ = self._spec.loader


def shadow():
    """A module in /workspace wins over one of the image, as it would when both were still to be imported."""
    for entry in listdir(WORKSPACE):
        name = entry.removesuffix('.py')
        if name in _baked and name not in _shadowed and (name != entry or _is_package(entry)):
            _shadowed.add(name)
            prefix = name + '.'
            for module in [m for m in _modules if m == name or m.startswith(prefix)]:
                del _modules[module]


def _is_package(entry):
    try:
        return '__init__.py' in listdir(WORKSPACE + '/' + entry)
    except OSError:
        return False


def begin(env, first, files):
    if first:
        after_restore()
    set_environment(env)
    if files and _baked:
        shadow()


def after_restore():
    """The instance goes on from an image or a snapshot: new randomness, no stale idea of what files there are."""
    reseed()
    _importers.pop(WORKSPACE, None)


def place_of_script(file):
    """The program's path in the sandbox, whose folder is where it imports from first."""
    if not file.startswith(WORKSPACE + '/'):
        file = WORKSPACE + '/' + file.rpartition('/')[2]
    folder = file.rpartition('/')[0]
    if sys.path[0] != folder:
        sys.path.insert(0, folder)
    return file


def install(at_start):
    global _baked, _numpy
    _baked = frozenset(name for name in _modules if '.' not in name and name not in at_start
                       and not name.startswith('_'))
    sys.path[:0] = [WORKSPACE]
    if 'numpy' in _modules:
        import numpy.random
        _numpy = numpy


def settle():
    """The last touch before the image is taken."""
    os.chdir(WORKSPACE)
    load('cell').at_home(WORKSPACE)
    set_environment({})
    _importers.pop(WORKSPACE, None)
    sys.argv = ['']
    NumpyRandomFinder.arm()
    gc.collect()
    gc.freeze()
    return 0, False
