# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Fetches what guests are built from: Debian source packages and the compiler. Everything is checked against a sha256.

A file that lies in the folder `given`, or in the one that the environment variable SANDBOX_WORKERS_SOURCES names, is
taken from there; with all of them there, nothing is fetched.
"""
import dataclasses
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile


class Failed(Exception):
    """The message says what is wrong and what to do."""


@dataclasses.dataclass(frozen=True)
class DebianSource:
    package: str
    suite: str
    file: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class NpmPackage:
    name: str
    version: str
    file: str
    sha256: str


ZIG_VERSION = "0.17.1"
ZIG_WHEELS = {
    "x86_64": ("ziglang-0.17.1-py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.musllinux_1_1_x86_64.whl",
               "ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54"),
}


def need_tools(names):
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        raise Failed(f"not installed: {', '.join(missing)}; ./dev setup installs what a build needs")


def given_file(name, given):
    for folder in (given, os.environ.get("SANDBOX_WORKERS_SOURCES")):
        if folder and (pathlib.Path(folder) / name).is_file():
            return pathlib.Path(folder) / name
    return None


def checked(path, sha256):
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() != sha256:
        raise Failed(f"{path.name} has sha256 {digest.hexdigest()}, but {sha256} was expected; it is not used")
    return path


def fetch(command, folder, how):
    done = subprocess.run([str(part) for part in command], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        said = "\n".join(done.stdout.decode(errors="replace").strip().splitlines()[-10:])
        raise Failed(f"{command[0]} failed with status {done.returncode}:\n{said}\n{how}")


def debian_mirrors():
    """Where this machine gets Debian itself from, as apt's lists have it."""
    found = []
    etc = pathlib.Path("/etc/apt")
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if path.suffix not in (".list", ".sources") or not path.is_file():
            continue
        text = re.sub(r"^\s*#.*\n?", "", path.read_text(errors="replace"), flags=re.M)
        found += re.findall(r"^deb(?:-src)?\s+(?:\[[^]]*\]\s+)?(\S+)", text, re.M)
        for value in re.findall(r"^URIs:(.*(?:\n[ \t].*)*)", text, re.M | re.I):
            found += value.split()
    mirrors = [uri for uri in found if re.search(r"/debian/?$", uri)]
    return list(dict.fromkeys(mirrors))


def debian_source(source, given, work):
    """The upstream tarball of a Debian source package, by apt, with lists of its own: neither the suite nor sources need
    be among the machine's, and nobody has to be root."""
    path = given_file(source.file, given)
    if path:
        return checked(path, source.sha256)
    how = f"Get {source.file} elsewhere, and name its folder in SANDBOX_WORKERS_SOURCES."
    need_tools(["apt-get"])
    mirrors = debian_mirrors()
    if not mirrors:
        raise Failed(f"apt's lists name no mirror of Debian. {how}")
    apt = work / "apt"
    (apt / "lists/partial").mkdir(parents=True)
    (apt / "cache/archives/partial").mkdir(parents=True)
    # What comes is pinned by its own digest, which says more than the suite's signature.
    (apt / "sources.list").write_text(
        "".join(f"deb-src [trusted=yes] {uri} {source.suite} main\n" for uri in mirrors[:1]))
    # Packages in sight are no concern of ours, and _apt may not look into a private folder.
    options = ["-q", "-o", f"Dir::State={apt}", "-o", f"Dir::State::lists={apt}/lists",
               "-o", "Dir::State::status=/dev/null", "-o", f"Dir::Cache={apt}/cache",
               "-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", "APT::Sandbox::User="]
    fetch(["apt-get", *options, "update"], apt, how)
    fetch(["apt-get", *options, "source", "--download-only", "--tar-only", source.package], apt, how)
    if not (apt / source.file).is_file():
        raise Failed(f"Debian {source.suite} has another version of {source.package} now. {how}")
    return checked(apt / source.file, source.sha256)


def npm_package(package, given, work):
    """The tarball of a package, by npm."""
    path = given_file(package.file, given)
    if not path:
        fetch(["npm", "pack", "--silent", "--pack-destination", work, f"{package.name}@{package.version}"], work,
              f"Get {package.file} elsewhere, and name its folder in SANDBOX_WORKERS_SOURCES.")
        path = work / package.file
        if not path.is_file():
            raise Failed(f"npm fetched another file than {package.file}")
    return checked(path, package.sha256)


def zig(given, work):
    """Makes the folder `work` with what the ziglang wheel holds: ziglang/zig is a C compiler with a C library for
    WASI."""
    machine = platform.machine()
    if machine not in ZIG_WHEELS:
        raise Failed(f"the compiler is not known for {machine}, only for {', '.join(ZIG_WHEELS)}")
    name, sha256 = ZIG_WHEELS[machine]
    work.mkdir(parents=True)
    path = given_file(name, given)
    if not path:
        fetch([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--dest", work, f"ziglang=={ZIG_VERSION}"], work,
              f"Get {name} elsewhere, and name its folder in SANDBOX_WORKERS_SOURCES.")
        path = work / name
        if not path.is_file():
            raise Failed(f"pip fetched another file than {name}")
    checked(path, sha256)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(work)
    (work / "ziglang/zig").chmod(0o755)
    if path.parent == work:
        path.unlink()


def unpack(tarball, folder):
    """Without the one folder that everything in it lies in."""
    with tarfile.open(tarball) as archive:
        members = []
        for member in archive.getmembers():
            parts = pathlib.PurePosixPath(member.name).parts
            if len(parts) < 2 or ".." in parts or member.name.startswith("/"):
                continue
            member.name = "/".join(parts[1:])
            members.append(member)
        folder.mkdir(parents=True)
        archive.extractall(folder, members)
