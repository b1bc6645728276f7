# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What has to differ between two instances made from one image, or may have changed since it was made."""
import os
import random
import sys
from posix import listdir, putenv, unsetenv, urandom

WORKSPACE = '/workspace'

_environ = os.environ._data          # bytes to bytes
_modules = sys.modules
_importers = sys.path_importer_cache
_seed = random._inst.seed
_numpy_seed = None
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
    """Every global random generator gets a seed from the host."""
    random._inst.seed()
    if _numpy_seed is not None:
        _numpy_seed()


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


def import_from_folder_of(file):
    folder = file.rpartition('/')[0]
    if folder.startswith(WORKSPACE) and sys.path[0] != folder:
        sys.path.insert(0, folder)


def install(at_start):
    global _baked, _numpy_seed
    _baked = frozenset(name for name in _modules if '.' not in name and name not in at_start
                       and not name.startswith('_'))
    sys.path[:0] = [WORKSPACE]
    if 'numpy' in _modules:
        import numpy.random
        _numpy_seed = numpy.random.seed


def settle():
    """The last touch before the image is taken."""
    os.chdir(WORKSPACE)
    load('cell').at_home(WORKSPACE)
    set_environment({})
    _importers.pop(WORKSPACE, None)
    sys.argv = ['']
