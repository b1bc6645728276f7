# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""numpy's default integer, 64 bits wide as on other machines.

WebAssembly's address space has 32 bits, so numpy takes 32-bit integers where it is not told otherwise: a sum over
`np.arange(100_000)` would wrap around and say nothing. Here the functions and methods that choose a default are
replaced by ones that choose int64. So is what pandas makes of `int`. They do so for the user's code only: the library's own code was built to find its
index type (`intp`, 32 bits) where it asks for a default, and its compiled parts accept nothing else.

What stays 32 bits wide: `np.int_`, `np.intp` and `np.dtype(int)`; results of ufuncs given Python integers
(`np.add(1, 2)`); and arithmetic on arrays that somebody made int32.
"""
import sys
from sys import _getframe
from types import FunctionType

native = load('native')

_ZIP = sys.path[-1]
_WIDE = 'int64'


def _by_library():
    # The calls of the driver have no frames: the one before this call's own is that of whoever called the wrapper.
    return _getframe(1).f_code.co_filename.startswith(_ZIP)


def _is_default_int(dtype):
    return dtype is int or type(dtype) is str and dtype == 'int'


def _is_plain(value):
    """Whether numpy would choose the type by the Python integers in `value`."""
    while type(value) in (list, tuple) and value:
        value = value[0]
    return not hasattr(value, 'dtype')


def _dressed(wrapper, original):
    for name in ('__name__', '__qualname__', '__doc__', '__module__'):
        try:
            setattr(wrapper, name, getattr(original, name))
        except (AttributeError, TypeError):
            pass
    wrapper.__wrapped__ = original
    return wrapper


def _converting(original):
    """array and its like: a value first, dtype second."""
    def wrapper(*args, **options):
        if _by_library():
            return original(*args, **options)
        dtype = args[1] if len(args) > 1 else options.get('dtype')
        if dtype is not None:
            return original(*_with_wide_dtype(args, options, 1), **options)
        result = original(*args, **options)
        return _widened(result) if args and _is_plain(args[0]) else result
    return _dressed(wrapper, original)


def _with_wide_dtype(args, options, place):
    if len(args) > place and _is_default_int(args[place]):
        return *args[:place], _WIDE, *args[place + 1:]
    if _is_default_int(options.get('dtype')):
        options['dtype'] = _WIDE
    return args


def _widened(result):
    dtype = getattr(result, 'dtype', None)
    if dtype is not None and dtype.kind == 'i' and dtype.itemsize == 4:
        return result.astype(_WIDE)
    return result


def _typed(original, place):
    """zeros and its like: dtype at `place`, floating without one."""
    def wrapper(*args, **options):
        if not _by_library():
            args = _with_wide_dtype(args, options, place)
        return original(*args, **options)
    return _dressed(wrapper, original)


def _arange(original):
    def wrapper(*args, **options):
        if not _by_library():
            if options.get('dtype') is None and len(args) < 4 and all(type(arg) is int for arg in args):
                options['dtype'] = _WIDE
            else:
                args = _with_wide_dtype(args, options, 3)
        return original(*args, **options)
    return _dressed(wrapper, original)


def _full(original):
    def wrapper(*args, **options):
        if not _by_library():
            dtype = args[2] if len(args) > 2 else options.get('dtype')
            fill = args[1] if len(args) > 1 else options.get('fill_value')
            if dtype is None and len(args) < 3 and _is_plain(fill):
                return _widened(original(*args, **options))
            args = _with_wide_dtype(args, options, 2)
        return original(*args, **options)
    return _dressed(wrapper, original)


def _operands(original):
    """dot and its like: plain lists among the arguments become int64 arrays."""
    def wrapper(*args, **options):
        if not _by_library():
            args = tuple(_numpy_array(arg) if type(arg) in (list, tuple) and _is_plain(arg) else arg for arg in args)
        return original(*args, **options)
    return _dressed(wrapper, original)


def _first_operand(original):
    """sort and its like: the same for the first argument only, since the others may be shapes."""
    def wrapper(*args, **options):
        if args and type(args[0]) in (list, tuple) and not _by_library() and _is_plain(args[0]):
            args = _numpy_array(args[0]), *args[1:]
        return original(*args, **options)
    return _dressed(wrapper, original)


def _where(original):
    def wrapper(*args, **options):
        result = original(*args, **options)
        if _by_library():
            return result
        if len(args) == 3:
            return _widened(result) if _is_plain(args[1]) and _is_plain(args[2]) else result
        return tuple(map(_widened, result))
    return _dressed(wrapper, original)


def _unique(original):
    """Of its results the first are the values, in their own type; the others are positions and counts."""
    def wrapper(*args, **options):
        result = original(*args, **options)
        if _by_library() or not args:
            return result
        if type(result) is not tuple:
            return _widened(result) if _is_plain(args[0]) else result
        values = _widened(result[0]) if _is_plain(args[0]) else result[0]
        return values, *map(_widened, result[1:])
    return _dressed(wrapper, original)


def _numpy_array(value):
    return _widened(_array(value))


def _reduction(original):
    """sum, prod, cumsum, cumprod: small integers are added up in int64."""
    def wrapper(array, *args, **options):
        if not _by_library():
            if len(args) < 2 and options.get('dtype') is None and options.get('out') is None:
                if type(array) in (list, tuple):
                    array = _numpy_array(array) if _is_plain(array) else _array(array)
                dtype = getattr(array, 'dtype', None)
                if dtype is not None and getattr(dtype, 'kind', '') in 'bi' and dtype.itemsize < 8:
                    options['dtype'] = _WIDE
                elif dtype is not None and getattr(dtype, 'kind', '') == 'u' and dtype.itemsize < 8:
                    options['dtype'] = 'u' + _WIDE
            else:
                args = _with_wide_dtype(args, options, 1)
        return original(array, *args, **options)
    return _dressed(wrapper, original)


def _astype(original):
    def wrapper(array, *args, **options):
        if not _by_library():
            args = _with_wide_dtype(args, options, 0)
        return original(array, *args, **options)
    return _dressed(wrapper, original)


def _positions(original):
    """argsort, randint and their like: positions and drawn integers are int64."""
    def wrapper(*args, **options):
        result = original(*args, **options)
        if _by_library() or options.get('out') is not None or options.get('dtype') is not None:
            return result
        return tuple(map(_widened, result)) if type(result) is tuple else _widened(result)
    return _dressed(wrapper, original)


def _randint(original):
    def wrapper(low, high=None, size=None, dtype=int):
        if not _is_default_int(dtype) or _by_library():
            return original(low, high, size, dtype)
        drawn = original(low, high, size, _WIDE)
        return int(drawn) if size is None and not hasattr(low, 'shape') and not hasattr(high, 'shape') else drawn
    return _dressed(wrapper, original)


def _drawn(original):
    """choice and permutation: of a number, not of somebody's array."""
    def wrapper(*args, **options):
        result = original(*args, **options)
        return result if _by_library() or not args or not _is_plain(args[0]) else _widened(result)
    return _dressed(wrapper, original)


