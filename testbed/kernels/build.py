# SPDX-License-Identifier: GPL-2.0
"""Kernels for the testbed: fetch the source, build for user mode (flavour "race": for QEMU), keep in the cache.

    source(series) -> edits -> configuration -> build -> verified, trimmed cache entry

The source is Debian's `linux-source-<series>` package, had with an apt configuration
of its own (the system's apt is only read, for the mirror), or a folder of the user's,
of which a private copy is made.

Command line:
    python3 -m testbed.kernels.build build  [--series S] [--flavour F] [--kernel-source DIR]
    python3 -m testbed.kernels.build source [S] [--kernel-source DIR]    prints the source's path
    python3 -m testbed.kernels.build path   [--series S] [--flavour F]   prints the KDIR
    python3 -m testbed.kernels.build list | prune                        what the cache holds; drop what is stale
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from ..base.cache import cache_root, lock, need_space, remove, size_mib, whole_entry
from ..base.errors import (
    BuildFailed,
    ConfigMissing,
    FetchFailed,
    KernelError,
    LbeError,
    MissingTools,
    NoSpace,
    UnsupportedSeries,
)
from ..base.progress import Report, make_progress, silent

HERE = Path(__file__).resolve().parent
FRAGMENTS = HERE / "fragments"

#: where none is named; `make check SERIES=7.2` and any command by the variable
DEFAULT_SERIES = os.environ.get("LBE_SERIES") or "6.12"
# series -> the Debian suite that carries linux-source-<series>
SUITES = {"6.1": "bookworm", "6.12": "trixie", "7.2": "trixie-backports"}
# flavour -> architecture: user mode, or a whole machine in QEMU
ARCHES = {"plain": "um", "sanitizer": "um", "race": "x86_64"}
FLAVOURS = tuple(ARCHES)
USER_MODE_FLAVOURS = tuple(flavour for flavour, arch in ARCHES.items() if arch == "um")
# architecture -> make's target, and the file to boot that it leaves
IMAGES = {"um": ("linux", "linux"), "x86_64": ("bzImage", "arch/x86/boot/bzImage")}
# A source of one's own may be any series that include/lbe/compat.h spans.
OLDEST, NEWEST = (6, 1), (7, 2)

# Measured: package, unpacked source, and object files before they are trimmed.
SOURCE_MIB, BUILD_MIB = 1200, {"plain": 400, "sanitizer": 1500, "race": 2000}
# Lines that make prints in a whole build; only the bar's scale hangs on it. Measured.
EXPECTED_LINES = {"plain": 1400, "sanitizer": 1500, "race": 1950}
FORMAT = 1  # counts changes of what a cache entry holds

# program -> Debian package
TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "xz": "xz-utils",
    "perl": "perl",
    "awk": "mawk",
}
FETCH_TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg"}

# What user mode needs of the source, and checkpatch: the rest is neither unpacked nor copied.
UNPACK_WITHOUT = (
    ".git",
    "Documentation/*/*",
    # Kconfig files of all architectures are read: only their code stays away
    "arch/[!ux]*.[chS]",
    "arch/*.dts*",
    "drivers/gpu/*.[chS]",
    "drivers/media/*.[chS]",
    "drivers/infiniband/*.[chS]",
    "drivers/staging/*.[chS]",
    "drivers/scsi/*.[chS]",
    "drivers/net/ethernet/*.[chS]",
    "drivers/net/wireless/*.[chS]",
    "drivers/net/dsa/*.[chS]",
    "sound/*.[chS]",
    "tools/testing",
    "tools/perf",
    # left by a build in place, which the kernel's make does not take beside O=
    ".config",
    "include/config",
    "include/generated",
    "arch/*/include/generated",
    "*.o",
    "*.ko",
    "*.cmd",
)

DEBIAN_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
)


@dataclass(frozen=True)
class KernelSpec:
    """Which kernel: a series of SUITES, a flavour of FLAVOURS, a source of one's own or None."""

    series: str = DEFAULT_SERIES
    flavour: str = "plain"
    source_dir: Path | None = None


