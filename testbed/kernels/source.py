# SPDX-License-Identifier: GPL-2.0
"""Kernel sources in the cache: fetched or copied, then edited."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from ..base.cache import cache_root, lock, need_space, whole_entry
from ..base.errors import BuildFailed, UnsupportedSeries
from ..base.progress import Report, silent
from . import mirror
from . import series as kernels
from .mirror import UNPACK_WITHOUT, copy_tree, ensure_package, unpack
from .series import DEFAULT_SERIES, FRAGMENTS, NEWEST, OLDEST, KernelSpec, check_spec, key_of, series_number

SOURCE_MIB = 1200  # measured


@dataclass(frozen=True)
class KernelSource:
    """A source tree in the cache, edited and never built in; `version` as 6.12.107."""

    path: Path
    series: str
    version: str
    key: str


# --- edits of the source ----------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """One change: in `path`, the only match of `pattern` is replaced by `text`."""

    path: str
    pattern: str
    text: str


def edits(series: str) -> list[Edit]:
    """The changes to the source of a series.

    HZ is 1000 instead of user mode's 100: the in-tree congestion controls, the delayed-ACK
    timer, the RTO and the tail-loss probe count jiffies. A jiffy of 10 ms would be 15 % of a
    queueing delay of 67 ms, in which TCP-LP's threshold lies, and every timer would be late by up
    to 10 % of a round trip. 1 ms is the finest tick that the kernel's configuration offers.

    os_getrandom(): see fragments/os_getrandom.inc.

    _mix_pool_bytes(): nothing else is mixed into the random numbers. Interrupts mix in the
    clock. Two runs that differ in one tc line, and so by a microsecond, would have different random
    numbers from the first reseed on, and two queues could not be compared under the same numbers.

    PTRACE_O_EXITKILL: before 6.12 the guest's processes go on as processes of the host if the kernel is killed. A loop
    in a guest would take a CPU until somebody ends it. Later series give them a death signal themselves.

    KUNIT_LOG_SIZE: before 6.6 debugfs keeps only 512 bytes of a test case's log, so that a
    failure cannot be read back completely. The line buffer, which is on the stack, keeps its size.
    """
    function = (FRAGMENTS / "os_getrandom.inc").read_text(encoding="utf-8")
    always = [
        Edit("arch/um/Kconfig", r"(config HZ\n\tint\n\tdefault )\d+\n", r"\g<1>1000\n"),
        Edit(
            "arch/um/os-Linux/util.c",
            r"ssize_t os_getrandom\(void \*buf, size_t len, unsigned int flags\)\n\{.*?\n\}\n",
            function.replace("\\", r"\\"),
        ),
        Edit("drivers/char/random.c", r"\tblake2s_update\(&input_pool\.hash, buf, len\);\n\}\n\n/\*", "}\n\n/*"),
    ]
    small_log = [
        Edit("include/kunit/test.h", r"(#define KUNIT_LOG_SIZE\t)512\n", r"\g<1>(64 * 1024)\n"),
        Edit("lib/kunit/test.c", r"char line\[KUNIT_LOG_SIZE\]", "char line[512]"),
    ]
    orphans = [
        Edit("arch/um/os-Linux/skas/process.c", rf"\(void \*\){gap}PTRACE_O_TRACESYSGOOD\)", text)
        for gap, text in (
            (" ", "(void *) (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))"),
            ("", "(void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))"),
        )
    ]
    number = series_number(series)
    return always + (small_log if number < (6, 6) else []) + (orphans if number < (6, 12) else [])


def apply_edits(tree: Path, series: str) -> None:
    """Edit a private tree; raises BuildFailed if an edit does not match the source exactly once."""
    for edit in edits(series):
        path = tree / edit.path
        try:
            old = path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise BuildFailed(f"{edit.path} is not in the kernel source: is it whole?") from error
        new, count = re.subn(edit.pattern, edit.text, old, flags=re.DOTALL)
        if count != 1:
            raise BuildFailed(
                f"{edit.path} of this kernel source has {count} places that match "
                f"{edit.pattern!r}, where 1 was expected: testbed/kernels/source.py edits() must learn it"
            )
        # Write a new file and rename it: a hard-linked copy of the old file is not changed.
        fresh = path.with_name(path.name + ".lbe")
        fresh.write_text(new, encoding="utf-8")
        fresh.chmod(path.stat().st_mode)
        fresh.replace(path)


def edits_key(series: str) -> str:
    """Hash of the edits and of what is unpacked."""
    return key_of([asdict(e) for e in edits(series)], UNPACK_WITHOUT)


# --- source ---------------------------------------------------------------------------------


def tree_version(tree: Path) -> tuple[str, str]:
    """(series, version) from a source's top Makefile, as ("6.12", "6.12.107")."""
    try:
        text = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnsupportedSeries(f"{tree} is no kernel source: {error.strerror} (Makefile)") from error
    fields = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", text, re.M))
    if not all(fields.get(f, "").isdigit() for f in ("VERSION", "PATCHLEVEL", "SUBLEVEL")):
        raise UnsupportedSeries(f"{tree} is no kernel source: its Makefile has no VERSION")
    series = f"{fields['VERSION']}.{fields['PATCHLEVEL']}"
    return series, f"{series}.{fields['SUBLEVEL']}{fields.get('EXTRAVERSION', '')}"