def install():
    global _array
    import numpy
    import numpy.random
    _array = numpy.array
    _replace(vars(numpy), {
        _converting: 'array asarray asanyarray ascontiguousarray asfortranarray require',
        _arange: 'arange', _full: 'full',
        _operands: 'dot inner outer vdot kron cross append',
        _first_operand: 'concatenate vstack hstack stack column_stack atleast_1d atleast_2d atleast_3d tile repeat '
                        'roll flip sort ravel reshape broadcast_to diff trace clip',
        _where: 'where', _unique: 'unique',
        _reduction: 'sum prod cumsum cumprod nansum nanprod',
        _positions: 'argsort argmax argmin nonzero flatnonzero argwhere searchsorted bincount digitize '
                    'histogram count_nonzero indices tril_indices triu_indices',
    })
    for names, place in (('zeros ones empty', 1), ('zeros_like ones_like empty_like fromiter frombuffer', 1),
                         ('full_like', 2), ('eye', 3), ('identity', 1), ('linspace', 5), ('fromstring', 1)):
        _replace(vars(numpy), {lambda original, place=place: _typed(original, place): names})
    _replace(vars(numpy.random), {_randint: 'randint', _drawn: 'choice permutation'})
    _replace(native.methods_of(numpy.ndarray), {_astype: 'astype', _reduction: 'sum prod cumsum cumprod',
                                                _positions: 'argsort argmax argmin nonzero searchsorted'})
    native.forget_lookups()
    # A repr names the type unless it is a default one.
    from numpy._core import arrayprint
    arrayprint._typelessdata[:] = [numpy.int64 if kind is numpy.int_ else kind for kind in arrayprint._typelessdata]
    if 'pandas' in sys.modules:
        from pandas.core.dtypes import common
        _widen_pandas(common)


def _widen_pandas(common):
    """pandas.api.types.pandas_dtype, through which every dtype goes that somebody names. Its callers imported the
    function, so it gets new code and keeps its identity."""
    original = common.pandas_dtype
    common._pandas_dtype_as_named = FunctionType(original.__code__, vars(common))

    def pandas_dtype(dtype):
        if dtype is int or type(dtype) is str and dtype == 'int':
            dtype = 'int64'
        return _pandas_dtype_as_named(dtype)

    original.__code__ = pandas_dtype.__code__


def _replace(space, makers):
    for make, names in makers.items():
        for name in names.split():
            space[name] = make(space[name])
