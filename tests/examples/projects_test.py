# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Builds an example that is a project of its own against the installed library, and runs its tests.

usage: projects_test.py BUILD_FOLDER SOURCE_FOLDER NAME
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2])
NAME = sys.argv[3]
del sys.argv[1:]


def cache_folder() -> pathlib.Path:
    """As cmake/Cache.cmake has it."""
    if "SANDBOX_WORKERS_CACHE" in os.environ:
        return pathlib.Path(os.environ["SANDBOX_WORKERS_CACHE"])
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sandbox-workers")


def run(*command, folder: str) -> None:
    # With its paths relative, a build in another temporary folder is found in the cache.
    environment = {"CCACHE_DIR": str(cache_folder() / "ccache"), **os.environ, "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"}
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", check=False, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{command} failed:\n{done.stdout}")


class Project(unittest.TestCase):
    def test_is_built_against_the_installed_library_and_passes_its_own_tests(self):
        ccache = shutil.which("ccache")
        launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if ccache else []
        with tempfile.TemporaryDirectory() as folder:
            prefix, source, build = (pathlib.Path(folder, name) for name in ("prefix", "source", "build"))
            run("cmake", "--install", BUILD, "--prefix", prefix, folder=folder)
            # Elsewhere, so that it cannot reach anything of this repository.
            shutil.copytree(SOURCE / "examples" / NAME, source)
            run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
                "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", *launcher, folder=folder)
            run("cmake", "--build", build, folder=folder)
            run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", folder=folder)


if __name__ == "__main__":
    unittest.main()
