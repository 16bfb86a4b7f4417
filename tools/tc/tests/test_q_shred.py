# SPDX-License-Identifier: GPL-2.0
"""q_shred.so under this machine's tc and that of each Debian release: stable ones, and the next one with the newest.

A release's tc comes from the mirror by the testbed's private apt, with its own libraries beside it.
"""

from __future__ import annotations

import json
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
from testbed.kernels.mirror import PrivateApt, debian_mirror, ensure_part
from testbed.kernels.series import DEFAULT_SERIES

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
# tdc's ip makes a case's devices in the background and in turn, and tdc does not wait for them
cat > /tmp/tc <<'END'
#!/bin/sh
before=
for word; do
    tries=500
    while [ "$before" = dev ] && [ ! -e "/sys/class/net/$word" ] && [ $tries -gt 0 ]; do
        sleep 0.01
        tries=$((tries - 1))
    done
    before=$word
done
exec {tc} "$@"
END
chmod +x /tmp/tc
cat > tdc_config_local.py <<END
EXTRA_NAMES = {{'TC': '/tmp/tc', 'IP': '$(command -v ip)'}}
ENVIR = {{'PATH': '$PATH', 'TC_LIB_DIR': '/tmp/job/tc'}}
END
{tc} -V > "$LBE_OUT/version"
insmod {host}{module}
# its status says whether all passed; what passed is in its output
/usr/bin/python3 tdc.py -f shred.json > "$LBE_OUT/tap" 2>&1 || true
rmmod sch_shred
"""

#: the kernel's tests of red that shred does not pass on purpose, and why
DIFFERENCES = {
    "290a": "shred has no class: it holds its packets itself, in bands that only their hints choose",
    "red_qevent_test": "shred has no qevents",
    "ecn_qevent_test": "shred has no qevents",
}

#: the kernel's tests of a red queue under traffic, with red replaced
SCH_RED = """
set -u
cp -r {host}{selftests}/net /tmp/net
cp {host}{selftests}/kselftest* /tmp/ 2> /dev/null || true
cd /tmp/net/forwarding
sed -i 's/handle 11: red /handle 11: shred /' sch_red.sh
export TC_LIB_DIR=/tmp/job/tc PATH="$PATH:/usr/sbin:/sbin"
for name in llc stp bridge; do insmod {host}{intree}/$name.ko; done
insmod {host}{module}
TESTS="{tests}" bash sch_red.sh > "$LBE_OUT/log" 2>&1
echo $? > "$LBE_OUT/sch_red"
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


def tdc(backend: Uml, tc: str | Path, cases: str, folder: Path) -> tuple[set[str], set[str], int]:
    """Ids that passed, ids that did not, and how many there should be: `cases` run by the kernel's tdc."""
    job = folder / "job"
    (job / "tc").mkdir(parents=True)
    (job / "shred.json").write_text(cases)
    (job / "tc" / "q_shred.so").write_bytes(build_tc_plugin().read_bytes())
    words = {
        "host": HOST_ROOT,
        "tdc": ensure_part(TDC_SERIES, "tools/testing/selftests/tc-testing"),
        "tc": tc,
        "module": backend.tools().modules["sch_shred"],
    }
    (job / "job.sh").write_text(TDC.format(**words))
    Machine(backend.build).run(job, folder / "out", wall_limit_s=300)
    tap = (folder / "out" / "tap").read_text()
    (planned,) = re.findall(r"^1\.\.(\d+)$", tap, re.MULTILINE)
    passed = re.findall(r"^ok \d+ (\w{4}) - (?!.*# skip)", tap, re.MULTILINE)
    failed = re.findall(r"^not ok \d+ (\w{4}) - ", tap, re.MULTILINE)
    assert int(planned) == cases.count('"id"'), tap
    return set(passed), set(failed), int(planned)


def installed_tc() -> str | None:
    """This machine's tc: an ordinary user's path has no sbin."""
    return shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin")


@pytest.mark.scenario
@pytest.mark.parametrize("release", ["installed", *RELEASES])
def test_plugin_under_each_tc(backend: Uml, release: str, tmp_path: Path) -> None:
    """Every case of shred.json, by the kernel's tdc: parse, refuse, change, print, statistics, JSON."""
    tc = installed_tc() if release == "installed" else ensure_tc(release) / "tc"
    passed, failed, planned = tdc(backend, tc, CASES.read_text(), tmp_path)
    assert not failed and len(passed) == planned, (failed, (tmp_path / "out" / "tap").read_text())


@pytest.mark.scenario
def test_the_kernels_configuration_tests_of_red(backend: Uml, tmp_path: Path) -> None:
    """tc-testing's red.json with red replaced: what shred does not have on purpose fails, all else passes."""
    cases = ensure_part(TDC_SERIES, "tools/testing/selftests/tc-testing") / "tc-tests" / "qdiscs" / "red.json"
    text = re.sub(r"\bred\b(?! flag)", "shred", cases.read_text())
    passed, failed, planned = tdc(backend, installed_tc(), text, tmp_path)
    assert planned >= 9 and len(passed | failed) == planned
    assert failed == set(DIFFERENCES) & (passed | failed), (tmp_path / "out" / "tap").read_text()