@dataclass(frozen=True)
class KernelSource:
    """An edited, pristine source tree in the cache; `version` as 6.12.107."""

    path: Path
    series: str
    version: str
    key: str


@dataclass(frozen=True)
class KernelBuild:
    """A cache entry: the kernel to boot and the folder that modules build against."""

    linux: Path
    kdir: Path
    source: Path
    release: str
    series: str
    flavour: str
    key: str

    @property
    def arch(self) -> str:
        """As make's ARCH names it."""
        return ARCHES[self.flavour]

    @property
    def intree(self) -> dict[str, Path]:
        """Name -> path of the in-tree modules that were built along (tcp_vegas, ...)."""
        return {p.stem: p for p in sorted((self.kdir / "intree").glob("*.ko"))}


# --- edits of the source ----------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """One change: in `path`, exactly one match of `pattern` becomes `text`."""

    path: str
    pattern: str
    text: str


def edits(series: str) -> list[Edit]:
    """The changes that the source of a series gets.

    HZ 1000 instead of user mode's 100: the in-tree congestion controls, the delayed-ACK
    timer, RTO and tail-loss probe count jiffies. At 10 ms a jiffy is 15 % of a queue
    of 67 ms, all that TCP-LP's threshold is about, and every timer is late by up to 10 %
    of a round trip; 1 ms is the finest that the kernel's configurations offer.

    os_getrandom(): see kernel/os_getrandom.inc.

    _mix_pool_bytes(): nothing else goes into the random numbers. Interrupts mix in the
    clock, so that two runs that differ in one tc line, hence by a microsecond, would part
    with the first reseed, and nobody could compare two queues under the same numbers.

    KUNIT_LOG_SIZE: before 6.6 debugfs keeps 512 bytes of a test case's log and cuts off the
    rest, so that a failure cannot be read back whole; the line buffer, on the stack, stays.
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
    return always + (small_log if series_number(series) < (6, 6) else [])


def series_number(series: str) -> tuple[int, ...]:
    """ "6.12" as (6, 12), to compare by."""
    return tuple(int(number) for number in series.split("."))


def apply_edits(tree: Path, series: str) -> None:
    """Edit a tree that is ours alone; raises BuildFailed where the source looks otherwise."""
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
                f"{edit.pattern!r}, where 1 was expected: testbed/kernels/build.py edits() must learn it"
            )
        # A new file, never a write in place: a hard or reflinked copy stays whole.
        fresh = path.with_name(path.name + ".lbe")
        fresh.write_text(new, encoding="utf-8")
        fresh.chmod(path.stat().st_mode)
        fresh.replace(path)


def edits_key(series: str) -> str:
    """Hash of the edits and of what is unpacked."""
    return digest([asdict(e) for e in edits(series)], UNPACK_WITHOUT)


def configuration_key(series: str, flavour: str) -> str:
    """Hash of what is asked of a kernel, whatever compiler or mirror it comes from."""
    return digest(wanted_config(series, flavour), edits_key(series))


def digest(*parts: object) -> str:
    """Twelve hexadecimal digits for any plain data."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --- the series and the tools -------------------------------------------------------------


def check_spec(spec: KernelSpec) -> None:
    """Raises UnsupportedSeries for a series or flavour that is not known."""
    if spec.flavour not in FLAVOURS:
        raise UnsupportedSeries(f"kernel flavour {spec.flavour!r} is not known; use one of: {', '.join(FLAVOURS)}")
    if spec.series not in SUITES and spec.source_dir is None:
        raise UnsupportedSeries(f"kernel series {spec.series!r} is not supported; use one of: {', '.join(SUITES)}")


