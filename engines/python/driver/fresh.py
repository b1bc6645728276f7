# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What has to differ between two instances made from one image, or may have changed since it was made."""
import gc
import os
import random
import sys
from posix import listdir, putenv, unsetenv
from types import ModuleType

WORKSPACE = '/workspace'
HOME = '/home/user'                  # the same folder
HEADROOM_BYTES = 32 << 20

_environ = os.environ._data          # bytes to bytes
_sys = vars(sys)
_modules = sys.modules
_importers = sys.path_importer_cache
_generators = {}                     # module to (all modules with the same generator, what seeds it)
_root = WORKSPACE                    # the name of the two that the program knows
_at_home = None                      # tells the cells what the working folder is
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
            if type(key) is bytes:
                unsetenv(key)
    for key, value in wanted.items():
        if _environ.get(key) != value:
            _environ[key] = value
            putenv(key, value)


class _Unseeded(ModuleType):
    """A module with a global random generator that nobody has used in this instance.

    Seeding numpy's takes half a millisecond, several times as long as all else in a small run. So it is done when
    one of the module's names is first asked for; then the module is an ordinary one again.
    """

    def __getattribute__(self, name):
        if not name.startswith('__'):
            _seed_now(self)
        return ModuleType.__getattribute__(self, name)


def _seed_now(module):
    modules, seed = _generators[module]
    for module in modules:
        module.__class__ = ModuleType
    seed()


def reseed():
    for module in _generators:
        module.__class__ = _Unseeded


def shadow():
    """A module in /workspace wins over one of the image, as it would when both were still to be imported."""
    try:
        entries = listdir(WORKSPACE)
    except OSError:
        return  # no descriptor is left to read the folder with; then no module can be imported from it either
    for entry in entries:
        name = entry.removesuffix('.py')
        if name in _baked and name not in _shadowed and (name != entry or _is_package(entry)):
            _shadowed.add(name)
            prefix = name + '.'
            for module in [m for m in _modules if type(m) is str and (m == name or m.startswith(prefix))]:
                del _modules[module]


def _is_package(entry):
    try:
        return '__init__.py' in listdir(WORKSPACE + '/' + entry)
    except OSError:
        return False


def begin(env, first, files, home):
    if first:
        after_restore()
        if home and _root != HOME:
            move_home()
    set_environment(env)
    if files and _baked:
        shadow()


def after_restore():
    """The instance goes on from an image or a snapshot: new randomness, no stale idea of what files there are."""
    reseed()
    _importers.pop(_root, None)


def move_home():
    """The program knows the workspace as its home, so what it imports is named by that."""
    global _root
    _root = HOME
    path = _sys.get('path')
    if type(path) is list and WORKSPACE in path:
        path[path.index(WORKSPACE)] = HOME


def place_of_script(file):
    """The program's path in the sandbox, whose folder is where it imports from first."""
    if not file.startswith((WORKSPACE + '/', HOME + '/')):
        file = _root + '/' + file.rpartition('/')[2]
    folder = file.rpartition('/')[0]
    path = _sys.get('path')
    if type(path) is list and path[:1] != [folder]:
        path.insert(0, folder)
    return file


def install(at_start, at_home):
    global _at_home, _baked
    _at_home = at_home
    _baked = frozenset(name for name in _modules if '.' not in name and name not in at_start
                       and not name.startswith('_'))
    sys.path[:0] = [WORKSPACE]
    _generators[random] = (random,), random.seed
    if 'numpy' in _modules:
        import numpy.random
        both = numpy.random, numpy.random.mtrand
        for module in both:
            _generators[module] = both, numpy.random.seed


def leave_room():
    """Grows the heap and frees it again, so that an ordinary run finds room without growing the memory: an instance
    whose memory grew cannot be kept for the next run. Untouched pages of an image are holes and cost nothing."""
    bytearray(HEADROOM_BYTES)


def settle():
    """The last touch before the image is taken."""
    os.chdir(WORKSPACE)
    _at_home(WORKSPACE)
    set_environment({})
    _importers.pop(WORKSPACE, None)
    sys.argv = ['']
    reseed()
    leave_room()
    gc.collect()
    gc.freeze()
    return 0, False
