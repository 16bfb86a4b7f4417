# SPDX-License-Identifier: GPL-2.0
"""The kernel's netfilter selftests (queues, connection tracking, flow tables, NAT) with vulture's hooks registered.

    kernel's selftests + packages of the distribution -> programs built in its root -> boots of Debian's kernel in
    virtual time -> a status for each script, and its PASS and FAIL lines -> compared with those without vulture

A subject is a controller of vulture that controls all connections in all namespaces of the scripts. The reference is
the same kernel without vulture. If a script has another status or other verdicts than with the reference, this is a
fault.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..backends.distro import IN_ROOT, Guest, Image, add_text, add_tree, ensure_image, ensure_installed, run_script
from ..backends.machine import read_text
from ..base.cache import cache_root, lock, need_space, whole_entry
from ..base.content import hash_of_programs
from ..base.errors import BuildFailed
from ..base.places import TESTBED
from ..base.progress import Report, silent
from ..kernels.mirror import ensure_part
from ..kernels.modules import program_hash

SERIES = "6.12"
PART = "tools/testing/selftests"
#: files of the selftests that the scripts need
FOLDERS = ("net/netfilter", "net/lib.sh", "kselftest.h", "kselftest_harness.h")
SCRIPT = TESTBED / "foreign" / "netfilter.sh"
INSTALL = TESTBED / "proof" / "programs.sh"
#: packages with programs that the scripts call and an image lacks
PACKAGES = ("nftables", "socat", "conntrack", "iptables", "iputils-ping", "procps")
#: the scripts with TCP connections or with queues. Left out are those with sets, bridges, UDP, audit or VXLAN only,
#: which have no packets for vulture, and those whose programs Debian lacks or that take hours (ranges, zones)
SCRIPTS = (
    "nft_queue.sh", "nft_flowtable.sh", "conntrack_icmp_related.sh", "conntrack_ipip_mtu.sh",
    "conntrack_reverse_clash.sh", "conntrack_tcp_unreplied.sh", "conntrack_vrf.sh", "nf_nat_edemux.sh",
    "nft_conntrack_helper.sh", "nft_nat.sh", "nft_synproxy.sh", "nft_tproxy_tcp.sh",
)  # fmt: skip
#: the kernel without vulture
REFERENCE = "none"
CONTROLLERS = ("paper", "credit", "rledbat")
#: kselftest's exit status of a skipped script
SKIPPED = 4
#: time limits for all scripts, guest seconds and wall seconds
LIMIT_S, WALL_LIMIT_S = 4000.0, 5400.0
#: lines that are verdicts of a script
VERDICT = re.compile(r"^(?:PASS|FAIL|SKIP|ERROR|not ok|ok \d+)\b.*", re.MULTILINE)
#: names of namespaces, numbers and times, which differ between runs
BY_CHANCE = re.compile(r"\b\w+-[A-Za-z0-9]{6}\b|\d+(\.\d+)?")


@dataclass(frozen=True)
class NetfilterResult:
    """Result of one script. status: exit status; said: its verdicts; taken: connections started by rules."""

    script: str
    status: int
    said: tuple[str, ...]
    taken: int

    @property
    def verdict(self) -> str:
        """pass, skip or fail."""
        return {0: "pass", SKIPPED: "skip"}.get(self.status, "fail")


@dataclass
class NetfilterOutcome:
    """Results of a controller compared with the reference."""

    subject: str
    passed: int = 0
    skipped: int = 0
    failed: int = 0
    as_reference: int = 0
    taken: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether there is no fault, a script passed, and vulture, if loaded, controlled a connection."""
        return bool(self.passed and (self.taken or self.subject == REFERENCE)) and not self.faults


def read_results(log: str) -> list[NetfilterResult]:
    """Parse the output of netfilter.sh; a script without an END line is missing."""
    results = []
    for match in re.finditer(r"^RUN (\S+)\n(.*?)^END (\d+) (\d+)$", log, re.MULTILINE | re.DOTALL):
        script, text, status, taken = match.groups()
        results.append(NetfilterResult(script, int(status), tuple(VERDICT.findall(text)), int(taken)))
    return results


def plain(said: tuple[str, ...]) -> list[str]:
    """Verdicts without the parts that differ between runs."""
    return [BY_CHANCE.sub("N", line) for line in said]


def judge(subject: str, results: list[NetfilterResult], reference: list[NetfilterResult]) -> NetfilterOutcome:
    """Differences from the reference. A verdict that is the same without vulture is not a fault."""
    before = {result.script: result for result in reference}
    outcome = NetfilterOutcome(subject)
    for result in results:
        outcome.passed += result.verdict == "pass"
        outcome.skipped += result.verdict == "skip"
        outcome.failed += result.verdict == "fail"
        outcome.taken += result.taken
        known = before.get(result.script)
        if known is None or (result.verdict, plain(result.said)) == (known.verdict, plain(known.said)):
            outcome.as_reference += known is not None
            continue
        more = [line for line, short in zip(result.said, plain(result.said)) if short not in plain(known.said)]
        less = [line for line, short in zip(known.said, plain(known.said)) if short not in plain(result.said)]
        outcome.faults.append(
            f"{result.script}: {known.verdict} without vulture, {result.verdict} with it"
            + "".join(f"; says {line!r}" for line in more)
            + "".join(f"; does not say {line!r}" for line in less)
        )
    ran = {result.script for result in results}
    outcome.faults += [f"{script}: did not come to its end" for script in before if script not in ran]
    return outcome


