# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Gets test262. The registry that carries it is Debian: its source of SpiderMonkey holds the suite, in another form."""
import os
import pathlib
import re
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "guests/common"))
import sources  # noqa: E402

SOURCE = sources.DebianSource(
    package="mozjs128", suite="trixie", file="mozjs128_128.14.0.orig.tar.xz",
    sha256="41cca35149710ce45fbabc5fefcf86a01fdf833fdb783941964fca3a55fb72dd")
INSIDE = "/js/src/tests/test262/"
FOLDERS = ("annexB", "built-ins", "harness", "language")


def prepare(work):
    """A folder with `test` and `harness`, as in a checkout of the suite."""
    given = os.environ.get("TEST262")
    if given:
        return pathlib.Path(given)
    folder = work / SOURCE.sha256[:16]
    if folder.exists():
        return folder
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        scratch = pathlib.Path(scratch)
        translate(sources.debian_source(SOURCE, None, scratch), scratch / "suite")
        (scratch / "suite").rename(folder)
    return folder


def translate(tarball, suite):
    """What SpiderMonkey's import of the suite did is undone: the harness lies in one file a folder, tests have a line
    for the runner of that project before them and a call of it behind them."""
    with tarfile.open(tarball, "r|xz") as archive:
        for member in archive:
            path = member.name.partition(INSIDE)[2]
            if not member.isfile() or not path.endswith((".js", "_FIXTURE.json")) or path.endswith("browser.js"):
                continue
            if path.split("/")[0] not in (*FOLDERS, "shell.js"):
                continue
            text = archive.extractfile(member).read()
            if path.endswith("shell.js"):
                write_harness(text, suite / "harness")
            else:
                write(suite / "test" / path, plain_test(text))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def write_harness(text, folder):
    parts = re.split(rb"^// file: (\S+\.js)\n", text, flags=re.M)
    for name, body in zip(parts[1::2], parts[2::2]):
        write(folder / name.decode(), body)


def plain_test(text):
    text = re.sub(rb"\A// \|reftest\|[^\n]*\n", b"", text)
    text = re.sub(rb"\A'use strict';\n", b"", text)
    return re.sub(rb"\n*reportCompare\(0, 0\);\n?\Z", b"\n", text)
