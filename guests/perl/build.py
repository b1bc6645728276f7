#!/usr/bin/env python3
# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
"""Builds Perl for WASI from its source: perl.wasm, perl-lib.zip and the licences, in the folder named.

usage: build.py OUTPUT-FOLDER [--sources FOLDER] [--jobs N] [--keep WORK-FOLDER]

With --keep, or with a folder named in the environment variable SANDBOX_WORKERS_BUILDS, what is made on the way stays,
and the next build takes of it what has not changed: after a change of the driver, all but a few seconds.

Perl cannot be compiled for another machine without running some of its own programs, so it is built twice: for the
building machine, which makes the library and the C sources of the modules, and then for WASI from those. The same
input gives the same bytes. docs/guests.md has the rest.

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
sys.path.insert(0, str(HERE.parent / "common"))
sys.dont_write_bytecode = True
import sources  # noqa: E402

PERL = sources.DebianSource(
    package="perl", suite="trixie", file="perl_5.40.1.orig.tar.xz",
    sha256="dfa20c2eef2b4af133525610bbb65dd13777ecf998c9c5b1ccf0d308e732ee3f")

# Modules in C that need processes, sockets, threads or another database, or are for Perl's own makers.
LEFT_OUT = """DB_File GDBM_File NDBM_File ODBM_File Socket IPC/SysV Sys/Syslog Sys/Hostname threads threads/shared
I18N/Langinfo XS/APItest XS/Typemap Devel/PPPort PerlIO/mmap""".split()

CONFIGURE = """-des -Dprefix=/usr -Dprivlib=/usr/lib/perl -Darchlib=/usr/lib/perl -Dsitelib=/usr/lib/perl/site
-Dsitearch=/usr/lib/perl/site -Uvendorprefix -Uusedl -Uusethreads -Uusemultiplicity -Duse64bitint -Doptimize=-O1
-Uman1dir -Uman3dir -Dcf_time=1970-01-01 -Dcf_by=sandbox-workers -Dmyhostname=localhost""".split()

# Perl's own C files, without extension.
CORE = """av builtin caretx class deb doio doop dquote dump globals gv hv keywords locale mathoms mg mro_core numeric op
pad peep perl perlio perly pp pp_ctl pp_hot pp_pack pp_sort pp_sys reentr regcomp regcomp_debug regcomp_invlist
regcomp_study regcomp_trie regexec run scope sv taint time64 toke universal utf8 util perlmain""".split()

DRIVER = ["cell.c", "clock.c", "errors.c", "host.c", "lexicals.c", "main.c", "text.c", "values.c"]
COMMON = ["sjlj.c", "sjlj_tag.s", "time_zone.c"]

# What the library holds for its makers only, or for what cannot work here.
LIBRARY_WITHOUT = re.compile(
    r"\.(t|pod|a|h|ld|bs|packlist|exists)$|(^|/)(t|\.exists)/"
    r"|^(CORE|pod|CPAN|CPAN\.pm|App|ExtUtils|Test2/Manual|Module/CoreList|TAP|Pod/Perldoc|HTTP|Net|IO/Socket|IPC/Cmd"
    r"|Devel/PPPort)(/|$|\.pm$)"
    # Has the paths of the build.
    r"|^buildcustomize\.pl$"
    # Of the Unicode tables, those that modules read; the others are what they were made from.
    r"|^unicore/(?!lib/|To/|\w+\.p[lm]$|(Blocks|NamedSequences|SpecialCasing)\.txt$|version$)|^unicore/Test\w+\.pl$")

TARGET = ["-target", "wasm32-wasi", "-mexception-handling",
          "-mllvm", "-wasm-enable-sjlj", "-mllvm", "-wasm-use-legacy-eh=false"]
EMULATED = ["signal", "process-clocks", "getpid", "mman"]
# Nested calls in C (sort blocks, overloads, patterns) take this stack. It lies first in memory, so that running out of
# it is a trap.
STACK_BYTES = 32 << 20
# Levels of nesting that Storable takes, well within that stack.
STORABLE_DEPTH = 10000


def progress(seconds, text):
    print(f"progress {seconds} {text}", flush=True)


def run(command, folder, environment=None, log=None):
    """Runs a tool; ends the build with the end of what it said when it fails."""
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if log:
        log.write_bytes(done.stdout)
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip().splitlines()[-25:]
        raise sources.Failed(f"{command[0]} failed with status {done.returncode}:\n" + "\n".join(said))
    return done.stdout.decode(errors="replace")


class Build:
    def __init__(self, work, jobs, given):
        self.work = work
        self.jobs = jobs
        self.native = work / "native"
        self.cross = work / "cross"
        self.given = given
        # Nothing of the caller's settings, and nothing that changes from run to run.
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(work), "LC_ALL": "C", "TZ": "UTC",
            "SOURCE_DATE_EPOCH": "0", "PERL_HASH_SEED": "0", "PERL_USE_UNSAFE_INC": "0",
            "ZIG_GLOBAL_CACHE_DIR": str(work / "zig-cache"), "ZIG_LOCAL_CACHE_DIR": str(work / "zig-cache")}

    def once(self, folder, identity, make):
        """Makes a folder, unless it was made from the same things before."""
        stamp = self.work / f"{folder.name}.made"
        digest = hashlib.sha256(repr(identity).encode()).hexdigest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        make()
        stamp.write_text(digest)

    def all(self, output):
        sources.need_tools(["cc", "make", "patch", "sed", "awk"])
        zig = self.work / "zig"
        self.zig = zig / "ziglang/zig"
        self.once(zig, sources.ZIG_WHEELS, lambda: self.fetch_compiler(zig))
        native = [PERL, CONFIGURE, LEFT_OUT]
        self.once(self.native, native, self.build_native)
        ours = [(HERE / name).read_bytes() for name in ("build.py", "config.wasi")]
        for folder in (HERE / "patches", HERE / "include", HERE.parent / "common"):
            ours += [path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in (".h", ".patch")]
        self.once(self.cross, [native, sources.ZIG_WHEELS, ours], self.build_cross)
        self.link(self.objects() + self.build_driver(), output / "perl.wasm")
        self.pack_library(output / "perl-lib.zip")
        self.copy_licences(output)

    # 1. Sources and tools

    def fetch_compiler(self, folder):
        progress(5, "fetching the compiler")
        sources.zig(self.given, folder)

    # 2. For the building machine

    def build_native(self):
        progress(5, "fetching Perl's source")
        sources.unpack(sources.debian_source(PERL, self.given, self.work), self.native)
        progress(35, "configuring Perl for this machine")
        run(["sh", "Configure", *CONFIGURE, "-Dnoextensions=" + " ".join(LEFT_OUT)],
            self.native, self.environment, self.work / "configure.log")
        progress(75, "building Perl for this machine")
        run(["make", f"-j{self.jobs}"], self.native, self.environment, self.work / "make.log")

    # 3. For WASI

    def build_cross(self):
        self.prepare_cross()
        self.compile()

    def prepare_cross(self):
        progress(3, "preparing Perl for WASI")
        shutil.copytree(self.native, self.cross, symlinks=True,
                        ignore=lambda folder, names: [name for name in names if name.endswith((".o", ".a"))])
        for name in ("perl", "config.h", "lib/Config.pm", "lib/Config_heavy.pl"):
            (self.cross / name).unlink()
        (self.cross / "config.sh").write_text(self.configuration())
        run(["sh", "config_h.SH"], self.cross, self.environment)
        run(["./miniperl", "-Ilib", "configpm"], self.cross, self.environment)
        for patch in sorted((HERE / "patches").glob("*.patch")):
            run(["patch", "-p1", "--force", "-i", patch], self.cross, self.environment)
        (self.cross / "sw_dispatch.h").write_text(self.dispatch())
        self.write_main()

    def configuration(self):
        """The building machine's config.sh with what config.wasi says."""
        changes = {}
        for line in (HERE / "config.wasi").read_text().splitlines():
            if line.startswith("undef:"):
                changes.update((name, "'undef'") for name in line.split()[1:])
            elif line and not line.startswith("#"):
                name, value = line.split("=", 1)
                changes[name] = value
        flags = " ".join(f"-D_WASI_EMULATED_{name.replace('-', '_').upper()}" for name in EMULATED)
        changes["ccflags"] = changes["cppflags"] = f"'{flags} -DNO_LOCALE -fno-strict-aliasing -fwrapv'"
        lines = []
        for line in (self.native / "config.sh").read_text().splitlines():
            name = line.split("=", 1)[0]
            if re.match(r"config_arg\d|#", line):
                continue
            lines.append(f"{name}={changes.pop(name)}" if name in changes else line)
        return "\n".join(lines + [f"{name}={value}" for name, value in changes.items()]) + "\n"

    def dispatch(self):
        """A case for each operator that calls the usual function directly (patch 0001)."""
        table = (self.cross / "opcode.h").read_text()
        table = table[table.index("PL_ppaddr[]"):]
        functions = re.findall(r"\t(Perl_\w+),", table[:table.index("};")])
        operators = re.findall(r"\t(OP_\w+)\s*= \d+,", (self.cross / "opnames.h").read_text())
        return "".join(
            f"case {operator}:\n  if (LIKELY(op->op_ppaddr == {function})) {{\n    PL_op = op = {function}(aTHX);\n"
            f"    break;\n  }}\n  goto indirect;\n"
            for operator, function in zip(operators, functions) if function != "Perl_unimplemented_op")

    def write_main(self):
        """perlmain.c with all modules linked in; its main() is not used."""
        static = re.search(r"^static_ext=' *(.*)'$", (self.cross / "config.sh").read_text(), re.M)[1].split()
        # DynaLoader must be among them, or perl takes itself for miniperl.
        archives = ["DynaLoader"] + [f"lib/auto/{name}/{name.split('/')[-1]}.a" for name in static]
        run(["./miniperl", "-Ilib", "-MExtUtils::Miniperl", "-e", "writemain(\\'perlmain.c', @ARGV)", *archives],
            self.cross, self.environment)
        path = self.cross / "perlmain.c"
        text = path.read_text()
        text = re.sub(r"^static void\s+xs_init", "void xs_init", text, flags=re.M)
        text = re.sub(r"^static void$", "void", text, flags=re.M)
        text = re.sub(r"^main\(int argc", "sw_no_main(int argc", text, flags=re.M)
        path.write_text(text)

    def flags(self):
        names = [name.replace("-", "_").upper() for name in EMULATED]
        return ["-O2", "-g0", "-w", "-Werror=implicit-function-declaration", "-fno-strict-aliasing", "-fwrapv",
                f"-ffile-prefix-map={self.work}=.", f"-ffile-prefix-map={HERE.parent}=guests",
                "-I", HERE.parent / "common", "-I", HERE / "include", "-I", self.cross,
                "-include", HERE / "include" / "wasi_host.h",
                *[f"-D_WASI_EMULATED_{name}" for name in names], "-D_GNU_SOURCE", "-DNO_LOCALE",
                "-DNO_ENV_ARRAY_IN_MAIN", '-DPERL_BUILD_DATE="Jan  1 1970"']

    def module_jobs(self):
        """What to compile for the modules in C, as their makefiles on the building machine have it."""
        for makefile in sorted(self.native.glob("*/**/Makefile")):
            folder = makefile.parent
            objects = sorted(path.name for path in folder.glob("*.o"))
            if not objects:
                continue
            text = makefile.read_text(errors="replace")
            value = {name: match[1].strip() for name in ("VERSION", "XS_VERSION", "DEFINE", "INC")
                     if (match := re.search(rf"^{name} = (.*)$", text, re.M))}
            defines = value.get("DEFINE", "").replace('"$(LIBC)"', '""').split()
            includes = value.get("INC", "").replace("$(PERL_INC)", str(self.cross)).split()
            where = self.cross / folder.relative_to(self.native)
            for name in objects:
                source = name[:-2] + ".c"
                if not (where / source).exists():
                    source = next(path.name for path in sorted(where.glob("*.c")) if path.stem.endswith(name[:-2]))
                yield where, source, where / name, [
                    # Clocks are pointers in wasi-libc, which Time::HiRes makes into numbers and back.
                    *defines, *includes, "-Wno-error=int-conversion", f'-DVERSION="{value["VERSION"]}"', f'-DXS_VERSION="{value["XS_VERSION"]}"']

    def jobs_of_perl(self):
        core = [(self.cross, f"{name}.c", self.cross / f"{name}.o", ["-DPERL_CORE"]) for name in CORE]
        return core + list(self.module_jobs())

    def objects(self):
        return [target for _, _, target, _ in self.jobs_of_perl()]

    def compile_all(self, jobs):
        flags = self.flags()

        def one(job):
            folder, source, target, extra = job
            mine = [] if source.endswith(".s") else [*flags, *extra]
            run([self.zig, "cc", *TARGET, *mine, "-c", source, "-o", target], folder, self.environment)

        # The first makes the C library; the others would each wait for it.
        one(jobs[0])
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, jobs[1:]))

    def compile(self):
        progress(60, "compiling Perl for WASI")
        self.compile_all(self.jobs_of_perl())

    def build_driver(self):
        progress(3, "compiling the driver")
        jobs = [(HERE / "driver", name, self.cross / f"sw_{name}.o", []) for name in DRIVER]
        jobs += [(HERE.parent / "common", name, self.cross / f"sw_{name}.o", []) for name in COMMON]
        self.compile_all(jobs)
        return [target for _, _, target, _ in jobs]

    def link(self, objects, output):
        progress(5, "linking Perl for WASI")
        listing = self.work / "objects"
        listing.write_text("\n".join(str(path) for path in objects))
        run([self.zig, "cc", "-target", "wasm32-wasi", "-mexec-model=reactor", "-s", f"@{listing}",
             "-o", output, *[f"-lwasi-emulated-{name}" for name in EMULATED], f"-Wl,-z,stack-size={STACK_BYTES}"],
            self.cross, self.environment)

    # 4. The library

    def errno_module(self):
        """Errno.pm with WASI's numbers."""
        probe = self.work / "errno.c"
        cpp = [self.zig, "cc", *TARGET, "-E"]
        probe.write_text("#include <errno.h>\n")
        names = sorted(set(re.findall(r"#define (E[A-Z0-9]+) ", run([*cpp, "-dM", probe], self.work,
                                                                     self.environment))))
        probe.write_text("#include <errno.h>\n" + "".join(f"@@E_{name[1:]} {name}\n" for name in names))
        values = {}
        for name, text in re.findall(r"@@E_(\w+) (.*)", run([*cpp, "-P", probe], self.work, self.environment)):
            digits = re.findall(r"\d+", text.replace("UINT16_C", ""))
            if digits:
                values["E" + name] = int(digits[-1])
        module = (self.native / "lib/Errno.pm").read_text()
        # It checks that it runs with the perl it was made for.
        module = re.sub(r'"\$Config\{\'archname\'\}.*?;\n', "", module, count=1, flags=re.S)
        table = "".join(f"\t{name} => {value},\n" for name, value in sorted(values.items(), key=lambda item: item[1]))
        return re.sub(r"%err = \(\n.*?\n\s*\);", lambda _: f"%err = (\n{table}    );", module, count=1, flags=re.S)

    def storable(self):
        """Storable.pm with limits for our stack; the building machine's own are measured there, or guessed."""
        module = (self.native / "lib/Storable.pm").read_text()
        for name in ("recursion_limit", "recursion_limit_hash"):
            module, count = re.subn(rf"^(\${name} = )\d+$", rf"\g<1>{STORABLE_DEPTH}", module, flags=re.M)
            if count != 1:
                raise sources.Failed(f"Storable.pm sets no ${name}")
        return module

    def pack_library(self, output):
        progress(3, "packing Perl's library")
        files = {}
        for path in sorted((self.native / "lib").rglob("*")):
            name = str(path.relative_to(self.native / "lib"))
            if path.is_file() and not LIBRARY_WITHOUT.search(name):
                files[name] = path.read_bytes()
        for name in ("Config.pm", "Config_heavy.pl"):
            files[name] = (self.cross / "lib" / name).read_bytes()
        files["Errno.pm"] = self.errno_module().encode()
        files["Storable.pm"] = self.storable().encode()
        with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as archive:
            for name, content in sorted(files.items()):
                if name.endswith((".pm", ".pl", ".al", ".ix")):
                    content = without_pod(content)
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)

    def copy_licences(self, folder):
        for name in ("Artistic", "Copying"):
            shutil.copyfile(self.native / name, folder / f"LICENCE.{name}")


