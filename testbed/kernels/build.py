# SPDX-License-Identifier: GPL-2.0
"""Kernels for the testbed: fetch the source, build for user mode or for QEMU, store in the cache.

    source(series) -> edits -> configuration -> build -> verified, trimmed cache entry

The source is Debian's `linux-source-<series>` package, fetched with a private apt configuration
(of the system's apt only the mirror's address is read), or a copy of a source tree that the user
gives.

Command line:
    python3 -m testbed.kernels.build build  [--series S] [--flavour F] [--kernel-source DIR]
    python3 -m testbed.kernels.build source [S] [--kernel-source DIR]    prints the source's path
    python3 -m testbed.kernels.build path   [--series S] [--flavour F]   prints the KDIR
    python3 -m testbed.kernels.build list | prune                        list the cache; remove stale entries
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ..base.cache import cache_root, lock, need_space, remove, size_mib, whole_entry
from ..base.errors import BuildFailed, ConfigMissing, LbeError, MissingTools, NoSpace
from ..base.progress import Report, make_progress, silent
from . import series as kernels
from .mirror import output
from .series import (
    ARCHES,
    DEFAULT_SERIES,
    FLAVOURS,
    FRAGMENTS,
    IMAGES,
    SUITES,
    KernelSpec,
    check_spec,
    key_of,
)
from .source import KernelSource, edits_key, ensure_source, newest_source, tree_version

# Disk space of a build before trim(), with all object files; measured, but for memory.
BUILD_MIB = {"plain": 400, "sanitizer": 1500, "race": 2000, "memory": 2500}
# Lines that make prints in a complete build, for the scale of the progress bar only; measured, but for memory.
EXPECTED_LINES = {"plain": 1400, "sanitizer": 1500, "race": 1950, "memory": 1950}
FORMAT = 1  # incremented when the content of a cache entry changes


@dataclass(frozen=True)
class KernelBuild:
    """A cache entry: the kernel to boot and the folder to build modules against."""

    linux: Path
    kdir: Path
    source: Path
    release: str
    series: str
    flavour: str
    key: str

    @property
    def arch(self) -> str:
        """The architecture, in the form of make's ARCH."""
        return ARCHES[self.flavour]

    @property
    def intree(self) -> dict[str, Path]:
        """Name -> path of the in-tree modules built with the kernel (tcp_vegas, ...)."""
        return {p.stem: p for p in sorted((self.kdir / "intree").glob("*.ko"))}


# --- configuration ----------------------------------------------------------------------------


def parse_config(text: str) -> dict[str, str]:
    """Kconfig lines as {name: value}; "is not set" is "n"; the last line of a name wins."""
    values = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set", line.strip())
        if match:
            name, value, unset = match.groups()
            values[unset or name] = "n" if unset else value
    return values


def wanted_config(series: str, flavour: str) -> dict[str, str]:
    """The options of the fragments; later ones override: common, series, machine, flavour, series and flavour."""
    values: dict[str, str] = {}
    for name in ("common", series, ARCHES[flavour], flavour, f"{series}-{flavour}"):
        path = FRAGMENTS / f"{name}.config"
        if path.exists():
            values.update(parse_config(path.read_text(encoding="utf-8")))
    return values


def config_text(values: dict[str, str]) -> str:
    """{name: value} as the lines of a .config."""
    return "".join(f"# {name} is not set\n" if value == "n" else f"{name}={value}\n" for name, value in values.items())


def missing_options(wanted: dict[str, str], built: dict[str, str]) -> list[str]:
    """Options of `wanted` that `built` does not have, as "CONFIG_X=y (is n)"."""
    return [
        f"{name}={value} (is {built.get(name, 'n')})" for name, value in wanted.items() if built.get(name, "n") != value
    ]


