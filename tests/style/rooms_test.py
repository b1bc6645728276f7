# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""The rooms of src/ include only what stands below them, and foreign headers stay in their room.

CMake accepts circles between static libraries, so the includes themselves are read.
"""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

# Lowest first: a room may include itself and those before it. A language (a folder of src/engine) may include what the
# engine room may, and no other language.
ROOMS = ["base", "storage", "snapshot", "object", "wasm", "wasi", "workspace", "bake", "engine", "executor", "protocol", "interpreter", "sandbox", "host", "testing", "cli"]
# Foreign headers and the rooms that may include them.
FOREIGN = {"sqlite3.h": "storage", "wasmtime.h": "wasm", "wasm.h": "wasm", "wasi.h": "wasm", "wasmtime/": "wasm", "sw_prepare.h": "wasm",
           "zstd.h": "snapshot", "xxhash.h": "storage snapshot"}
# The command line stands on the public API. wasi-run is a program of its own, for the WASI host alone.
CLI_MAY = ["base", "cli"]
CLI_EXEMPT = ["wasi_run.cc"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


PUBLIC = "sandbox_workers"


def complaints(src: pathlib.Path, include: pathlib.Path | None = None) -> list[str]:
    found = []
    if include is not None:
        found += complaints_about_public(include)
    languages = [f.name for f in (src / "engine").iterdir() if f.is_dir()] if (src / "engine").is_dir() else []
    for room in sorted(f.name for f in src.iterdir() if f.is_dir()):
        if room not in ROOMS:
            found.append(f"src/{room} is not in the list of rooms")
            continue
        for file in sorted((src / room).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            name = file.relative_to(src)
            for header in INCLUDE.findall(file.read_text(encoding="utf-8")):
                parts = header.split("/")
                if parts[0] == PUBLIC:
                    parts = parts[1:]
                if parts[0] in ROOMS and ROOMS.index(parts[0]) > ROOMS.index(room):
                    found.append(f"{name} includes {header}, which stands above it")
                if room == "cli" and header.split("/")[0] in ROOMS and header.split("/")[0] not in CLI_MAY and name.name not in CLI_EXEMPT and not is_test(file):
                    found.append(f"{name} includes {header}: the command line uses public headers only")
                for foreign, owner in FOREIGN.items():
                    if header.startswith(foreign) and room not in owner.split():
                        found.append(f"{name} includes {header}, which only src/{owner} may")
                if (len(name.parts) > 2 and parts[:1] == ["engine"] and len(parts) > 2
                        and parts[1] in languages and name.parts[1] in languages and parts[1] != name.parts[1]):
                    found.append(f"{name} includes {header}, another language's")
    return found


def is_test(file: pathlib.Path) -> bool:
    return file.stem.endswith("_test")


def complaints_about_public(include: pathlib.Path) -> list[str]:
    """Public headers include public headers of their own room and those below, and nothing private."""
    found = []
    for file in sorted(include.rglob("*.h")):
        name = file.relative_to(include)
        room = name.parts[1]
        for header in INCLUDE.findall(file.read_text(encoding="utf-8")):
            parts = header.split("/")
            if parts[0] in ROOMS:
                found.append(f"{name} includes {header}, which is private")
            elif parts[0] == PUBLIC and room in ROOMS and ROOMS.index(parts[1]) > ROOMS.index(room):
                found.append(f"{name} includes {header}, which stands above it")
    return found


class Rooms(unittest.TestCase):
    def test_of_this_repository(self):
        self.assertEqual(complaints(ROOT / "src", ROOT / "include"), [])

    def test_each_room_says_what_it_is_for(self):
        for room in (ROOT / "src").iterdir():
            if room.is_dir():
                self.assertTrue((room / "README.md").is_file(), f"{room.name} has no README.md")

    def test_notices_each_kind_of_breach(self):
        breaches = {
            "base/a.h": '#include "wasm/runtime.h"',
            "wasi/a.cc": "#include <wasmtime.h>",
            "cli/a.cc": '#  include "wasmtime/store.h"',
            "engine/python/a.cc": '#include "engine/javascript/driver.h"',
            "attic/a.cc": "int x;",
        }
        fine = {
            "wasm/capi.h": "#include <wasmtime.h>",
            "engine/javascript/driver.h": '#include "sandbox_workers/base/result.h"',
            "engine/python/b.cc": '#include "engine/python/driver.h"\n#include "sandbox_workers/wasm/linker.h"',
            "engine/python/c.cc": '#include "engine/driver_guest.h"\n#include "wasi/descriptors.h"',
        }
        with tempfile.TemporaryDirectory() as folder:
            src = pathlib.Path(folder)
            for name, text in {**breaches, **fine}.items():
                (src / name).parent.mkdir(parents=True, exist_ok=True)
                (src / name).write_text(text)
            found = complaints(src)
            self.assertEqual(len(found), len(breaches), found)


if __name__ == "__main__":
    unittest.main()