#: the kernel's generic cases of fifo.json, with bfifo replaced: a shred queue of 3000 octets needs its thresholds too
FIFO_LIMIT = ("limit 3000b", "limit 219000b min 30000b max 90000b avpkt 1000 burst 55")
#: its cases about any queue below another (Linux 7.2, infra/qdiscs.json) that this kernel has the parents for, and whom
#: shred replaces there: created below, changed and deleted while packets wait, refused where nothing can be attached
INFRA_SERIES = "7.2"
INFRA = {
    "c024": (r"\bskbprio limit 1\b", "shred limit 1500b min 500b max 1000b avpkt 500 burst 2"),
    "34c0": (r"\bhhf limit 1000\b", "shred limit 90000b min 30000b max 60000b avpkt 1000 burst 55"),
    "fd68": (r"\bcodel limit 1000\b", "shred limit 90000b min 30000b max 60000b avpkt 1000 burst 55"),
    "be28": (r"\bhhf\b", "shred"),
    "fcb5": (r"\bpie\b", "shred"),
    "4989": (r"\bfq\b", "shred"),
    "c2b0": (r"\bfq\b", "shred"),
}
#: the queue after `change ... limit 1`, which is to drop what waits
SHORT = "shred limit 1000b min 300b max 600b avpkt 300 burst 2"


def infra_cases(text: str) -> list[dict]:
    """The chosen cases with their queue replaced by shred."""
    made = []
    for case in json.loads(text):
        if case["id"] not in INFRA:
            continue
        pattern, words = INFRA[case["id"]]
        changed = re.sub(r"(qdisc change [^\"]*?)\w+ limit 1\b", rf"\g<1>{SHORT}", json.dumps(case))
        changed, count = re.subn(pattern, words, changed)
        assert count, f"{case['id']} has no {pattern}"
        made.append(json.loads(changed.replace("qdisc skbprio", "qdisc shred")))
    return made


@pytest.mark.scenario
def test_the_kernels_generic_tests_of_a_queue(backend: Uml, tmp_path: Path) -> None:
    """tc-testing's fifo.json with bfifo replaced: added, refused, replaced, added and deleted twice."""
    cases = ensure_part(TDC_SERIES, "tools/testing/selftests/tc-testing") / "tc-tests" / "qdiscs" / "fifo.json"
    # shred's own limit is a time
    text = cases.read_text().replace(*FIFO_LIMIT).replace("bfifo", "shred").replace("limit [0-9]+b", "limit [0-9]+ms")
    chosen = [case for case in json.loads(text) if "shred" in case["cmdUnderTest"]]
    assert len(chosen) >= 11
    passed, failed, planned = tdc(backend, installed_tc(), json.dumps(chosen), tmp_path)
    assert not failed and len(passed) == planned, (failed, (tmp_path / "out" / "tap").read_text())


@pytest.mark.kernels
def test_the_kernels_tests_of_a_queue_below_another(backend: Uml, tmp_path: Path) -> None:
    """infra/qdiscs.json of 7.2, whose source is not on each machine, so not in make check."""
    part = ensure_part(INFRA_SERIES, "tools/testing/selftests/tc-testing")
    chosen = infra_cases((part / "tc-tests" / "infra" / "qdiscs.json").read_text())
    assert {case["id"] for case in chosen} == set(INFRA)
    passed, failed, planned = tdc(backend, installed_tc(), json.dumps(chosen), tmp_path)
    assert not failed and len(passed) == planned, (failed, (tmp_path / "out" / "tap").read_text())


@pytest.mark.scenario
def test_the_kernels_traffic_tests_of_red(backend: Uml, tmp_path: Path) -> None:
    """forwarding/sch_red.sh with red replaced: marks, nodrop and drops under two streams."""
    selftests = ensure_part(TDC_SERIES, "tools/testing/selftests")
    script = (selftests / "net" / "forwarding" / "sch_red.sh").read_text()
    tests = re.search(r'ALL_TESTS="(.*?)"', script, re.DOTALL)[1].split()
    wanted = [name for name in tests if name not in DIFFERENCES]
    assert len(wanted) >= 4
    job = tmp_path / "job"
    (job / "tc").mkdir(parents=True)
    (job / "tc" / "q_shred.so").write_bytes(build_tc_plugin().read_bytes())
    module = backend.tools().modules["sch_shred"]
    words = {"host": HOST_ROOT, "selftests": selftests, "module": module, "tests": " ".join(wanted)}
    words["intree"] = backend.build.kdir / "intree"
    (job / "job.sh").write_text(SCH_RED.format(**words))
    Machine(backend.build).run(job, tmp_path / "out", wall_limit_s=600)
    log = (tmp_path / "out" / "log").read_text()
    results = re.findall(r"^TEST: (.*?)\s+\[ *(\w+) *\]", log, re.MULTILINE)
    # two pings, three of ECN, three of nodrop, two of drops
    assert len(results) == 10 and {status for _, status in results} == {"OK"}, log
    assert (tmp_path / "out" / "sch_red").read_text() == "0\n"


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
