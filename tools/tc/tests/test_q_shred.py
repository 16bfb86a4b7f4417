# SPDX-License-Identifier: GPL-2.0
"""q_shred.so under this machine's tc and that of each Debian release: stable ones, and the next one with the newest.

A release's tc comes from the mirror by the testbed's private apt, with its own libraries beside it.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from testbed.backends.uml import Uml
from testbed.base.cache import cache_root, lock, remove, whole_entry
from testbed.foreign import tctesting
from testbed.kernels.mirror import PrivateApt, debian_mirror
from testbed.kernels.series import DEFAULT_SERIES

REPO = Path(__file__).resolve().parents[3]
CASES = REPO / "sch_shred" / "tests" / "shred.json"
#: iproute2 6.1, 6.15, and the newest (7.2 when this was written; backports for trixie has none)
RELEASES = ("bookworm", "trixie", "forky")
LIBRARY_FOLDERS = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
#: what tc_abi.h declares: functions and variables that tc must export
DECLARED = re.compile(r"^(?!static)[a-z][\w\s*]*?\b(\w+)\(", re.MULTILINE)


def fetch(folder: Path, release: str) -> list[Path]:
    """The release's iproute2 and the libraries that it needs."""
    with tempfile.TemporaryDirectory(prefix=".apt.", dir=folder) as work:
        apt = PrivateApt(Path(work), DEFAULT_SERIES, *debian_mirror())
        sources = Path(work) / "sources.list"
        sources.write_text(sources.read_text().replace(f" {apt.suite} ", f" {release} "))
        apt.suite, apt.package = release, "iproute2"
        apt.run("update")
        wanted = apt.run("install", "--print-uris", "-y", "--no-install-recommends", "iproute2")
        names = re.findall(r"^'[^']*' ((?:iproute2|lib|zlib)[^_\s]*)_\S+\.deb", wanted, re.MULTILINE)
        into = folder / "debs"
        into.mkdir()
        apt.run("download", *names, cwd=into)
        return list(into.glob("*.deb"))


def ensure_tc(release: str) -> Path:
    """A folder with the release's tc as `tc`, made once."""
    final = cache_root() / "tc-releases" / release
    with lock(f"tc-release-{release}"):
        if final.is_dir():
            return final
        with whole_entry(final) as work:
            for deb in fetch(work, release):
                subprocess.run(["dpkg-deb", "-x", str(deb), str(work / "root")], check=True)
            remove(work / "debs")
            make_wrapper(work, final)
    return final


def tc_binary(folder: Path) -> Path:
    """The release's own tc, in whichever folder the package puts it."""
    return next(path for path in (folder / "root/sbin/tc", folder / "root/usr/sbin/tc") if path.is_file())


def make_wrapper(work: Path, final: Path) -> None:
    """`tc`, which runs the release's tc with the release's loader and libraries."""
    root = final / "root"
    have = [name for name in LIBRARY_FOLDERS if (work / "root" / name).is_dir()]
    loader = next(root / name for name in have if (work / "root" / name / "ld-linux-x86-64.so.2").exists())
    tc = root / tc_binary(work).relative_to(work / "root")
    libraries = ":".join(str(root / name) for name in have)
    wrapper = work / "tc"
    wrapper.write_text(f'#!/bin/sh\nexec {loader}/ld-linux-x86-64.so.2 --library-path {libraries} {tc} "$@"\n')
    wrapper.chmod(0o755)


@pytest.fixture(scope="module", params=RELEASES)
def tc(request: pytest.FixtureRequest) -> Path:
    return ensure_tc(request.param)


@pytest.fixture(scope="module")
def backend() -> Uml:
    made = Uml()
    made.prepare(["sch_shred"])
    return made


@pytest.mark.kunit
def test_tc_exports_what_the_plugin_calls(tc: Path) -> None:
    header = (REPO / "tools/tc/tc_abi.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared = set(DECLARED.findall(header)) | {"show_details"}
    assert len(declared) == 23
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(tc_binary(tc))], check=True, capture_output=True, text=True
    ).stdout
    assert not declared - set(re.findall(r"^\S+ [A-Z] (\w+)", symbols, re.MULTILINE))


@pytest.mark.kunit
def test_tc_looks_where_the_plugin_is_installed(tc: Path) -> None:
    (folder,) = re.findall(
        r"^TC_PLUGIN_DIR \?= (\S+)\$\(shell.*\)(\S+)$", (REPO / "tools/tc/Makefile").read_text(), re.MULTILINE
    )
    assert f"{folder[0]}x86_64-linux-gnu{folder[1]}".encode() in tc_binary(tc).read_bytes()


