# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tests of queues, tc-testing and forwarding/sch_red.sh, with shred in place of the queue.

    kernel's selftests -> cases with another queue's name -> one boot of the user-mode kernel for each file
    -> the cases that passed -> compared with those that shred does not pass on purpose

A case that fails without a reason, and a case that passes although a reason says that it cannot, is a fault.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..backends.machine import Machine
from ..backends.tools import build_tc_plugin
from ..backends.uml import HOST_ROOT, Uml
from ..base.progress import Report, silent
from ..kernels.mirror import ensure_part
from ..run.identity import Identity, of_backend

MODULE = "sch_shred"
SELFTESTS = "tools/testing/selftests"
#: whose tdc runs the cases, on every kernel: 6.1's makes no dummy device for them
TDC_SERIES = "6.12"
#: whose cases about any queue below another are taken
INFRA_SERIES = "7.2"
LIMIT_S, FORWARDING_LIMIT_S = 300.0, 600.0

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

#: the kernel's tests of red that shred does not pass on purpose, and why
DIFFERENCES = {
    "290a": "shred has no class: it holds its packets itself, in bands that only their hints choose",
    "red_qevent_test": "shred has no qevents",
    "ecn_qevent_test": "shred has no qevents",
}
#: the kernel's generic cases of fifo.json, with bfifo replaced: a shred queue of 3000 octets needs its thresholds too
FIFO_LIMIT = ("limit 3000b", "limit 219000b min 30000b max 90000b avpkt 1000 burst 55")
#: its cases about any queue below another (Linux 7.2, infra/qdiscs.json) that this kernel has the parents for, and whom
#: shred replaces there: created below, changed and deleted while packets wait, refused where nothing can be attached
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


@dataclass(frozen=True)
class Results:
    """Names of the cases that passed and that failed, and the output."""

    passed: set[str]
    failed: set[str]
    text: str


@dataclass
class TcOutcome:
    """What a file of cases said. different: failed on purpose."""

    file: str
    passed: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def ran(self) -> int:
        """Number of its cases."""
        return len(self.passed) + len(self.different) + len(self.faults)

    @property
    def good(self) -> bool:
        """Whether a case passed, and none is a fault."""
        return bool(self.passed) and not self.faults


@dataclass(frozen=True)
class TcRan:
    """The outcomes of the files with the kernel's facts and the identity."""

    kernel: dict[str, str]
    identity: Identity
    outcomes: list[TcOutcome]


def installed_tc() -> str | None:
    """This machine's tc: an ordinary user's path has no sbin."""
    return shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin")


def _with_plugin(job: Path) -> None:
    (job / "tc").mkdir(parents=True)
    (job / "tc" / "q_shred.so").write_bytes(build_tc_plugin().read_bytes())


def tdc(backend: Uml, tc: str | Path | None, cases: str, folder: Path) -> Results:
    """Run cases with the kernel's tdc and this tc."""
    job = folder / "job"
    _with_plugin(job)
    (job / "shred.json").write_text(cases, encoding="utf-8")
    words = {
        "host": HOST_ROOT,
        "tdc": ensure_part(TDC_SERIES, f"{SELFTESTS}/tc-testing"),
        "tc": tc,
        "module": backend.tools().modules[MODULE],
    }
    (job / "job.sh").write_text(TDC.format(**words), encoding="ascii")
    Machine(backend.build).run(job, folder / "out", wall_limit_s=LIMIT_S)
    tap = (folder / "out" / "tap").read_text(encoding="utf-8")
    planned = [int(number) for number in re.findall(r"^1\.\.(\d+)$", tap, re.MULTILINE)]
    assert planned == [cases.count('"id"')], tap
    passed = re.findall(r"^ok \d+ (\w{4}) - (?!.*# skip)", tap, re.MULTILINE)
    failed = re.findall(r"^not ok \d+ (\w{4}) - ", tap, re.MULTILINE)
    skipped = set(re.findall(r'"id": *"(\w{4})"', cases)) - {*passed, *failed}
    return Results(set(passed), {*failed, *skipped}, tap)


def red_cases() -> str:
    """red.json with red replaced."""
    cases = ensure_part(TDC_SERIES, f"{SELFTESTS}/tc-testing") / "tc-tests" / "qdiscs" / "red.json"
    return re.sub(r"\bred\b(?! flag)", "shred", cases.read_text(encoding="utf-8"))