def compiler_version() -> str:
    """The output of gcc -v: its version, target and configuration."""
    done = subprocess.run(["gcc", "-v"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingTools(f"gcc does not run: {done.stderr.strip()}")
    return done.stderr


def configuration_key(series: str, flavour: str) -> str:
    """Hash of a kernel's configuration and edits, independent of the compiler and the mirror."""
    return key_of(wanted_config(series, flavour), edits_key(series))


# --- build ------------------------------------------------------------------------------------


def jobs() -> int:
    """Number of parallel compilers: the CPUs that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def run_make(words: list[str], log: Path, step: str, expected: int, report: Report) -> None:
    """Run make with its output in `log`; raises BuildFailed, with the last lines of that, or NoSpace."""
    env = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        # fixed values, for the same bytes on every machine and day
        "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
        "KBUILD_BUILD_USER": "lbe",
        "KBUILD_BUILD_HOST": "testbed",
        "KBUILD_BUILD_VERSION": "1",
    }
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KDIR", "ARCH", "CROSS_COMPILE", "KBUILD_OUTPUT"):
        env.pop(name, None)  # may be set by a make that runs this program
    lines = 0
    with open(log, "ab") as out:
        process = subprocess.Popen(
            ["make", *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            report(step, 0, expected)
            for line in output(process):
                out.write(line)
                lines += 1
                report(step, lines, expected)
            process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 15)
                process.wait()
            output(process).close()
    if process.returncode:
        text = log.read_text(encoding="utf-8", errors="replace")
        if "No space left" in text:
            raise NoSpace(
                f"no space left in {log.parent} for the build; free some, or set LBE_CACHE to a folder on a larger disk"
            )
        telling = [t for t in text.splitlines() if re.search(r"error|Error|\*\*\*|undefined", t)]
        last = "\n".join("    " + t for t in (telling or text.splitlines())[-12:])
        raise BuildFailed(f"{step} failed (exit status {process.returncode}):\n{last}\n  log: {log}")


def configure(source: KernelSource, out: Path, arch: str, wanted: dict[str, str], log: Path) -> None:
    """Make out/.config and verify that it has all of `wanted`; raises ConfigMissing."""
    base = ["-C", str(source.path), f"O={out}", f"ARCH={arch}"]
    run_make([*base, "tinyconfig"], log, "configuring", 40, silent)
    with open(out / ".config", "a", encoding="ascii") as file:
        file.write(config_text(wanted))
    run_make([*base, "olddefconfig"], log, "configuring", 40, silent)
    built = parse_config((out / ".config").read_text(encoding="utf-8"))
    missing = missing_options(wanted, built)
    if missing:
        raise ConfigMissing(
            f"kernel {source.version} does not take these options of the fragments in "
            f"testbed/kernels/fragments (a dependency is missing, or the name changed): {', '.join(missing)}"
        )


# The folders of a build that module builds need; the object files, which are removed, are 80 % of its size.
KEEP_FOLDERS = ("scripts", "include", "arch", "intree", "tools")


def trim(out: Path) -> None:
    """Move the in-tree modules to out/intree and remove the files that a module build does not read."""
    intree = out / "intree"
    intree.mkdir()
    for module in sorted(out.rglob("*.ko")):
        if intree not in module.parents:
            module.rename(intree / module.name)
    for path in out.iterdir():
        if path.is_dir() and not path.is_symlink() and path.name not in KEEP_FOLDERS:
            remove(path)
        elif path.name.startswith("vmlinux") or path.suffix in (".o", ".a"):
            path.unlink()
    for path in out.rglob("*"):
        if path.is_relative_to(out / "scripts"):
            continue
        if path.suffix in (".o", ".a", ".cmd", ".mod", ".order", ".d") and not path.is_dir():
            path.unlink()


def relocate(out: Path, final: Path) -> None:
    """Replace the build folder's path, which newer kernels write into its Makefile, by the final path."""
    makefile = out / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    makefile.write_text(text.replace(str(out), str(final)), encoding="utf-8")


def build_key(source: KernelSource, wanted: dict[str, str]) -> str:
    """Hash of everything a kernel depends on: edited source, configuration, compiler, C library."""
    return key_of(FORMAT, source.key, wanted, compiler_version(), platform.libc_ver())


def load_build(folder: Path) -> KernelBuild:
    """The cache entry in `folder`."""
    facts = json.loads((folder / "build.json").read_text(encoding="utf-8"))
    return KernelBuild(
        linux=folder / "linux",
        kdir=folder,
        source=Path(facts["source"]),
        release=facts["release"],
        series=facts["series"],
        flavour=facts["flavour"],
        key=facts["key"],
    )


def ensure_kernel(spec: KernelSpec | None = None, progress: Report | None = None) -> KernelBuild:
    """The kernel of a spec, built if the cache has none; a cached one takes 0.1 s.

    Raises a KernelError: UnsupportedSeries, MissingTools, FetchFailed, NoSpace,
    ConfigMissing, BuildFailed. Of parallel calls, only one builds.
    """
    spec, report = spec or KernelSpec(), progress or silent
    check_spec(spec)
    kernels.check_tools({"gcc": "gcc"})
    source = ensure_source(spec.series, spec.source_dir, report)
    wanted = wanted_config(source.series, spec.flavour)
    key = build_key(source, wanted)
    final = cache_root() / "kernels" / f"{source.version}-{spec.flavour}-{key}"
    if (final / "build.json").exists():
        return load_build(final)
    with lock(f"kernel-{final.name}", report):
        if not (final / "build.json").exists():
            kernels.check_tools(kernels.TOOLS)
            build(source, spec.flavour, wanted, key, final, report)
    return load_build(final)


def build(
    source: KernelSource,
    flavour: str,
    wanted: dict[str, str],
    key: str,
    final: Path,
    report: Report,
) -> None:
    """Build in a temporary folder, which becomes `final` when the build is complete and verified."""
    final.parent.mkdir(exist_ok=True)
    need_space(final.parent, BUILD_MIB[flavour], f"building kernel {source.version} ({flavour})")
    logs = cache_root() / "logs"
    logs.mkdir(exist_ok=True)
    log = logs / f"{final.name}.log"
    log.unlink(missing_ok=True)
    remove(final)  # without build.json it is incomplete
    began = time.monotonic()
    with whole_entry(final) as out:
        report("configuring", 0, None)
        arch = ARCHES[flavour]
        target, image = IMAGES[arch]
        configure(source, out, arch, wanted, log)
        step = f"building kernel {source.version} ({flavour})"
        words = ["-C", str(source.path), f"O={out}", f"ARCH={arch}", f"-j{jobs()}", target, "modules"]
        run_make(words, log, step, EXPECTED_LINES[flavour], report)
        built = parse_config((out / ".config").read_text(encoding="utf-8"))
        missing = missing_options(wanted, built)
        if missing:
            raise ConfigMissing(f"the build changed its configuration: {', '.join(missing)}")
        release = (out / "include/config/kernel.release").read_text(encoding="ascii").strip()
        if image != "linux":
            shutil.move(out / image, out / "linux")
            remove((out / image).parent)
        trim(out)
        relocate(out, final)
        facts = {
            "release": release,
            "series": source.series,
            "version": source.version,
            "flavour": flavour,
            "key": key,
            "source": str(source.path),
            "compiler": compiler_version().splitlines()[-1],
            "built_in_s": round(time.monotonic() - began),
        }
        (out / "build.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    report(f"kernel {release} ({flavour}): {final}, {size_mib(final)} MiB", 0, None)


# --- command line -----------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command line of this module."""
    top = argparse.ArgumentParser(prog="python3 -m testbed.kernels.build", description=__doc__.split("\n")[0])
    verbs = top.add_subparsers(dest="verb", required=True)
    for verb, text in (
        ("build", "build a kernel (or find it in the cache) and print its build folder"),
        ("path", "the same, silently"),
        ("source", "print the path of the source tree, fetched if need be"),
    ):
        sub = verbs.add_parser(verb, help=text)
        if verb == "source":
            sub.add_argument("series", nargs="?", default=DEFAULT_SERIES)
        else:
            sub.add_argument("--series", default=DEFAULT_SERIES, help=", ".join(SUITES))
            sub.add_argument("--flavour", default="plain", help=", ".join(FLAVOURS))
        sub.add_argument("--kernel-source", type=Path, metavar="DIR", help="unpacked kernel source")
    verbs.add_parser("list", help="what the cache holds, with sizes")
    verbs.add_parser("prune", help="remove sources and kernels that are out of date, and copies of own sources")
    return top


def list_cache() -> None:
    """Print the cache's sources and kernels."""
    root = cache_root()
    for name in ("packages", "sources", "kernels"):
        for path in sorted((root / name).glob("[!.]*")):
            mib = size_mib(path) if path.is_dir() else path.stat().st_size >> 20
            print(f"{mib:6d} MiB  {path}")


def prune_cache() -> None:
    """Remove sources and kernels that do not correspond to the current edits, fragments and compiler."""
    root = cache_root()
    keep = set()
    for series in SUITES:
        path = newest_source(series, edits_key(series))
        if path:
            source = KernelSource(path, *tree_version(path), path.name)
            keep.add(path)
            for flavour in FLAVOURS:
                key = build_key(source, wanted_config(series, flavour))
                keep.add(root / "kernels" / f"{source.version}-{flavour}-{key}")
    for path in [*(root / "sources").glob("[!.]*"), *(root / "kernels").glob("[!.]*")]:
        if path not in keep:
            print(f"removing {size_mib(path)} MiB: {path}")
            remove(path)


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    args = parser().parse_args(argv)
    progress = silent if args.verb in ("path", "list", "prune") else make_progress()
    try:
        if args.verb == "list":
            list_cache()
        elif args.verb == "prune":
            prune_cache()
        elif args.verb == "source":
            print(ensure_source(args.series, args.kernel_source, progress).path)
        else:
            spec = KernelSpec(args.series, args.flavour, args.kernel_source)
            print(ensure_kernel(spec, progress).kdir)
    except LbeError as error:
        print(f"{parser().prog}: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("interrupted; nothing half-built is left", file=sys.stderr)
        return 130
    finally:
        if hasattr(progress, "close"):
            progress.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
