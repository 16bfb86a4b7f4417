# SPDX-License-Identifier: GPL-2.0
"""q_shred.so under this machine's tc and that of each Debian release: stable ones, and the next one with the newest.

A release's tc comes from the mirror by the testbed's private apt, with its own libraries beside it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from testbed.backends.machine import Machine
from testbed.backends.tools import build_tc_plugin
from testbed.backends.uml import HOST_ROOT, Uml
from testbed.base.cache import cache_root, lock, remove, whole_entry
from testbed.kernels.build import DEFAULT_SERIES, PrivateApt, debian_mirror, ensure_part

REPO = Path(__file__).resolve().parents[3]
CASES = REPO / "sch_shred" / "tests" / "shred.json"
#: iproute2 6.1, 6.15, and the newest (7.2 when this was written; backports for trixie has none)
RELEASES = ("bookworm", "trixie", "forky")
LIBRARY_FOLDERS = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
#: whose tdc runs the cases, on every kernel: 6.1's makes no dummy device for them
TDC_SERIES = "6.12"
#: what tc_abi.h declares: functions and variables that tc must export
DECLARED = re.compile(r"^(?!static)[a-z][\w\s*]*?\b(\w+)\(", re.MULTILINE)

TDC = """
set -eu
cp -r {host}{tdc} /tmp/tdc
cp shred.json /tmp/tdc
cd /tmp/tdc
cat > tdc_config_local.py <<END
EXTRA_NAMES = {{'TC': '{tc}', 'IP': '$(command -v ip)'}}
ENVIR = {{'PATH': '$PATH', 'TC_LIB_DIR': '/tmp/job/tc'}}
END
{tc} -V > "$LBE_OUT/version"
insmod {host}{module}
/usr/bin/python3 tdc.py -f shred.json > "$LBE_OUT/tap" 2>&1
rmmod sch_shred
"""


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
    assert len(declared) == 24
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
    """Every case of shred.json, by the kernel's tdc: parse, refuse, print, statistics, JSON."""
    # an ordinary user's path has no sbin
    tc = shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin") if release == "installed" else ensure_tc(release) / "tc"
    job = tmp_path / "job"
    (job / "tc").mkdir(parents=True)
    (job / "shred.json").write_bytes(CASES.read_bytes())
    (job / "tc" / "q_shred.so").write_bytes(build_tc_plugin().read_bytes())
    words = {
        "host": HOST_ROOT,
        "tdc": ensure_part(TDC_SERIES, "tools/testing/selftests/tc-testing"),
        "tc": tc,
        "module": backend.tools().modules["sch_shred"],
    }
    (job / "job.sh").write_text(TDC.format(**words))
    Machine(backend.build).run(job, tmp_path / "out", wall_limit_s=120)
    tap = (tmp_path / "out" / "tap").read_text()
    (planned,) = re.findall(r"^1\.\.(\d+)$", tap, re.MULTILINE)
    assert not re.findall(r"^not ok.*", tap, re.MULTILINE)
    passed = re.findall(r"^ok \d+ (\w{4}) - (?!.*# skip)", tap, re.MULTILINE)
    assert len(passed) == int(planned) == CASES.read_text().count('"id"'), (tmp_path / "out" / "version").read_text()
