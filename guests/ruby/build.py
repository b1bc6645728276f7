#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Builds Ruby for WASI from its source: ruby.wasm, ruby-lib.zip and the licences, in the folder named.

usage: build.py OUTPUT-FOLDER [--sources FOLDER] [--jobs N] [--keep WORK-FOLDER]

With --keep, or with a folder named in the environment variable SANDBOX_WORKERS_BUILDS, what is made on the way stays,
and what is there already and up to date is not made again.

The same input gives the same bytes. docs/guests.md says how it is made and why. Ruby is needed to build Ruby: any from
3.0 on, which ./dev setup installs.

Progress goes to stdout as lines "progress SECONDS TEXT"; everything else is said on stderr when something fails.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "common")]
sys.dont_write_bytecode = True
import module_copy  # noqa: E402
import sources  # noqa: E402

RUBY = sources.DebianSource(
    package="ruby3.3", suite="trixie", file="ruby3.3_3.3.8.orig.tar.xz",
    sha256="e2e1233ad275b7623a05edf23a01192626d1da454bdfe353a28a87acd8ef015c")
LIBYAML = sources.DebianSource(
    package="libyaml", suite="trixie", file="libyaml_0.2.5.orig.tar.gz",
    sha256="fa240dbf262be053f3898006d502d514936c818e422afdcf33921c63bed9bf2e")
ZLIB = sources.DebianSource(
    package="zlib", suite="trixie", file="zlib_1.3.dfsg+really1.3.1.orig.tar.gz",
    sha256="60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb")
# For its copy of Doug Lea's malloc.
WASI_LIBC = sources.DebianSource(
    package="wasi-libc", suite="bookworm", file="wasi-libc_0.0~git20220510.9886d3d.orig.tar.xz",
    sha256="8f9b802736a856942839d32966937c389f46e9f156415a549a6675b7535e5f74")
BINARYEN = sources.NpmPackage(
    name="binaryen", version="132.0.0", file="binaryen-132.0.0.tgz",
    sha256="6543555fb29bb92548f325c7dc18e9ab7dbb1215edda25993d1e3f71d85b8618")

# The version in the names of Ruby's folders.
API_VERSION = "3.3.0"
LIBRARY = f"usr/lib/ruby/{API_VERSION}"

# Extensions that need processes, sockets, a terminal or another library; prism, a parser that nothing uses yet, has
# functions that take minutes to transform.
LEFT_OUT = """prism openssl readline fiddle socket pty syslog win32ole win32 io/console continuation -test- dbm
gdbm""".split()
# Gems in the source tree that belong to the standard library as people know it.
GEMS = "matrix minitest power_assert prime racc rexml test-unit".split()
# Their parts in C cannot be linked in by Ruby's makefiles (racc has the same in Ruby).
GEMS_IN_C = "debug racc rbs".split()

YAML_FILES = "api dumper emitter loader parser reader scanner writer".split()
ZLIB_FILES = "adler32 compress crc32 deflate infback inffast inflate inftrees trees uncompr zutil".split()
DRIVER = ["cell.c", "clock.c", "errors.c", "host.c", "json.c", "main.c", "memory.c", "text.c", "values.c"]
COMMON = ["sjlj.c", "sjlj_tag.s", "time_zone.c"]

# What the library holds for other machines, for gems, or for what cannot work here.
LIBRARY_WITHOUT = re.compile(
    r"\.(gemspec|rdoc|md|a|o|h)$|^(bundler|bundled_gems|prism|irb|rdoc|ruby_vm|rubygems|mkmf|syntax_suggest|reline"
    r"|readline|un)(/|\.rb$)|^rdoc|(^|/)(win32|gserver)")

TARGET = ["-target", "wasm32-wasi"]
# Binaryen's asyncify knows the older form of exceptions only; it makes the newer of them in the end.
EXCEPTIONS = ["-mexception-handling", "-mllvm", "-wasm-enable-sjlj", "-mllvm", "-wasm-use-legacy-eh=true"]
EMULATED = ["mman", "signal", "getpid", "process-clocks"]
# Deep recursion through C (blocks of each, sort, eval) takes this stack. Untouched pages of it cost nothing, but count as
# memory of the interpreter.
STACK_BYTES = 12 << 20

FEATURES = [f"--enable-{name}" for name in (
    "exception-handling", "bulk-memory", "bulk-memory-opt", "sign-ext", "mutable-globals", "nontrapping-float-to-int",
    "multivalue", "reference-types", "call-indirect-overlong")]