@dataclass(frozen=True)
class NetfilterTools:
    """The selftests with built programs, and the packages. versions: package -> version."""

    folder: Path
    versions: dict[str, str]


def ensure_tools(image: Image, report: Report = silent) -> NetfilterTools:
    """Build and install the tools, cached by image, list of packages and selftests."""
    top = ensure_part(SERIES, PART, report)
    state = hashlib.sha256(f"{image.key} {PACKAGES} {FOLDERS} {top.parents[2].name} {top.parents[3].name}".encode())
    state.update(hash_of_programs([SCRIPT, INSTALL]).encode())
    final = cache_root() / "distro" / f"netfilter-{state.hexdigest()[:16]}"
    if not final.is_dir():
        with lock(f"distro-{final.name}", report):
            if not final.is_dir():
                need_space(cache_root(), 2000, "installing programs into a Debian root")
                report("building netfilter's selftests", 0, None)
                with whole_entry(final) as work:
                    for name in FOLDERS:
                        place = work / "selftests" / name
                        place.parent.mkdir(parents=True, exist_ok=True)
                        (shutil.copytree if (top / name).is_dir() else shutil.copy)(top / name, place)
                    shutil.copy(SCRIPT, work)
                    shutil.copy(INSTALL, work)
                    log = cache_root() / "logs" / "distro-netfilter.log"
                    both = f"bash /lbe/{INSTALL.name} install {' '.join(PACKAGES)} && bash /lbe/{SCRIPT.name} build"
                    run_script(IN_ROOT, [image.folder / "root.tar", work, "bash", "-c", both], log)
    os.utime(final)
    versions = dict(line.split() for line in (final / "versions").read_text(encoding="utf-8").splitlines())
    return NetfilterTools(final, versions)


def boot(
    image: Image, tools: NetfilterTools, scripts: tuple[str, ...], controller: str, report: Report = silent
) -> list[NetfilterResult]:
    """Run scripts in one boot with a controller, or without vulture."""
    installed = None if controller == REFERENCE else ensure_installed(image, report)

    def fill(archive: tarfile.TarFile) -> None:
        with tarfile.open(tools.folder / "programs.tar") as programs:
            for member in programs:
                archive.addfile(member, programs.extractfile(member) if member.isreg() else None)
        add_tree(archive, tools.folder / "selftests", "lbe/selftests")
        add_text(archive, "tmp/job/scripts", "".join(f"{script}\n" for script in scripts))
        add_text(archive, "tmp/job/netfilter.sh", SCRIPT.read_text(encoding="utf-8"), 0o755)
        words = "" if controller == REFERENCE else controller
        add_text(archive, "tmp/job/job.sh", f"ldconfig\nbash ./netfilter.sh run {words}\n")

    with tempfile.TemporaryDirectory(prefix="lbe-foreign-") as name:
        guest = Guest(image, installed, cpus=1, mem_mb=1536, virtual_time=True)
        guest.run(fill, Path(name), limit_s=LIMIT_S, wall_limit_s=WALL_LIMIT_S)
        log = read_text(Path(name) / "job.log") or ""
    results = read_results(log)
    if not results:
        raise BuildFailed(f"netfilter's selftests: no script came to its end: {log[-1500:]}")
    return results


def kept_results(
    image: Image, tools: NetfilterTools, scripts: tuple[str, ...], controller: str, report: Report = silent
) -> list[NetfilterResult]:
    """boot(), cached by content: image, selftests, programs, and vulture's source."""
    state = hashlib.sha256(f"{image.key} {tools.folder.name} {scripts} {controller}".encode())
    module = program_hash("vulture") if controller != REFERENCE else ""
    state.update(f"{module} {hash_of_programs([SCRIPT])}".encode())
    kept = cache_root() / "foreign" / f"netfilter-{state.hexdigest()[:16]}.json"
    if kept.is_file():
        known = json.loads(kept.read_text(encoding="utf-8"))
        return [NetfilterResult(**{**one, "said": tuple(one["said"])}) for one in known]
    results = boot(image, tools, scripts, controller, report)
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps([asdict(one) for one in results]), encoding="utf-8")
    return results


@dataclass(frozen=True)
class NetfilterRan:
    """All results: the kernel's release, versions of packages, results and outcomes by controller."""

    release: str
    key: str
    versions: dict[str, str]
    results: dict[str, list[NetfilterResult]]
    outcomes: list[NetfilterOutcome]


def run(
    controllers: tuple[str, ...] = CONTROLLERS, scripts: tuple[str, ...] = SCRIPTS, report: Report = silent
) -> NetfilterRan:
    """Run the scripts without vulture and with these controllers, and compare."""
    image = ensure_image(SERIES, report)
    tools = ensure_tools(image, report)
    results = {}
    for number, subject in enumerate((REFERENCE, *controllers)):
        report(f"netfilter's selftests: {subject}", number, len(controllers) + 1)
        results[subject] = kept_results(image, tools, scripts, subject, report)
    outcomes = [judge(name, results[name], results[REFERENCE]) for name in results]
    return NetfilterRan(image.release, image.key, tools.versions, results, outcomes)
