# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""What a program sets for the whole interpreter and means for its own code: tracers, profilers, monitoring tools, a
low recursion limit. They rest while the driver works, and are there again when the next code of the user begins."""
from sys import getprofile, getrecursionlimit, monitoring, setprofile, setrecursionlimit, settrace

get_tool, get_events, set_events = monitoring.get_tool, monitoring.get_events, monitoring.set_events

_TOOLS = range(6)
_DEPTH = 300     # of calls: the driver needs that much, most of it to show an error
_resting = None


def lay_aside(tracer):
    """`tracer`: the one that was set."""
    global _resting
    if tracer is not None:
        settrace(None)
    profiler = getprofile()
    if profiler is not None:
        setprofile(None)
    tools = None
    for tool in _TOOLS:
        if get_tool(tool) is not None:
            events = get_events(tool)
            if events:
                set_events(tool, 0)
                tools = *(tools or ()), (tool, events)
    limit = getrecursionlimit()
    if limit < _DEPTH:
        setrecursionlimit(1000)
    else:
        limit = None
    if tracer is not None or profiler is not None or tools is not None or limit is not None:
        _resting = tracer, profiler, tools, limit


def give_back():
    global _resting
    if _resting is None:
        return
    tracer, profiler, tools, limit = _resting
    _resting = None
    if limit is not None:
        try:
            setrecursionlimit(limit)
        except RecursionError:
            pass  # less than the calls that are in progress now: as good as none
    for tool, events in tools or ():
        if get_tool(tool) is not None:
            set_events(tool, events)
    if profiler is not None:
        setprofile(profiler)
    if tracer is not None:
        settrace(tracer)