# Locals that may hold an object are also written to the C stack, where the garbage collector looks. It finds the stack
# pointer by its name, so names are kept until after it.
SPILL = ["--strip-dwarf", "--flatten", "--coalesce-locals", "--reorder-locals", "--vacuum", "--spill-pointers"]
ASYNCIFY = ["--asyncify", "--pass-arg=asyncify-ignore-imports", "--pass-arg=asyncify-ignore-unwind-from-catch"]


def progress(seconds, text):
    print(f"progress {seconds} {text}", flush=True)


def run(command, folder, environment=None, log=None, may_fail=False):
    """Runs a tool; ends the build with the end of what it said when it fails."""
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if log:
        log.write_bytes(done.stdout)
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0 and not may_fail:
        end = "\n".join(said.strip().splitlines()[-25:])
        raise sources.Failed(f"{command[0]} failed with status {done.returncode}:\n{end}")
    return said


class Build:
    def __init__(self, work, jobs, given):
        self.work = work
        self.jobs = jobs
        self.given = given
        self.zig = work / "zig/ziglang/zig"
        self.source = work / "ruby"
        self.build = work / "build"
        self.libraries = work / "libraries"
        # Nothing of the caller's settings, and nothing that changes from run to run.
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(work), "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "SOURCE_DATE_EPOCH": "0", "WASI_SDK_PATH": "/nonexistent", "rb_cv_stack_grow_dir_wasm32": "-1",
            "ZIG_GLOBAL_CACHE_DIR": str(work / "zig-cache"), "ZIG_LOCAL_CACHE_DIR": str(work / "zig-cache")}

    def once(self, name, identity, make):
        """Makes a folder of the work folder, unless it was made from the same things before."""
        folder = self.work / name
        stamp = self.work / f"{name}.made"
        digest = hashlib.sha256(repr(identity).encode()).hexdigest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        make(folder)
        stamp.write_text(digest)

    def all(self, output):
        sources.need_tools(["ruby", "make", "patch", "node"])
        progress(15, "fetching Ruby's source, the compiler and Binaryen")
        self.once("zig", sources.ZIG_WHEELS, self.fetch_compiler)
        self.once("binaryen", BINARYEN, self.fetch_binaryen)
        self.write_tools()
        # This folder may be another one the next time.
        flags = [str(flag).replace(str(HERE.parent), "guests") for flag in self.compiler_flags()]
        libraries = [LIBYAML, ZLIB, WASI_LIBC, sources.ZIG_WHEELS, flags]
        self.once("libraries", libraries, self.build_libraries)
        ours = [path.read_bytes() for folder in ("patches", "wasm") for path in sorted((HERE / folder).iterdir())]
        self.once("ruby", [RUBY, ours, GEMS_IN_C], self.prepare)
        self.once("build", [RUBY, ours, libraries, EXCEPTIONS, self.configuration()], self.build_ruby)
        self.link()
        # Not the custom sections: they say where the sources lay.
        linked = [body for kind, body in module_copy.sections((self.work / "linked.wasm").read_bytes()) if kind != 0]
        self.once("module", [linked, BINARYEN, FEATURES, SPILL, ASYNCIFY], self.make_module)
        shutil.copyfile(self.work / "module/ruby.wasm", output / "ruby.wasm")
        self.pack_library(output / "ruby-lib.zip")
        self.copy_licences(output)

    # 1. Sources and tools

    def fetch_compiler(self, folder):
        sources.zig(self.given, folder)

    def fetch_binaryen(self, folder):
        sources.unpack(sources.npm_package(BINARYEN, self.given, self.work), folder)

    def fetch(self, source, folder):
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=self.work) as temporary:
            sources.unpack(sources.debian_source(source, self.given, pathlib.Path(temporary)), folder)

    def compiler_flags(self):
        return ["-fno-sanitize=undefined", "-g0", f"-ffile-prefix-map={self.work}=.",
                f"-ffile-prefix-map={HERE.parent}=guests", "-I", HERE.parent / "common"]

    def write_tools(self):
        """Ruby's makefiles want a compiler and an archiver by a name without arguments."""
        flags = " ".join(str(flag) for flag in self.compiler_flags())
        compiler = (f'#!/bin/sh\nflags=\nfor each; do\n  if [ "$each" = -c ]; then flags="{" ".join(EXCEPTIONS)}"; fi\n'
                    f'done\nexec {self.zig} cc {" ".join(TARGET)} {flags} $flags "$@"\n')
        for name, text in (("cc", compiler), ("ar", f'#!/bin/sh\nexec {self.zig} ar "$@"\n'),
                           ("ranlib", f'#!/bin/sh\nexec {self.zig} ranlib "$@"\n')):
            path = self.work / f"tool-{name}"
            path.write_text(text)
            path.chmod(0o755)

    # 2. Libraries and Ruby

    def compile(self, jobs):
        """(source, object, further flags) of each."""
        def one(job):
            source, target, flags = job
            target.parent.mkdir(parents=True, exist_ok=True)
            mine = [] if source.suffix == ".s" else [*self.compiler_flags(), *EXCEPTIONS, *flags]
            run([self.zig, "cc", *TARGET, *mine, "-c", source, "-o", target], self.work, self.environment)
            return target

        # The first makes the C library; the others would each wait for it.
        jobs = list(jobs)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return [one(jobs[0]), *pool.map(one, jobs[1:])]

    def archive(self, name, objects):
        run([self.zig, "ar", "rcs", self.libraries / "lib" / name, *objects], self.work, self.environment)

    def build_libraries(self, folder):
        progress(25, "building libyaml and zlib")
        for name in ("lib", "include"):
            (folder / name).mkdir(parents=True)
        yaml, zlib, libc = folder / "libyaml", folder / "zlib", folder / "libc"
        self.fetch(LIBYAML, yaml)
        self.fetch(ZLIB, zlib)
        self.fetch(WASI_LIBC, libc)
        defines = ["-DYAML_VERSION_MAJOR=0", "-DYAML_VERSION_MINOR=2", "-DYAML_VERSION_PATCH=5",
                   '-DYAML_VERSION_STRING="0.2.5"']
        self.archive("libyaml.a", self.compile(
            (yaml / f"src/{name}.c", self.work / f"objects/yaml/{name}.o",
             ["-O2", "-w", "-I", yaml / "include", *defines])
            for name in YAML_FILES))
        self.archive("libz.a", self.compile(
            (zlib / f"{name}.c", self.work / f"objects/zlib/{name}.o", ["-O2", "-w", "-DHAVE_UNISTD_H"])
            for name in ZLIB_FILES))
        for path in (yaml / "include/yaml.h", zlib / "zlib.h", zlib / "zconf.h"):
            shutil.copy(path, self.libraries / "include")
        shutil.copy(libc / "dlmalloc/src/malloc.c", self.libraries / "include/dlmalloc.c")

    def prepare(self, folder):
        self.fetch(RUBY, folder)
        for patch in sorted((HERE / "patches").glob("*.patch")):
            run(["patch", "-p1", "--force", "-i", patch], self.source, self.environment)
        for path in (HERE / "wasm").iterdir():
            shutil.copy(path, self.source / "wasm")
        for name in GEMS_IN_C:
            for extension in (self.source / ".bundle/gems").glob(f"{name}-*/ext"):
                shutil.rmtree(extension)

    def build_ruby(self, folder):
        folder.mkdir()
        self.configure()
        self.make()

    def configuration(self):
        tool = self.work / "tool"
        return ["--build=x86_64-pc-linux-gnu", "--host=wasm32-unknown-wasi", "--prefix=/usr",
                "--disable-install-doc", "--disable-yjit", "--disable-rjit", "--disable-shared",
                f"--with-baseruby={shutil.which('ruby')}", "--with-static-linked-ext",
                f"--with-out-ext={','.join(LEFT_OUT)}", f"--with-libyaml-dir={self.libraries}",
                f"--with-zlib-dir={self.libraries}", f"CC={tool}-cc", f"LD={tool}-cc", f"AR={tool}-ar",
                f"RANLIB={tool}-ranlib", "WASMOPT=true", "NM=true", "STRIP=true", "OBJCOPY=:", "optflags=-O3",
                "debugflags=-g0", "warnflags=-w", "cppflags=-D_GNU_SOURCE"]

    def configure(self):
        progress(60, "configuring Ruby")
        run([self.source / "configure", *self.configuration()], self.build, self.environment,
            self.work / "configure.log")

    def make(self):
        progress(100, "compiling Ruby")
        # Its last step, a program of its own, does not link and is not wanted.
        run(["make", "-k", f"-j{self.jobs}"], self.build, self.environment, self.work / "make.log", may_fail=True)
        wanted = ("libruby-static.a", "enc/libenc.a", "enc/libtrans.a", "enc/encinit.o", "rbconfig.rb")
        missing = [name for name in wanted
                   if not (self.build / name).is_file()]
        if missing:
            end = "\n".join((self.work / "make.log").read_text(errors="replace").splitlines()[-40:])
            raise sources.Failed(f"make left no {', '.join(missing)}:\n{end}")

    # 3. The module

    def link(self):
        progress(10, "linking Ruby")
        emulated = [f"-D_WASI_EMULATED_{name.replace('-', '_').upper()}" for name in EMULATED]
        flags = ["-O2", "-Werror=implicit-function-declaration", "-Wno-unused-command-line-argument",
                 "-D_GNU_SOURCE", *emulated]
        ruby = ["-w", "-I", self.build / ".ext/include/wasm32-wasi", "-I", self.source / "include",
                "-I", self.source, "-I", self.build, "-I", self.libraries / "include"]
        objects = self.compile(
            [(HERE / "driver" / name, self.work / f"objects/driver/{name}.o", [*flags, *ruby]) for name in DRIVER] +
            [(HERE.parent / "common" / name, self.work / f"objects/common/{name}.o", flags) for name in COMMON])
        text = (self.build / "exts.mk").read_text()
        extensions = re.search(r"^EXTOBJS *=((?:.*\\\n)*.*)", text, re.M)[1].replace("\\\n", " ").split()
        run([self.work / "tool-cc", "-mexec-model=reactor", "-Wl,--export=__stack_pointer", "-g1", *objects, *extensions,
             "enc/encinit.o", "enc/libenc.a", "enc/libtrans.a", "libruby-static.a", self.libraries / "lib/libyaml.a",
             self.libraries / "lib/libz.a", "-lm", *[f"-lwasi-emulated-{name}" for name in EMULATED],
             f"-Wl,-z,stack-size={STACK_BYTES}", "-o", self.work / "linked.wasm"], self.build, self.environment)

    def binaryen(self, tool, *arguments):
        run(["node", "--stack-size=60000", "--max-old-space-size=8192", self.work / "binaryen/bin" / tool, *FEATURES,
             *arguments], self.work, self.environment)

    def make_module(self, folder):
        """Two copies of the code in one module: see wasm/fiber.c."""
        progress(400, "making Ruby's module")
        folder.mkdir()
        linked, copy = self.work / "linked.wasm", folder / "copy.wasm"
        plain, fibers, joined = (folder / f"{name}.wasm" for name in ("plain", "fibers", "joined"))
        copy.write_bytes(module_copy.second_copy(linked.read_bytes(), "sw_fiber_loop"))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            made = [pool.submit(self.binaryen, "wasm-opt", *SPILL, "-O2", linked, "-g", "-o", plain),
                    pool.submit(self.binaryen, "wasm-opt", *SPILL, *ASYNCIFY, "-O1", copy, "-g", "-o", fibers)]
            for each in made:
                each.result()
        self.binaryen("wasm-merge", "--enable-multimemory", plain, "main", fibers, "fiber", "--rename-export-conflicts", "-o",
                      joined)
        self.binaryen("wasm-opt", "--duplicate-import-elimination", "--remove-unused-module-elements", "--strip-debug",
                      "--emit-exnref", joined, "-o", folder / "ruby.wasm")

    # 4. The library

    def library_files(self):
        roots = [self.source / "lib", self.build / ".ext/common"]
        roots += [next((self.source / ".bundle/gems").glob(f"{name}-*")) / "lib" for name in GEMS]
        roots.append(HERE / "lib")  # what is there stands in for what was
        for root in roots:
            for path in sorted(root.rglob("*")):
                name = path.relative_to(root).as_posix()
                if path.is_file() and (root == HERE / "lib" or not LIBRARY_WITHOUT.search(name)):
                    yield name, path.read_bytes()
        config = (self.build / "rbconfig.rb").read_text()
        yield "wasm32-wasi/rbconfig.rb", config.replace(str(self.work), "/build").encode()

    def pack_library(self, output):
        progress(3, "packing Ruby's library")
        files = dict(self.library_files())
        with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as archive:
            for name, content in sorted(files.items()):
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)

    def copy_licences(self, folder):
        for name in ("BSDL", "COPYING", "LEGAL"):
            shutil.copyfile(self.source / name, folder / f"LICENCE.{name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--sources", type=pathlib.Path, help="a folder looked into before anything is fetched")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=pathlib.Path, help="build here, and leave it")
    options = parser.parse_args()
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    keep = options.keep
    if keep is None and "SANDBOX_WORKERS_BUILDS" in os.environ:
        keep = pathlib.Path(os.environ["SANDBOX_WORKERS_BUILDS"]) / "ruby"
    try:
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            Build(keep.resolve(), options.jobs, options.sources).all(output)
        else:
            with tempfile.TemporaryDirectory(prefix="ruby-build-", dir=output.parent) as work:
                Build(pathlib.Path(work), options.jobs, options.sources).all(output)
    except (sources.Failed, module_copy.Malformed) as problem:
        sys.exit(f"build.py: {problem}")


if __name__ == "__main__":
    main()