@pytest.mark.scenario
@pytest.mark.parametrize("release", ["installed", *RELEASES])
def test_plugin_under_each_tc(backend: Uml, release: str, tmp_path: Path) -> None:
    """Every case of shred.json, by the kernel's tdc: parse, refuse, change, print, statistics, JSON."""
    tc = tctesting.installed_tc() if release == "installed" else ensure_tc(release) / "tc"
    results = tctesting.tdc(backend, tc, CASES.read_text(), tmp_path)
    assert results.passed and not results.failed, (results.failed, results.text)


def outcome_of(backend: Uml, file: str, folder: Path) -> tctesting.TcOutcome:
    """A file of the kernel's cases, with all faults named by the assertion."""
    results = tctesting.FILES[file](backend, folder)
    outcome = tctesting.judge(file, results)
    assert outcome.good, (outcome.faults, results.text)
    return outcome


@pytest.mark.scenario
def test_the_kernels_configuration_tests_of_red(backend: Uml, tmp_path: Path) -> None:
    """tc-testing's red.json with red replaced: what shred does not have on purpose fails, all else passes."""
    outcome = outcome_of(backend, "red.json", tmp_path)
    assert outcome.ran >= 9 and outcome.different == ["290a"]


@pytest.mark.scenario
def test_the_kernels_generic_tests_of_a_queue(backend: Uml, tmp_path: Path) -> None:
    """tc-testing's fifo.json with bfifo replaced: added, refused, replaced, added and deleted twice."""
    assert outcome_of(backend, "fifo.json", tmp_path).ran >= 11


@pytest.mark.kernels
def test_the_kernels_tests_of_a_queue_below_another(backend: Uml, tmp_path: Path) -> None:
    """infra/qdiscs.json of 7.2, whose source is not on each machine, so not in make check."""
    assert set(outcome_of(backend, "infra/qdiscs.json", tmp_path).passed) == set(tctesting.INFRA)


@pytest.mark.scenario
def test_the_kernels_traffic_tests_of_red(backend: Uml, tmp_path: Path) -> None:
    """forwarding/sch_red.sh with red replaced: marks, nodrop and drops under two streams."""
    outcome = outcome_of(backend, "forwarding/sch_red.sh", tmp_path)
    # two pings, three of ECN, three of nodrop, two of drops
    assert len(outcome.passed) == 10 and outcome.different == ["ecn_qevent_test", "red_qevent_test"]


FLAGS = ("adaptive", "ecn", "harddrop", "nodrop", "gentle", "bytes", "wash", "split-gso")


@pytest.mark.kunit
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["hint", ""], {"off", "tos", "dscp"}),
        (["hint", "t"], {"tos"}),
        (["limit", "60ms", "wa"], {"wash"}),
        (
            ["no"],
            {f"no{name}" for name in ["adaptive", "ecn", "harddrop", "nodrop", "gentle", "bytes", "wash", "split-gso"]}
            | {"nodrop"},
        ),
        (["limit", ""], set()),
    ],
)
def test_completion(words: list[str], expected: set[str]) -> None:
    line = ["tc", "qdisc", "add", "dev", "eth0", "root", "shred", *words]
    quoted = " ".join(f"'{word}'" for word in line)
    script = f"source {REPO}/tools/tc/tc-shred.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(line) - 1}; _tc_shred"
    done = subprocess.run(
        ["bash", "-c", script + '; echo "${COMPREPLY[@]}"'], check=True, capture_output=True, text=True
    )
    assert set(done.stdout.split()) == expected


@pytest.mark.kunit
def test_manual_names_every_option() -> None:
    """What the plugin understands, its help text and tc-shred(8) agree."""
    plugin = (REPO / "tools/tc/q_shred.c").read_text()
    manual = (REPO / "tools/tc/tc-shred.8").read_text().replace("\\-", "-")
    flags = re.findall(r'^\t\{ "([\w-]+)", SHRED_F_', plugin, re.MULTILINE)
    values = re.findall(r'!strcmp\(name, "(\w+)"\)', plugin)
    assert len(flags) == 8 and len(values) == 8
    for word in [*flags, *values, "weight"]:
        assert (
            re.search(rf"^\.(B|BI) ?{word}\b|\"{word}\"|fP{word}\"", manual, re.MULTILINE) or f"\\fB{word}" in manual
        ), word
