# SPDX-License-Identifier: GPL-2.0
"""packetdrill's TCP scripts with each congestion control, and with rules of vulture.

    archive (checked against its SHA-256), kernel's selftests -> build in the cache -> boots of 25 scripts
    -> a status for each script -> compared with the reference's -> verdicts

A subject is a congestion control, or Reno with a vulture controller that controls all connections. Its reference is
Reno with the same start: paced if the subject paces, with an initial window of two packets if the subject has that,
and with a SYN that asks for ECN if the subject's does. A script that passes with the reference and fails with the
subject is a fault, unless the script asserts a window or the difference is listed with a reason.

Each script runs in its own network namespace. A script that fails runs again with a tolerance of 150 ms, since a
congestion control with pacing sends the same packets later, which is not a fault.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..backends.machine import Machine
from ..backends.tools import build_vulturectl
from ..backends.uml import Uml
from ..base.cache import cache_root, lock, whole_entry
from ..base.content import hash_of_programs
from ..base.errors import BuildFailed, LbeError, WallHang
from ..base.progress import Report, silent
from ..kernels.mirror import ensure_part
from ..run.identity import Identity, of_backend
from . import outside, timestamps

HERE = Path(__file__).resolve().parent
SETTINGS = HERE / "packetdrill.toml"
JOB, SYSCTL = HERE / "packetdrill.sh", HERE / "sysctl.bash"
#: a script with one of these words asserts a window or rate, which depends on the congestion control
WINDOW_WORDS = re.compile(r"\btcpi_(snd_cwnd|snd_ssthresh|pacing_rate|delivery_rate)\b")
#: messages of a script that the set-up fails: no program, or no definition. No congestion control is the cause.
#: frag_needed is a code of ICMPv4 alone: a script with it is for IPv4, and fails over IPv6 with Reno, too
SET_UP = re.compile(
    r": not found$|semantic error: bad ICMP code (?!frag_needed)|fast open cookie has an odd number of digits"
)
#: number of scripts in a boot, and their limits in virtual seconds and, for a busy machine, wall seconds
BOOT_SCRIPTS, VIRTUAL_LIMIT_S, WALL_LIMIT_S = 25, 20_000.0, 600.0


class ForeignAbsent(LbeError):
    """The source of a suite is not on this machine. This is a separate state, which is never green."""


@dataclass(frozen=True)
class Subject:
    """The subject of a test: a congestion control with its module, and possibly a controller of vulture.

    Congestion controls do not depend on the family and are tested over IPv4 only; vulture, and Reno for comparison,
    over both. reference: the subject to compare with. paced: TCP paces every socket. route: attributes of the route to
    the peer.
    """

    name: str
    control: str
    module: str | None = None
    vulture: str | None = None
    reference: str = "reno"
    paced: bool = False
    route: str = ""

    @property
    def families(self) -> tuple[str, ...]:
        """Families over which its scripts run."""
        return ("ipv4", "ipv6") if self.name == "reno" or self.vulture else ("ipv4",)

    @property
    def modules(self) -> list[str]:
        """Modules to load for it."""
        return [name for name in (self.module, "vulture" if self.vulture else None) if name]


SUBJECTS = (
    Subject("reno", "reno"),
    Subject("reno-paced", "reno", paced=True),
    Subject("reno-paced-two", "reno", paced=True, route="initcwnd 2"),
    Subject("reno-paced-ecn", "reno", paced=True, route="features ecn"),
    Subject("cubic", "cubic"),
    Subject("lbe", "lbe", "tcp_lbe", reference="reno-paced"),
    Subject("lp", "lp", "tcp_lp", reference="reno-paced"),
    Subject("lp_ecn", "lp_ecn", "tcp_lp", reference="reno-paced-ecn"),
    Subject("ledbat", "ledbat", "tcp_ledbat", reference="reno-paced-two"),
    Subject("ledbatpp", "ledbatpp", "tcp_ledbat", reference="reno-paced-two"),
    Subject("background", "background", "tcp_lowpri"),
    Subject("lowpri3.7", "lowpri3.7", "tcp_lowpri"),
    Subject("paper", "reno", vulture="paper"),
    Subject("credit", "reno", vulture="credit"),
    Subject("rledbat", "reno", vulture="rledbat"),
)


@dataclass(frozen=True)
class Suite:
    """Scripts of one source. series: the kernel series that they were written for.

    subjects: the subjects to test with them; empty: all. mtu_extra_bytes: difference of the device's MTU to
    packetdrill's.
    """

    name: str
    what: str
    series: str
    folders: tuple[Path, ...]
    subjects: tuple[str, ...] = ()
    mtu_extra_bytes: int = 0

    def scripts(self, only: str = "*") -> list[str]:
        """The scripts to run, sorted, as paths relative to the parent of their folder."""
        left_out = [entry["scripts"] for entry in settings()["left_out"]]
        names = sorted(str(path.relative_to(top.parent)) for top in self.folders for path in top.glob("**/*.pkt"))
        return [
            name
            for name in names
            if fnmatch.fnmatch(name, only) and not any(fnmatch.fnmatch(name, pattern) for pattern in left_out)
        ]

    def text(self, script: str) -> str:
        """Text of a script."""
        return (self.folders[0].parent / script).read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class ScriptResult:
    """Result of one script. status: pass, slow (passes with a tolerance of 150 ms) or fail.

    taken: number of connections that vulture controlled in the script's namespace.
    """

    script: str
    variant: str
    status: str
    message: str
    taken: int = 0


@dataclass
class PacketdrillOutcome:
    """A subject compared with its reference. faults: scripts that pass with the reference and fail with the subject
    without a listed reason.

    taken: number of connections that vulture controlled; with_taken: runs of scripts in which it controlled one.
    """

    suite: str
    subject: str
    passed: int = 0
    slow: int = 0
    failed: int = 0
    as_reference: int = 0
    taken: int = 0
    with_taken: int = 0
    faults: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether there is no fault, no outdated entry in the list, and a script passed."""
        return bool(self.passed) and not (self.faults or self.outdated)


