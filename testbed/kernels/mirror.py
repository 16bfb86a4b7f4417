# SPDX-License-Identifier: GPL-2.0
"""Debian's packages of kernel sources: finds the mirror of this machine and fetches from it with a private apt."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..base.cache import cache_root, lock, need_space, whole_entry
from ..base.errors import FetchFailed, KernelError, NoSpace
from ..base.progress import Report, silent
from . import series as kernels
from .series import SUITES, key_of

DEBIAN_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
)

FETCH_TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg"}
# Files of the source that neither user mode nor checkpatch needs: they are not unpacked or copied.
UNPACK_WITHOUT = (
    ".git",
    "Documentation/*/*",
    # the Kconfig files of all architectures are read, so only their code is left out
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
    # left by a build in the source tree; with them the kernel's make refuses O=
    ".config",
    "include/config",
    "include/generated",
    "arch/*/include/generated",
    "*.o",
    "*.ko",
    "*.cmd",
)


# --- the mirror -----------------------------------------------------------------------------


@dataclass(frozen=True)
class AptEntry:
    """A repository in the configuration of the system's apt."""

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
    """All repositories of the system's apt, in the order of its configuration files."""
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
    """URI of a mirror of Debian's main archive, and the keyring to verify it.

    $LBE_DEBIAN_MIRROR has precedence over the first one of the system's apt. Raises FetchFailed.
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
    """An apt with its own lists, cache and status; it does not touch those of the system."""

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
        # #clear: the system's hooks (docker-clean, PackageKit) would act on the system's cache.
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
            # As root, apt would otherwise change to a user without write permission here.
            'APT::Sandbox::User "root";\n'
            'Acquire::Languages "none";\n'
            'Acquire::Retries "3";\n'
            'Acquire::http::Timeout "30";\n'
            'Acquire::https::Timeout "30";\n'
            # An expired index is accepted: it is still signed, an outdated mirror or a snapshot of the
            # archive has the kernel too, and nothing fetched here is installed.
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
        """Turn apt's messages into one error that says what to do."""
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
            return FetchFailed(f"the mirror's index has a date in the future: set this machine's clock\n{short}")
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
        """Download the package into `into`; apt checks its hash."""
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
    """Total size of the packages below some folders, complete or partial, bytes."""
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
        """Report until the block ends."""
        while not self.stop.wait(1.0):
            self.report(self.step, self.measure(), self.total)

    def __enter__(self) -> None:
        self.report(self.step, 0, self.total)
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()


def ensure_package(series: str, report: Report) -> Path:
    """The source package of a series in the cache, downloaded if necessary."""
    folder = cache_root() / "packages"
    folder.mkdir(exist_ok=True)
    have = sorted(folder.glob(f"linux-source-{series}_*.deb"), key=lambda p: p.stat().st_mtime)
    if have:
        return have[-1]
    kernels.check_tools(FETCH_TOOLS)
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
    """Standard output of a process, a pipe."""
    assert process.stdout is not None  # all processes are started with stdout=PIPE
    return process.stdout


def run_pipeline(what: str, *commands: list[str]) -> None:
    """Run commands joined by pipes; raises FetchFailed or NoSpace with the first line of standard error."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        running: list[subprocess.Popen[bytes]] = []
        try:
            for command in commands:
                source = running[-1].stdout if running else None
                running.append(
                    subprocess.Popen(command, stdin=source or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
                )
                if source:
                    source.close()  # so that the writer gets SIGPIPE if the reader ends
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
    """tar's options that exclude UNPACK_WITHOUT below `prefix`."""
    return [f"--exclude={prefix}/{pattern}" for pattern in UNPACK_WITHOUT]


def unpack(deb: Path, into: Path) -> None:
    """Unpack the needed files of a linux-source package."""
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
        deb.unlink(missing_ok=True)  # a broken package would fail again
        raise


def ensure_part(series: str, part: str, progress: Report | None = None) -> Path:
    """An unedited folder of the series' source that builds do not need, such as the selftests.

    `part` is relative to the top of the source. Raises the same errors as ensure_source().
    """
    report = progress or silent
    with lock(f"part-{series}", report):
        deb = ensure_package(series, report)
        name = deb.name.split("_")[0]
        final = cache_root() / "parts" / f"{deb.stem}-{key_of(part)}"
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
    """Copy the needed files of a user's source tree."""
    run_pipeline(
        f"copying {tree}",
        ["tar", "-c", "-C", str(tree), *tar_without("."), "-f", "-", "."],
        ["tar", "-x", "-C", str(into), "--no-same-owner", "-f", "-"],
    )
