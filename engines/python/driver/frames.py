# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Code whose calls have no frames.

The interpreter leaves out of tracebacks, and of what `sys._getframe` and `f_back` find, the calls that have not
reached their code's first RESUME instruction. Code that has its only RESUME behind its end never reaches it. Such
calls are not traced or profiled either, and no interrupt is raised as they begin.

Yet where an exception passes, a tracer that is set is called with the innermost frame there is. So there has to be
one: that of `bottom`, in which the program's code runs.
"""
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from opcode import _inline_cache_entries, opmap

_RESUME, _NOP = opmap['RESUME'], opmap['NOP']
_UNIT = 2     # bytes of an instruction
_SIZE = _UNIT * (1 + _inline_cache_entries.get('RESUME', 0))
_RESUMED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR    # their frames are always shown

# The name of the outermost frame of programs that are started by `python -m`.
_BOTTOM = """
def _run_code(take):
    return take()()
"""


def bottom(main):
    """A function that calls the one it takes. Its frame leads to nothing but the program's own variables."""
    space = {}
    exec(compile(_BOTTOM, '<frozen runpy>', 'exec', dont_inherit=True), space)
    return type(bottom)(space['_run_code'].__code__, main)


def without_frames(code):
    """The same code, and that of the functions and classes in it."""
    kind = type(code)
    code = code.replace(co_consts=tuple(without_frames(value) if type(value) is kind else value
                                        for value in code.co_consts))
    if code.co_flags & _RESUMED:
        return code
    text = code.co_code
    at = next(at for at in range(0, len(text), _UNIT) if text[at] == _RESUME)
    resume = text[at:at + _SIZE]
    nothing = bytes((_NOP, 0)) * (_SIZE // _UNIT)
    return code.replace(co_code=text[:at] + nothing + text[at + _SIZE:] + resume)