def settings() -> dict[str, Any]:
    """Content of packetdrill.toml."""
    return tomllib.loads(SETTINGS.read_text(encoding="utf-8"))


def archive(source: dict[str, str]) -> Path:
    """Path of the archive. Raises ForeignAbsent if it does not exist or its hash is wrong."""
    path = outside.place(source["variable"], source["default"], source["default"])
    if not path.is_file():
        raise ForeignAbsent(
            f"packetdrill is absent: {path} does not exist; set {source['variable']} to an archive of "
            f"{source['what']}, or {outside.FOLDER} to a folder with {source['default']}"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != source["sha256"]:
        raise ForeignAbsent(f"{path} has SHA-256 {digest}; {source['what']} has {source['sha256']}")
    return path


def ensure_packetdrill(report: Report = silent) -> Path:
    """The folder with the built packetdrill/packetdrill and the scripts, cached by the content of source and edits."""
    said = settings()
    path = archive(said["source"])
    key = hashlib.sha256(repr((said["source"]["sha256"], said["edit"])).encode()).hexdigest()[:16]
    final = cache_root() / "foreign" / f"packetdrill-{key}"
    inner = said["source"]["folder"]
    with lock(final.name, report):
        if not final.is_dir():
            report("building packetdrill", 0, None)
            with whole_entry(final) as work:
                subprocess.run(["tar", "-x", "-C", str(work), "--no-same-owner", "-f", str(path)], check=True)
                top = next(entry for entry in work.iterdir() if entry.is_dir())
                for entry in (top / inner).iterdir():
                    shutil.move(entry, work / entry.name)
                shutil.rmtree(top)
                for edit in said["edit"]:
                    apply_edit(work / edit["file"], edit["find"], edit["replace"])
                build(work / "packetdrill")
    return final


def apply_edit(path: Path, find: str, replace: str) -> None:
    """Replace all occurrences of `find` in a file; BuildFailed if there is none."""
    text = path.read_text(encoding="utf-8")
    if find not in text:
        raise BuildFailed(f"{path.name}: no place reads {find!r}")
    path.write_text(text.replace(find, replace), encoding="utf-8")


def build(folder: Path) -> None:
    """Configure and compile; BuildFailed with the compiler's output."""
    for command in (["./configure"], ["make", "-s", "packetdrill", "CFLAGS=-g -O1"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildFailed(f"packetdrill: {' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def ensure_suites(names: list[str], report: Report = silent) -> list[Suite]:
    """The suites with these names (without names, all), with their scripts in the cache. Raises ForeignUnknown."""
    known = settings()["suite"]
    unknown = sorted(set(names) - {entry["name"] for entry in known})
    if unknown:
        there = ", ".join(entry["name"] for entry in known)
        raise ForeignUnknown(f"no suite {', '.join(unknown)}; there are: {there}")
    made = []
    for entry in known:
        if names and entry["name"] not in names:
            continue
        if "timestamps_of" in entry:
            (original,) = ensure_suites([entry["timestamps_of"]], report)
            made.append(ensure_timestamps(original, entry))
            continue
        top = ensure_part(entry["part_of"], entry["part"], report) if "part" in entry else ensure_packetdrill(report)
        folders = tuple(top / name for name in entry["folders"]) if "folders" in entry else (top,)
        made.append(Suite(entry["name"], entry["what"], entry["series"], folders))
    return made


def ensure_timestamps(original: Suite, entry: dict[str, Any]) -> Suite:
    """The suite of the original's scripts with timestamps (timestamps.py), cached by content."""
    digest = hashlib.sha256(hash_of_programs([Path(timestamps.__file__)]).encode())
    written: dict[str, str] = {}
    for script in original.scripts():
        text = timestamps.with_timestamps(original.text(script))
        if text is not None:
            written[script] = text
            digest.update(f"{script}\n{text}".encode())
    final = cache_root() / "foreign" / f"timestamps-{original.name}-{digest.hexdigest()[:16]}"
    with lock(final.name):
        if not final.is_dir():
            with whole_entry(final) as work:
                for folder in original.folders:
                    shutil.copytree(folder, work / folder.name)
                for path in work.glob("**/*.pkt"):
                    path.unlink()
                for script, text in written.items():
                    (work / script).write_text(text, encoding="utf-8")
    return Suite(
        entry["name"], f"{original.what}, with timestamps", original.series,
        tuple(final / folder.name for folder in original.folders), tuple(entry["subjects"]), timestamps.EXTRA_BYTES,
    )  # fmt: skip


def read_results(log: str) -> list[ScriptResult]:
    """Parse the job's lines "RESULT status variant script taken message", with fields separated by tabs."""
    results = []
    for line in log.splitlines():
        if line.startswith("RESULT\t"):
            _, status, variant, script, taken, message = line.split("\t", 5)
            results.append(ScriptResult(script, variant, status, message, int(taken)))
    return results


def boot(
    backend: Uml, suite: Suite, subject: Subject, scripts: list[str], report: Report = silent
) -> list[ScriptResult]:
    """Run scripts with one subject in one boot. If the boot hangs, the results of the remaining scripts are missing."""
    tool = ensure_packetdrill(report) / "packetdrill" / "packetdrill"
    with tempfile.TemporaryDirectory(prefix="lbe-foreign-") as name:
        work = Path(name)
        job = work / "job"
        job.mkdir()
        control = build_vulturectl(report) if subject.vulture else ""
        job_env = {
            "PACKETDRILL": f"$LBE_HOST{tool}",
            "FOLDERS": " ".join(f"$LBE_HOST{folder}" for folder in suite.folders),
            "VARIANTS": " ".join(subject.families),
            "CONTROL": subject.control,
            "CONTROLLER": subject.vulture or "",
            "VULTURECTL": f"$LBE_HOST{control}" if control else "",
            "MTU_EXTRA": str(suite.mtu_extra_bytes),
            "LBE_PACED": "1" if subject.paced else "",
            "LBE_ROUTE": subject.route,
        }
        (job / "env.sh").write_text("".join(f'{key}="{value}"\n' for key, value in job_env.items()))
        (job / "scripts").write_text("".join(f"{script}\n" for script in scripts))
        shutil.copy(JOB, job / "job.sh")
        shutil.copy(SYSCTL, job)
        modules = [backend.tools().modules[name] for name in subject.modules]
        with contextlib.suppress(WallHang):
            Machine(backend.build).run(
                job, work / "out", 1, modules, virtual_limit_s=VIRTUAL_LIMIT_S, wall_limit_s=WALL_LIMIT_S
            )
        return read_results((work / "out" / "job.log").read_text())


def run_subject(
    backend: Uml, suite: Suite, subject: Subject, scripts: list[str], report: Report = silent
) -> list[ScriptResult]:
    """Run scripts with one subject, in as many boots as necessary.

    Virtual time does not advance while the kernel computes, so that a loop in which one task waits for another never
    ends. d_invalidate() has such a loop, for threads that end together and have entries in /proc: an edit in
    packetdrill.toml keeps packetdrill from making these. The script that ran when a boot was ended runs again as the
    first one of another boot. If it does not end there either, it has failed.
    """
    results: list[ScriptResult] = []
    left = scripts
    while left:
        got = [result for result in boot(backend, suite, subject, left, report) if result.script in left]
        done = {result.script for result in got}
        # the results for other families of the last script may be missing
        if done != set(left) and got:
            done.discard(got[-1].script)
        if not done:
            got, done = [ScriptResult(left[0], subject.families[0], "fail", "the machine stood still")], {left[0]}
        results += [result for result in got if result.script in done]
        left = [script for script in left if script not in done]
    return results


def kept_results(
    backend: Uml, suite: Suite, subject: Subject, scripts: list[str], report: Report = silent
) -> list[ScriptResult]:
    """run_subject(), cached by content: kernel, sources of modules, scripts, program and job."""
    backend.prepare(subject.modules, report)
    hashes = [backend.tools().module_hash(name) for name in subject.modules]
    digest = hashlib.sha256(f"{backend.key()} {subject} {hashes} {VIRTUAL_LIMIT_S} {settings()['edit']}".encode())
    digest.update(hash_of_programs([JOB, SYSCTL]).encode())
    for script in scripts:
        digest.update(f"{script}\n{suite.text(script)}".encode())
    kept = cache_root() / "foreign" / f"results-{digest.hexdigest()[:16]}.json"
    if kept.is_file():
        return [ScriptResult(**one) for one in json.loads(kept.read_text(encoding="utf-8"))]
    results = run_subject(backend, suite, subject, scripts, report)
    kept.write_text(json.dumps([asdict(one) for one in results]), encoding="utf-8")
    return results


def passed_in(results: list[ScriptResult]) -> list[str]:
    """The scripts that passed over at least one family."""
    return sorted({result.script for result in results if result.status != "fail"})


def asserts_window(text: str) -> bool:
    """Whether a script asserts a window or a rate, which depend on the congestion control."""
    return bool(WINDOW_WORDS.search(text))


def listed(kind: str, suite: str, subject: str) -> list[tuple[str, str]]:
    """(script, why) of the entries of a kind in packetdrill.toml that apply to a subject in a suite."""
    return [
        (entry["script"], entry["why"])
        for entry in settings().get(kind, [])
        if any(fnmatch.fnmatch(subject, pattern) for pattern in entry["subjects"])
        and entry.get("suite", suite) == suite
    ]


def is_meant(script: str, pattern: str) -> bool:
    """Whether a pattern matches a script. The kernel's scripts are google's, with "_" in place of the folders' "/"."""
    return fnmatch.fnmatch(script, pattern) or fnmatch.fnmatch(script, "packetdrill/" + pattern.replace("/", "_"))


def judge(
    suite: str, subject: str, results: list[ScriptResult], reference: list[ScriptResult], window: dict[str, bool]
) -> PacketdrillOutcome:
    """Differences from the reference, and whether they are expected.

    A script that passes with the tolerance counts as passed. One that the set-up fails is a fault, also of a reference.
    window: script -> whether it asserts a window.
    """
    expected, known = listed("expected", suite, subject), listed("fault", suite, subject)
    before = {(result.script, result.variant): result.status for result in reference}
    outcome = PacketdrillOutcome(suite, subject)
    seen_different: set[str] = set()
    for result in results:
        outcome.taken += result.taken
        outcome.with_taken += result.taken > 0
        if result.status != "fail":
            outcome.passed += 1
            outcome.slow += result.status == "slow"
            continue
        outcome.failed += 1
        if SET_UP.search(result.message):
            outcome.faults.append(f"{result.script} ({result.variant}): {result.message} [the set-up]")
            continue
        if before.get((result.script, result.variant), "fail") == "fail":
            outcome.as_reference += 1
            continue
        what = f"{result.script} ({result.variant}): {result.message}"
        seen_different.add(result.script)
        why = next((why for pattern, why in expected if is_meant(result.script, pattern)), None)
        cause = next((why for pattern, why in known if is_meant(result.script, pattern)), None)
        if why is not None:
            outcome.expected.append(f"{what} [{why}]")
        elif cause is not None:
            outcome.faults.append(f"{what} [known: {cause}]")
        elif window.get(result.script):
            outcome.windows.append(what)
        else:
            outcome.faults.append(what)
    ran = {result.script for result in results}
    for pattern, _ in expected + known:
        meant = {script for script in ran if is_meant(script, pattern)}
        if meant and not meant & seen_different:
            outcome.outdated.append(f"{pattern}: listed as different, and it is not")
    return outcome


@dataclass(frozen=True)
class PacketdrillRan:
    """A suite with all its results: the kernel, their identity (run/identity.py), results, outcomes by subject."""

    suite: Suite
    kernel: dict[str, str]
    identity: Identity
    results: dict[str, list[ScriptResult]]
    outcomes: list[PacketdrillOutcome]


def chosen(names: list[str]) -> list[Subject]:
    """The subjects with these names (without names, all) and their references. Raises ForeignUnknown."""
    unknown = sorted(set(names) - {subject.name for subject in SUBJECTS})
    if unknown:
        known = ", ".join(subject.name for subject in SUBJECTS)
        raise ForeignUnknown(f"no subject {', '.join(unknown)}; there are: {known}")
    wanted = [subject for subject in SUBJECTS if not names or subject.name in names]
    references = {subject.reference for subject in wanted}
    # in SUBJECTS the references come first, with Reno before all others
    return [subject for subject in SUBJECTS if subject in wanted or subject.name in references | {"reno"}]


def wanted_of(suite: Suite, names: list[str]) -> list[str]:
    """The requested subjects (without names, all) for which the suite is meant; may be empty."""
    if not suite.subjects:
        return names
    return [name for name in names or suite.subjects if name in suite.subjects]


def run(
    suite: Suite, names: list[str], series: str | None = None, only: str = "*", report: Report = silent
) -> PacketdrillRan:
    """Run the subjects with these names (without names, all) and their references, and compare."""
    subjects = chosen(wanted_of(suite, names))
    scripts = suite.scripts(only)
    backend = Uml(series or suite.series, "plain")
    results: dict[str, list[ScriptResult]] = {}
    for number, subject in enumerate(subjects):
        # scripts that fail with the reference are not run: they would show nothing
        known = results.get(subject.reference)
        wanted = scripts if known is None else passed_in(known)
        wanted = [script for script in wanted if "ipv6" in subject.families or not script.endswith("v6.pkt")]
        report(f"packetdrill ({suite.name}): {subject.name}, {len(wanted)} scripts", number, len(subjects))
        results[subject.name] = [
            result
            for first in range(0, len(wanted), BOOT_SCRIPTS)
            for result in kept_results(backend, suite, subject, wanted[first : first + BOOT_SCRIPTS], report)
        ]
    window = {script: asserts_window(suite.text(script)) for script in scripts}
    outcomes = [
        judge(suite.name, subject.name, results[subject.name], results[subject.reference], window)
        for subject in subjects
    ]
    modules = {module for subject in subjects for module in subject.modules}
    return PacketdrillRan(suite, backend.facts(), of_backend(backend, modules), results, outcomes)


class ForeignUnknown(LbeError):
    """A subject, suite or script does not exist."""

    exit_status = 2