def fifo_cases() -> str:
    """The cases of fifo.json about bfifo, with bfifo replaced."""
    cases = ensure_part(TDC_SERIES, f"{SELFTESTS}/tc-testing") / "tc-tests" / "qdiscs" / "fifo.json"
    text = cases.read_text(encoding="utf-8").replace(*FIFO_LIMIT).replace("bfifo", "shred")
    # shred's own limit is a time
    text = text.replace("limit [0-9]+b", "limit [0-9]+ms")
    return json.dumps([case for case in json.loads(text) if "shred" in case["cmdUnderTest"]])


def infra_cases() -> str:
    """The chosen cases of infra/qdiscs.json with their queue replaced."""
    part = ensure_part(INFRA_SERIES, f"{SELFTESTS}/tc-testing")
    made: list[Any] = []
    for case in json.loads((part / "tc-tests" / "infra" / "qdiscs.json").read_text(encoding="utf-8")):
        if case["id"] not in INFRA:
            continue
        pattern, words = INFRA[case["id"]]
        changed = re.sub(r"(qdisc change [^\"]*?)\w+ limit 1\b", rf"\g<1>{SHORT}", json.dumps(case))
        changed, count = re.subn(pattern, words, changed)
        assert count, f"{case['id']} has no {pattern}"
        made.append(json.loads(changed.replace("qdisc skbprio", "qdisc shred")))
    return json.dumps(made)


def sch_red(backend: Uml, folder: Path) -> Results:
    """Run forwarding/sch_red.sh with red replaced: marks, nodrop and drops under two streams."""
    selftests = ensure_part(TDC_SERIES, SELFTESTS)
    script = (selftests / "net" / "forwarding" / "sch_red.sh").read_text(encoding="utf-8")
    found = re.search(r'ALL_TESTS="(.*?)"', script, re.DOTALL)
    assert found is not None, script
    tests = found[1].split()
    wanted = [name for name in tests if name not in DIFFERENCES]
    _with_plugin(folder / "job")
    words = {
        "host": HOST_ROOT,
        "selftests": selftests,
        "module": backend.tools().modules[MODULE],
        "tests": " ".join(wanted),
        "intree": backend.build.kdir / "intree",
    }
    (folder / "job" / "job.sh").write_text(SCH_RED.format(**words), encoding="ascii")
    Machine(backend.build).run(folder / "job", folder / "out", wall_limit_s=FORWARDING_LIMIT_S)
    log = (folder / "out" / "log").read_text(encoding="utf-8")
    told = re.findall(r"^TEST: (.*?)\s+\[ *(\w+) *\]", log, re.MULTILINE)
    bad = {name for name, status in told if status != "OK"}
    if (folder / "out" / "sch_red").read_text(encoding="ascii") != "0\n" and not bad:
        bad = {"sch_red.sh: its exit status"}
    return Results({name for name, _ in told} - bad, {*bad, *(set(tests) - set(wanted))}, log)


#: file -> what runs its cases in a folder
FILES: dict[str, Callable[[Uml, Path], Results]] = {
    "red.json": lambda backend, folder: tdc(backend, installed_tc(), red_cases(), folder),
    "fifo.json": lambda backend, folder: tdc(backend, installed_tc(), fifo_cases(), folder),
    "infra/qdiscs.json": lambda backend, folder: tdc(backend, installed_tc(), infra_cases(), folder),
    "forwarding/sch_red.sh": sch_red,
}


def judge(file: str, results: Results) -> TcOutcome:
    """Compare a file's results with the cases that shred does not pass on purpose."""
    outcome = TcOutcome(file, sorted(results.passed - set(DIFFERENCES)))
    outcome.different = sorted(results.failed & set(DIFFERENCES))
    outcome.faults = [f"{name}: failed" for name in sorted(results.failed - set(DIFFERENCES))]
    outcome.faults += [
        f"{name}: passes, although {DIFFERENCES[name]}" for name in sorted(results.passed & set(DIFFERENCES))
    ]
    return outcome


def run(files: list[str], series: str | None = None, report: Report = silent) -> TcRan:
    """Run these files."""
    backend = Uml(series)
    backend.prepare([MODULE], report)
    outcomes = []
    for done, file in enumerate(files):
        report(f"tc: {file}", done, len(files))
        with tempfile.TemporaryDirectory(prefix="lbe-foreign-") as name:
            outcomes.append(judge(file, FILES[file](backend, Path(name))))
    return TcRan(backend.facts(), of_backend(backend, [MODULE]), outcomes)
