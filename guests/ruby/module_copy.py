# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the second copy of a linked module: code, tables and types as in the first, so that a function's number and its
place in the table are the same; the memory and the stack pointer are the first's, and so is the data in it."""

IMPORT, MEMORY, GLOBAL, EXPORT, START, DATA, DATA_COUNT = 2, 5, 6, 7, 8, 11, 12
I32, MUTABLE, I32_CONST, END = 0x7F, 1, 0x41, 0x0B
FUNCTION, MEMORY_KIND, GLOBAL_KIND = 0, 2, 3


class Malformed(Exception):
    """The module is not what the linker makes."""


def read_number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def number(value):
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def name(text):
    return number(len(text)) + text.encode()


def sections(module):
    at = 8
    while at < len(module):
        kind = module[at]
        size, at = read_number(module, at + 1)
        yield kind, module[at:at + size]
        at += size


def imports_with_main(body, memory_type):
    """Memory and stack pointer of the first copy come after the functions. No other globals are imported, so the stack
    pointer, the module's first global, keeps its number."""
    count, at = read_number(body, 0)
    return (number(count + 2) + body[at:] + name("main") + name("memory") + bytes([MEMORY_KIND]) + memory_type +
            name("main") + name("__stack_pointer") + bytes([GLOBAL_KIND, I32, MUTABLE]))


def globals_without_first(body):
    count, at = read_number(body, 0)
    if body[at:at + 3] != bytes([I32, MUTABLE, I32_CONST]):
        raise Malformed("the first global is not the stack pointer")
    _, at = read_number(body, at + 3)
    if body[at] != END:
        raise Malformed("the stack pointer does not begin as a constant")
    return number(count - 1) + body[at + 1:]


def only_export(body, wanted, as_name):
    count, at = read_number(body, 0)
    for _ in range(count):
        size, at = read_number(body, at)
        found = body[at:at + size].decode()
        kind = body[at + size]
        index, at = read_number(body, at + size + 1)
        if found == wanted and kind == FUNCTION:
            return number(1) + name(as_name) + bytes([kind]) + number(index)
    raise Malformed(f"no function {wanted} is exported")


def second_copy(module, exported):
    """`exported` is the one function that the first copy calls; it is exported as "loop"."""
    memories = [body for kind, body in sections(module) if kind == MEMORY]
    if len(memories) != 1 or memories[0][0] != 1:
        raise Malformed("the module has not one memory")
    out = bytearray(module[:8])
    for kind, body in sections(module):
        if kind in (MEMORY, START, DATA, DATA_COUNT):
            continue
        if kind == IMPORT:
            body = imports_with_main(body, memories[0][1:])
        elif kind == GLOBAL:
            body = globals_without_first(body)
        elif kind == EXPORT:
            body = only_export(body, exported, "loop")
        out += bytes([kind]) + number(len(body)) + body
    return bytes(out)