def fingerprint(tree: Path) -> str:
    """Hash of the paths, sizes and times of all files of a user's source tree."""
    marks = []
    for folder, names, files in os.walk(tree):
        names[:] = sorted(n for n in names if n != ".git")
        for name in sorted(files):
            state = os.lstat(os.path.join(folder, name))
            marks.append((folder, name, state.st_size, state.st_mtime_ns))
    return key_of(marks)


def ensure_source(
    series: str = DEFAULT_SERIES, source_dir: Path | None = None, progress: Report | None = None
) -> KernelSource:
    """The edited source tree of a series in the cache.

    With `source_dir`, which is never written to, the series of that tree is used. Raises
    UnsupportedSeries, MissingTools, FetchFailed, NoSpace.
    """
    report = progress or silent
    final: Path | None
    if source_dir is not None:
        tree = Path(source_dir).resolve()
        series, version = tree_version(tree)
        if not OLDEST <= series_number(series) <= NEWEST:
            raise UnsupportedSeries(
                f"{tree} is kernel {version}; the project's modules span "
                f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
            )
        report(f"looking at {tree}", 0, None)
        key = key_of(version, fingerprint(tree), edits_key(series))
        final = cache_root() / "sources" / f"{version}-own-{key}"
    else:
        check_spec(KernelSpec(series))
        key = edits_key(series)
        final = newest_source(series, key)
    if final is None or not final.is_dir():
        kernels.check_tools({**kernels.TOOLS, **({} if source_dir else mirror.FETCH_TOOLS)})
        with lock(f"source-{series}", report):
            final = final or newest_source(series, key)
            if final is None or not final.is_dir():
                final = unpack_source(series, key, final, source_dir, report)
    series, version = tree_version(final)
    return KernelSource(final, series, version, final.name)


def unpack_source(series: str, key: str, final: Path | None, own: Path | None, report: Report) -> Path:
    """Fill the cache entry of a source from Debian's package, or `final` from the user's tree `own`."""
    folder = cache_root() / "sources"
    folder.mkdir(exist_ok=True)
    deb = None if own else ensure_package(series, report)
    if deb:
        # linux-source-6.12_6.12.107-1_all.deb -> 6.12.107-1
        final = folder / f"{deb.name.split('_')[1].replace('~', '.')}-{key}"
    assert final is not None  # the caller names the entry of a user's tree
    need_space(folder, SOURCE_MIB, f"the source of kernel {series}")
    with whole_entry(final) as work:
        report(f"unpacking kernel {series}", 0, None)
        if own:
            copy_tree(own, work)
        elif deb:
            unpack(deb, work)
        apply_edits(work, series)
    return final


def newest_source(series: str, key: str) -> Path | None:
    """The newest cached source of a series with the current edits, or None."""
    found = [path for path in (cache_root() / "sources").glob(f"{series}.*-{key}") if "-own-" not in path.name]
    return max(found, key=lambda p: p.stat().st_mtime, default=None)