def without_pod(content):
    """A module's documentation is half of it. Lines keep their numbers; what follows __END__ may be data."""
    lines = content.split(b"\n")
    kept = []
    inside = False
    for number, line in enumerate(lines):
        if line.startswith((b"__END__", b"__DATA__")):
            rest = lines[number:]
            text = b"\n".join(rest)
            # After __END__ often nothing but documentation comes; if so, it goes altogether.
            is_only_pod = re.fullmatch(rb"__END__\s*(=[a-zA-Z].*)?", text, re.S) and b"\n=cut\n" not in text[:-200]
            return b"\n".join(kept + ([b"__END__", b""] if is_only_pod else rest))
        if not inside and re.match(rb"=[a-zA-Z]", line):
            inside = True
        kept.append(b"" if inside else line)
        if inside and line.startswith(b"=cut"):
            inside = False
    return b"\n".join(kept)


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
        keep = pathlib.Path(os.environ["SANDBOX_WORKERS_BUILDS"]) / "perl"
    try:
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            Build(keep.resolve(), options.jobs, options.sources).all(output)
        else:
            with tempfile.TemporaryDirectory(prefix="perl-build-", dir=output.parent) as work:
                Build(pathlib.Path(work), options.jobs, options.sources).all(output)
    except sources.Failed as problem:
        sys.exit(f"build.py: {problem}")


if __name__ == "__main__":
    main()