def check_tools(tools: dict[str, str]) -> None:
    """Raises MissingTools naming the packages; the machine must be x86-64."""
    if platform.machine() != "x86_64":
        raise KernelError(f"user-mode kernels run on x86_64 only, this machine is {platform.machine()}")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        packages = " ".join(sorted({tools[tool] for tool in missing}))
        raise MissingTools(f"not installed: {', '.join(missing)}. Install with: apt-get install {packages}")


# --- the mirror -----------------------------------------------------------------------------


@dataclass(frozen=True)
class AptEntry:
    """One repository of the system's apt."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    keyring: str | None


def one_line_entries(text: str) -> list[AptEntry]:
    """The `deb [options] uri suite component...` lines of a sources.list."""
    entries = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if not match:
            continue
        options, uri, suite, components = match.groups()
        signed = re.search(r"signed-by=(\S+)", options or "", re.IGNORECASE)
        keyring = signed.group(1) if signed else None
        entries.append(AptEntry(uri, (suite,), tuple(components.split()), keyring))
    return entries


def deb822_entries(text: str) -> list[AptEntry]:
    """The enabled stanzas of type deb of a .sources file."""
    entries = []
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace():
                fields[name] = fields.get(name, "") + " " + line.strip()
            elif ":" in line:
                name, value = line.split(":", 1)
                name = name.strip().lower()
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        keyring = fields.get("signed-by", "").strip()
        for uri in fields.get("uris", "").split():
            entries.append(
                AptEntry(
                    uri,
                    tuple(fields.get("suites", "").split()),
                    tuple(fields.get("components", "").split()),
                    keyring if keyring.startswith("/") else None,
                )
            )
    return entries


def system_entries(etc_apt: Path = Path("/etc/apt")) -> list[AptEntry]:
    """Every repository that the system's apt has, in the order of its files."""
    entries: list[AptEntry] = []
    folder = etc_apt / "sources.list.d"
    parts = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in [etc_apt / "sources.list", *parts]:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if path.suffix == ".list":
            entries += one_line_entries(text)
        elif path.suffix == ".sources":
            entries += deb822_entries(text)
    return entries


DEBIAN_SUITE = re.compile(
    r"(oldoldstable|oldstable|stable|testing|unstable|sid|experimental|"
    r"bullseye|bookworm|trixie|forky|duke)(-updates|-backports)?$"
)


def debian_mirror(etc_apt: Path = Path("/etc/apt")) -> tuple[str, Path]:
    """URI of a mirror of Debian's main archive, and the keyring that signs it.

    $LBE_DEBIAN_MIRROR wins; else the first of the system's own. Raises FetchFailed.
    """
    system_keyring = None
    mirror = os.environ.get("LBE_DEBIAN_MIRROR")
    if not mirror:
        for entry in system_entries(etc_apt):
            if entry.uri.split(":", 1)[0] in ("cdrom", "file", "copy"):
                continue
            if "main" in entry.components and any(map(DEBIAN_SUITE.match, entry.suites)):
                mirror, system_keyring = entry.uri, entry.keyring
                break
    if not mirror:
        raise FetchFailed(
            "this system's apt knows no mirror of Debian's archive; set LBE_DEBIAN_MIRROR to the "
            "URI of one, or give an unpacked kernel source with --kernel-source DIR"
        )
    keyrings = [*DEBIAN_KEYRINGS, *([Path(system_keyring)] if system_keyring else [])]
    for keyring in keyrings:
        if keyring.is_file():
            return mirror, keyring
    raise FetchFailed(
        f"no Debian archive keyring ({DEBIAN_KEYRINGS[-1]}). Install with: apt-get install debian-archive-keyring"
    )


# --- fetching -------------------------------------------------------------------------------


class PrivateApt:
    """An apt with lists, cache and status of its own; the system's is not touched."""

    def __init__(self, folder: Path, series: str, mirror: str, keyring: Path):
        self.folder, self.suite = folder, SUITES[series]
        self.package = f"linux-source-{series}"
        for name in ("lists/partial", "archives/partial", "parts", "cache"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text(
            f"deb [arch=amd64 signed-by={keyring} target=Packages] {mirror} {self.suite} main\n",
            encoding="ascii",
        )
        # #clear: the system's hooks (docker-clean, PackageKit) would work on its own cache.
        (folder / "apt.conf").write_text(
            "#clear APT::Update::Pre-Invoke;\n"
            "#clear APT::Update::Post-Invoke;\n"
            "#clear APT::Update::Post-Invoke-Success;\n"
            "#clear DPkg::Post-Invoke;\n"
            f'Dir::Etc::sourcelist "{folder}/sources.list";\n'
            f'Dir::Etc::sourceparts "{folder}/parts";\n'
            f'Dir::Etc::preferences "{folder}/none";\n'
            f'Dir::Etc::preferencesparts "{folder}/parts";\n'
            f'Dir::State "{folder}";\n'
            f'Dir::State::lists "{folder}/lists";\n'
            f'Dir::State::status "{folder}/status";\n'
            f'Dir::State::extended_states "{folder}/extended_states";\n'
            f'Dir::Cache "{folder}/cache";\n'
            f'Dir::Cache::archives "{folder}/archives";\n'
            f'Dir::Log "{folder}";\n'
            'APT::Architecture "amd64";\n'
            'APT::Architectures "amd64";\n'
            # As root, apt would drop to a user who cannot write here.
            'APT::Sandbox::User "root";\n'
            'Acquire::Languages "none";\n'
            'Acquire::Retries "3";\n'
            'Acquire::http::Timeout "30";\n'
            'Acquire::https::Timeout "30";\n'
            # An index past its date is signed all the same: a mirror that lags, or an archive of one
            # day, has the kernel too, and nothing from here is installed.
            'Acquire::Check-Valid-Until "false";\n'
            'APT::Get::List-Cleanup "true";\n',
            encoding="ascii",
        )

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """apt-get's standard output; raises FetchFailed, NoSpace."""
        command = ["apt-get", "-q", "-c", str(self.folder / "apt.conf"), *words]
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", check=False)
        complaints = [
            line
            for line in (done.stderr + done.stdout).splitlines()
            if line.startswith(("E:", "W:", "Err:", "Error:", "Warning:"))
        ]
        # `update` returns 0 when a mirror cannot be reached, and warns.
        failed = done.returncode != 0 or any("Failed to fetch" in c for c in complaints)
        if failed:
            raise self.explain("\n".join(complaints) or done.stderr.strip())
        return done.stdout

    def explain(self, said: str) -> KernelError:
        """apt's complaints as one error that says what to do."""
        short = "\n".join("    " + line for line in said.splitlines()[-6:])
        if "No space left" in said or "don't have enough free space" in said:
            return NoSpace(
                f"no space left in {self.folder} for {self.package}; free some, or set LBE_CACHE "
                f"to a folder on a larger disk\n{short}"
            )
        if "Unable to locate package" in said or "has no installation candidate" in said:
            return FetchFailed(
                f"the mirror's suite {self.suite} has no {self.package} (any more); give an "
                f"unpacked kernel source with --kernel-source DIR\n{short}"
            )
        if re.search(r"NO_PUBKEY|EXPKEYSIG|not signed|BADSIG", said):
            return FetchFailed(
                f"the mirror's suite {self.suite} is not signed by the Debian archive keyring; "
                f"update the package debian-archive-keyring\n{short}"
            )
        if re.search(r"Release file .* not valid yet", said):
            return FetchFailed(f"the mirror's index is of a time to come: set this machine's clock\n{short}")
        if re.search(
            r"Temporary failure|Could not (connect|resolve)|Unable to connect|timed out"
            r"|Network is unreachable|Connection refused",
            said,
        ):
            return FetchFailed(
                f"cannot reach the mirror for {self.package}: is this machine online (and is "
                "apt's proxy set)? Offline, give an unpacked kernel source with "
                f"--kernel-source DIR\n{short}"
            )
        return FetchFailed(f"apt could not get {self.package}; try again\n{short}")

    def download(self, into: Path, report: Report) -> Path:
        """Put the package into `into`; apt checks its hash."""
        report(f"reading the package index of {self.suite}", 0, None)
        self.run("update")
        uris = self.run("download", "--print-uris", self.package)
        match = re.search(r"^'[^']*' (\S+) (\d+) \S+", uris, re.MULTILINE)
        if not match:
            raise self.explain(f"E: Unable to locate package {self.package}")
        name, size = match.group(1), int(match.group(2))
        step = f"downloading {name.split('_')[0]} ({size >> 20} MiB)"
        with Watched(step, size, report, lambda: folder_bytes(into, self.folder / "archives")):
            self.run("download", self.package, cwd=into)
        debs = list(into.glob(f"{self.package}_*.deb"))
        if len(debs) != 1 or debs[0].stat().st_size != size:
            raise FetchFailed(f"the download of {self.package} is broken; try again")
        return debs[0]


def folder_bytes(*folders: Path) -> int:
    """Bytes of the packages below some folders, finished or partial."""
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                if "linux-source" in path.name:
                    total += path.stat().st_size
            except OSError:
                continue
    return total


class Watched:
    """Report `measure()` of `total` once a second while the block runs."""

    def __init__(self, step: str, total: int, report: Report, measure: Callable[[], int]) -> None:
        import threading

        self.step, self.total, self.report, self.measure = step, total, report, measure
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self) -> None:
        """Until the block ends."""
        while not self.stop.wait(1.0):
            self.report(self.step, self.measure(), self.total)

    def __enter__(self) -> None:
        self.report(self.step, 0, self.total)
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()


def ensure_package(series: str, report: Report) -> Path:
    """The series' source package in the cache, downloaded if need be."""
    folder = cache_root() / "packages"
    folder.mkdir(exist_ok=True)
    have = sorted(folder.glob(f"linux-source-{series}_*.deb"), key=lambda p: p.stat().st_mtime)
    if have:
        return have[-1]
    check_tools(FETCH_TOOLS)
    mirror, keyring = debian_mirror()
    need_space(folder, 250, f"the package linux-source-{series}")
    with tempfile.TemporaryDirectory(prefix=".apt.", dir=folder) as work:
        apt = PrivateApt(Path(work), series, mirror, keyring)
        into = Path(work) / "into"
        into.mkdir()
        deb = apt.download(into, report)
        final = folder / deb.name
        deb.rename(final)
    return final


def output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe that a process writes to."""
    assert process.stdout is not None  # all are started with stdout=PIPE
    return process.stdout


def run_pipeline(what: str, *commands: list[str]) -> None:
    """Run commands joined by pipes; raises FetchFailed or NoSpace with what one says."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        running: list[subprocess.Popen[bytes]] = []
        try:
            for command in commands:
                source = running[-1].stdout if running else None
                running.append(
                    subprocess.Popen(command, stdin=source or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
                )
                if source:
                    source.close()  # so that a reader's end reaches the writer
            output(running[-1]).read()
            codes = [process.wait() for process in running]
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                output(process).close()
        if any(codes):
            errors.seek(0)
            said = errors.read().strip()
            if "No space left" in said:
                raise NoSpace(f"no space left for {what}; free some, or set LBE_CACHE to a folder on a larger disk")
            first = said.splitlines()[0] if said else f"exit status {codes}"
            raise FetchFailed(f"{what} failed: {first}; try again")


def tar_without(prefix: str) -> list[str]:
    """tar's options that leave UNPACK_WITHOUT out below `prefix`."""
    return [f"--exclude={prefix}/{pattern}" for pattern in UNPACK_WITHOUT]


def unpack(deb: Path, into: Path) -> None:
    """Unpack what we need of a linux-source package."""
    name = deb.name.split("_")[0]
    try:
        run_pipeline(
            f"unpacking {deb.name}",
            ["dpkg-deb", "--fsys-tarfile", str(deb)],
            ["tar", "-xO", "-f", "-", f"./usr/src/{name}.tar.xz"],
            ["xz", "-dc", "-T0"],
            ["tar", "-x", "-C", str(into), "--strip-components=1", "--no-same-owner", *tar_without(name), "-f", "-"],
        )
    except FetchFailed:
        deb.unlink(missing_ok=True)  # it would not unpack the next time either
        raise


def ensure_part(series: str, part: str, progress: Report | None = None) -> Path:
    """A folder of the series' source that builds do without, unedited, such as its selftests.

    `part` is relative to the source's top. Raises as ensure_source() does.
    """
    report = progress or silent
    with lock(f"part-{series}", report):
        deb = ensure_package(series, report)
        name = deb.name.split("_")[0]
        final = cache_root() / "parts" / f"{deb.stem}-{digest(part)}"
        if not final.is_dir():
            report(f"unpacking {part} of kernel {series}", 0, None)
            with whole_entry(final) as work:
                run_pipeline(
                    f"unpacking {deb.name}",
                    ["dpkg-deb", "--fsys-tarfile", str(deb)],
                    ["tar", "-xO", "-f", "-", f"./usr/src/{name}.tar.xz"],
                    ["xz", "-dc", "-T0"],
                    ["tar", "-x", "-C", str(work), "--no-same-owner", "-f", "-", f"{name}/{part}"],
                )
        return final / name / part


def copy_tree(tree: Path, into: Path) -> None:
    """Copy what we need of a source folder of the user's."""
    run_pipeline(
        f"copying {tree}",
        ["tar", "-c", "-C", str(tree), *tar_without("."), "-f", "-", "."],
        ["tar", "-x", "-C", str(into), "--no-same-owner", "-f", "-"],
    )


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
    """Changes when any file of the user's source does: paths, sizes and times."""
    marks = []
    for folder, names, files in os.walk(tree):
        names[:] = sorted(n for n in names if n != ".git")
        for name in sorted(files):
            state = os.lstat(os.path.join(folder, name))
            marks.append((folder, name, state.st_size, state.st_mtime_ns))
    return digest(marks)


def ensure_source(
    series: str = DEFAULT_SERIES, source_dir: Path | None = None, progress: Report | None = None
) -> KernelSource:
    """The edited source tree of a series in the cache.

    With `source_dir` (never written to) its own series counts. Raises UnsupportedSeries,
    MissingTools, FetchFailed, NoSpace.
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
        key = digest(version, fingerprint(tree), edits_key(series))
        final = cache_root() / "sources" / f"{version}-own-{key}"
    else:
        check_spec(KernelSpec(series))
        key = edits_key(series)
        final = newest_source(series, key)
    if final is None or not final.is_dir():
        check_tools({**TOOLS, **({} if source_dir else FETCH_TOOLS)})
        with lock(f"source-{series}", report):
            final = final or newest_source(series, key)
            if final is None or not final.is_dir():
                final = unpack_source(series, key, final, source_dir, report)
    series, version = tree_version(final)
    return KernelSource(final, series, version, final.name)


def unpack_source(series: str, key: str, final: Path | None, own: Path | None, report: Report) -> Path:
    """Fill the cache entry of a source: from the package, or `final` from the user's own."""
    folder = cache_root() / "sources"
    folder.mkdir(exist_ok=True)
    deb = None if own else ensure_package(series, report)
    if deb:
        # linux-source-6.12_6.12.107-1_all.deb -> 6.12.107-1
        final = folder / f"{deb.name.split('_')[1].replace('~', '.')}-{key}"
    assert final is not None  # a tree of the user's own comes with its entry
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
    """The cached source of a series with today's edits, or None."""
    found = [path for path in (cache_root() / "sources").glob(f"{series}.*-{key}") if "-own-" not in path.name]
    return max(found, key=lambda p: p.stat().st_mtime, default=None)


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
    """What the fragments ask for: common, then the series', then the flavour's."""
    values: dict[str, str] = {}
    for name in ("common", series, flavour, f"{series}-{flavour}"):
        path = FRAGMENTS / f"{name}.config"
        if path.exists():
            values.update(parse_config(path.read_text(encoding="utf-8")))
    return values


def config_text(values: dict[str, str]) -> str:
    """{name: value} as the lines of a .config."""
    return "".join(f"# {name} is not set\n" if value == "n" else f"{name}={value}\n" for name, value in values.items())


def missing_options(wanted: dict[str, str], built: dict[str, str]) -> list[str]:
    """What of `wanted` is not in `built`, as "CONFIG_X=y (is n)"."""
    return [
        f"{name}={value} (is {built.get(name, 'n')})" for name, value in wanted.items() if built.get(name, "n") != value
    ]


def compiler_version() -> str:
    """gcc -v, whole: its version, target and configuration."""
    done = subprocess.run(["gcc", "-v"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingTools(f"gcc does not run: {done.stderr.strip()}")
    return done.stderr


# --- build ------------------------------------------------------------------------------------


def jobs() -> int:
    """Compilers at a time: the processors that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def run_make(words: list[str], log: Path, step: str, expected: int, report: Report) -> None:
    """Run make into `log`; raises BuildFailed or NoSpace with the end of it."""
    env = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        # The same bytes on every machine and day
        "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
        "KBUILD_BUILD_USER": "lbe",
        "KBUILD_BUILD_HOST": "testbed",
        "KBUILD_BUILD_VERSION": "1",
    }
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KDIR", "ARCH", "CROSS_COMPILE", "KBUILD_OUTPUT"):
        env.pop(name, None)  # of a make that called us
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
    """Make out/.config and prove that it has all of `wanted`; raises ConfigMissing."""
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


# Of a build, what modules are built against; the object files are 80 % of it.
KEEP_FOLDERS = ("scripts", "include", "arch", "intree", "tools")


def trim(out: Path) -> None:
    """Move the in-tree modules to out/intree and drop what a module build does not read."""
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
    """Newer kernels write the build folder's path into its Makefile: make it the final one."""
    makefile = out / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    makefile.write_text(text.replace(str(out), str(final)), encoding="utf-8")


def build_key(source: KernelSource, wanted: dict[str, str]) -> str:
    """What a kernel hangs on: source with its edits, configuration, compiler, C library."""
    return digest(FORMAT, source.key, wanted, compiler_version(), platform.libc_ver())


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


def ensure_kernel(spec: KernelSpec = KernelSpec(), progress: Report | None = None) -> KernelBuild:
    """The kernel of a spec, built if the cache has none; a built one costs 0.1 s.

    Raises a KernelError: UnsupportedSeries, MissingTools, FetchFailed, NoSpace,
    ConfigMissing, BuildFailed. Parallel calls build once.
    """
    report = progress or silent
    check_spec(spec)
    check_tools({"gcc": "gcc"})
    source = ensure_source(spec.series, spec.source_dir, report)
    wanted = wanted_config(source.series, spec.flavour)
    key = build_key(source, wanted)
    final = cache_root() / "kernels" / f"{source.version}-{spec.flavour}-{key}"
    if (final / "build.json").exists():
        return load_build(final)
    with lock(f"kernel-{final.name}", report):
        if not (final / "build.json").exists():
            check_tools(TOOLS)
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
    """Build into a temporary folder; `final` appears when all is done and verified."""
    final.parent.mkdir(exist_ok=True)
    need_space(final.parent, BUILD_MIB[flavour], f"building kernel {source.version} ({flavour})")
    logs = cache_root() / "logs"
    logs.mkdir(exist_ok=True)
    log = logs / f"{final.name}.log"
    log.unlink(missing_ok=True)
    remove(final)  # without build.json it is none of ours
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
    """Remove sources and kernels that today's edits, fragments and compiler do not lead to."""
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
    """Exit status: 0 done, 1 failed, 2 asked wrongly, 130 interrupted."""
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
