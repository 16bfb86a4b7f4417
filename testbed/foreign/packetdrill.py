# SPDX-License-Identifier: GPL-2.0
"""packetdrill's TCP scripts with each congestion control, and with vulture's rules in force.

    archive (named by the user, checked against its SHA-256) -> build in the cache -> one boot a subject
    -> a status for each script -> compared with Reno's -> verdicts

A subject is a congestion control, or Reno with a vulture controller that takes every connection. Each script
runs in a network namespace of its own. A script that fails runs again with a tolerance of 150 ms: paced
controls send the same packets later, which is no fault.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from ..backends.machine import Machine
from ..backends.tools import build_vulturectl
from ..base.cache import cache_root, lock, whole_entry
from ..base.errors import BuildFailed, LbeError
from ..base.places import REPO
from ..base.progress import Report, silent
from ..kernels.build import KernelBuild, ensure_kernel
from ..kernels.modules import ensure_modules
from ..kernels.series import KernelSpec

HERE = Path(__file__).resolve().parent
SETTINGS = HERE / "packetdrill.toml"
JOB = HERE / "packetdrill.sh"
#: a script that asserts one of these words tests a window, which differs by law
WINDOW_WORDS = re.compile(r"\btcpi_(snd_cwnd|snd_ssthresh|pacing_rate|delivery_rate)\b")
#: virtual seconds that all scripts of a subject may take, and wall seconds for a busy machine
VIRTUAL_LIMIT_S, WALL_LIMIT_S = 20_000.0, 3600.0


class ForeignAbsent(LbeError):
    """A suite's source is not on this machine. This is a state of its own and never green."""


@dataclass(frozen=True)
class Subject:
    """What is tested: a congestion control and the module that has it, with a vulture controller or none."""

    name: str
    control: str
    module: str | None = None
    vulture: str | None = None


SUBJECTS = (
    Subject("reno", "reno"),
    Subject("cubic", "cubic"),
    Subject("lbe", "lbe", "tcp_lbe"),
    Subject("lp", "lp", "tcp_lp"),
    Subject("ledbat", "ledbat", "tcp_ledbat"),
    Subject("ledbatpp", "ledbatpp", "tcp_ledbat"),
    Subject("background", "background", "tcp_lowpri"),
    Subject("vulture", "reno", None, "default"),
)


@dataclass(frozen=True)
class Result:
    """How one script ended. status: pass, slow (passes with 150 ms of tolerance) or fail."""

    script: str
    variant: str
    status: str
    message: str


@dataclass
class Outcome:
    """A subject beside Reno. faults: scripts that pass with Reno and fail here without an expected reason."""

    subject: str
    passed: int = 0
    slow: int = 0
    failed: int = 0
    faults: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """No fault, no outdated entry in the list, and something ran."""
        return bool(self.passed) and not (self.faults or self.outdated)


def settings() -> dict:
    """packetdrill.toml."""
    return tomllib.loads(SETTINGS.read_text(encoding="utf-8"))


def archive(source: dict) -> Path:
    """The archive's file. Raises ForeignAbsent if there is none or its content is another."""
    named = os.environ.get(source["variable"])
    path = Path(named) if named else REPO / source["default"]
    if not path.is_file():
        raise ForeignAbsent(
            f"packetdrill is absent: {path} does not exist; set {source['variable']} to an archive of {source['what']}"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != source["sha256"]:
        raise ForeignAbsent(f"{path} has SHA-256 {digest}; {source['what']} has {source['sha256']}")
    return path


def ensure_packetdrill(report: Report = silent) -> Path:
    """The folder with packetdrill/packetdrill built and the scripts beside it, once per content of source and edits."""
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
    """Replace all places in a file that read `find`; BuildFailed if there is none."""
    text = path.read_text(encoding="utf-8")
    if find not in text:
        raise BuildFailed(f"{path.name}: no place reads {find!r}")
    path.write_text(text.replace(find, replace), encoding="utf-8")


def build(folder: Path) -> None:
    """Configure and compile; BuildFailed with the compiler's words."""
    for command in (["./configure"], ["make", "-s", "packetdrill", "CFLAGS=-g -O1"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildFailed(f"packetdrill: {' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def scripts_of(folder: Path, only: str = "*") -> list[str]:
    """The scripts that run, relative to the folder, in order."""
    left_out = [entry["scripts"] for entry in settings()["left_out"]]
    names = sorted(str(path.relative_to(folder)) for path in folder.glob("tcp/**/*.pkt"))
    return [
        name
        for name in names
        if fnmatch.fnmatch(name, only) and not any(fnmatch.fnmatch(name, pattern) for pattern in left_out)
    ]


def read_results(log: str) -> list[Result]:
    """The job's lines "RESULT status variant script message", fields apart by tabs."""
    results = []
    for line in log.splitlines():
        if line.startswith("RESULT\t"):
            _, status, variant, script, message = line.split("\t", 4)
            results.append(Result(script, variant, status, message))
    return results


def run_subject(build_: KernelBuild, subject: Subject, scripts: list[str], report: Report = silent) -> list[Result]:
    """All scripts with one subject, in one boot. LbeError if a script is missing from what it printed."""
    folder = ensure_packetdrill(report)
    modules = ensure_modules(build_, progress=report)
    wanted = [name for name in (subject.module, "vulture" if subject.vulture else None) if name]
    with tempfile.TemporaryDirectory(prefix="lbe-foreign-") as name:
        work = Path(name)
        job = work / "job"
        job.mkdir()
        control = build_vulturectl(report) if subject.vulture else ""
        job_env = {
            "SUITE": f"$LBE_HOST{folder}",
            "CONTROL": subject.control,
            "CONTROLLER": subject.vulture or "",
            "VULTURECTL": f"$LBE_HOST{control}" if control else "",
        }
        (job / "env.sh").write_text("".join(f'{key}="{value}"\n' for key, value in job_env.items()))
        (job / "scripts").write_text("".join(f"{script}\n" for script in scripts))
        shutil.copy(JOB, job / "job.sh")
        Machine(build_).run(
            job, work / "out", 1, modules.load_order(wanted),
            virtual_limit_s=VIRTUAL_LIMIT_S, wall_limit_s=WALL_LIMIT_S,
        )  # fmt: skip
        results = read_results((work / "out" / "job.log").read_text())
    lost = set(scripts) - {result.script for result in results}
    if lost:
        raise LbeError(f"{subject.name}: {len(lost)} scripts left no result: {', '.join(sorted(lost)[:5])}")
    return results


def asserts_window(folder: Path, script: str) -> bool:
    """Whether a script asserts a window or a rate, which differ by the control's law."""
    return bool(WINDOW_WORDS.search((folder / script).read_text(encoding="utf-8", errors="replace")))


def judge(subject: str, results: list[Result], reno: list[Result], window: dict[str, bool]) -> Outcome:
    """What differs from Reno, and whether that was expected.

    A script counts as passed where any variant differs in no other way than time. window: by script, whether it
    asserts a window.
    """
    expected = [
        (entry["script"], entry["why"])
        for entry in settings().get("expected", [])
        if any(fnmatch.fnmatch(subject, pattern) for pattern in entry["subjects"])
    ]
    before = {(result.script, result.variant): result.status for result in reno}
    outcome = Outcome(subject)
    seen_different: set[str] = set()
    for result in results:
        if result.status != "fail":
            outcome.passed += 1
            outcome.slow += result.status == "slow"
            continue
        outcome.failed += 1
        if before.get((result.script, result.variant), "fail") == "fail":
            continue
        what = f"{result.script} ({result.variant}): {result.message}"
        seen_different.add(result.script)
        why = next((why for pattern, why in expected if fnmatch.fnmatch(result.script, pattern)), None)
        if why is not None:
            outcome.expected.append(f"{what} [{why}]")
        elif window.get(result.script):
            outcome.windows.append(what)
        else:
            outcome.faults.append(what)
    ran = {result.script for result in results}
    for pattern, _ in expected:
        if fnmatch.filter(ran, pattern) and not fnmatch.filter(seen_different, pattern):
            outcome.outdated.append(f"{pattern}: listed as different, and it is not")
    return outcome


def run(
    names: list[str], series: str, only: str = "*", report: Report = silent
) -> tuple[list[Outcome], dict[str, list[Result]], str]:
    """The subjects of these names (all without a name) beside Reno, all results by subject, the modules' version."""
    unknown = sorted(set(names) - {subject.name for subject in SUBJECTS})
    if unknown:
        known = ", ".join(subject.name for subject in SUBJECTS)
        raise ForeignUnknown(f"no subject {', '.join(unknown)}; there are: {known}")
    folder = ensure_packetdrill(report)
    scripts = scripts_of(folder, only)
    if not scripts:
        raise ForeignUnknown(f"no script matches {only!r}")
    build_ = ensure_kernel(KernelSpec(series=series))
    chosen = [subject for subject in SUBJECTS if not names or subject.name in names or subject.name == "reno"]
    results: dict[str, list[Result]] = {}
    for number, subject in enumerate(chosen):
        report(f"packetdrill: {subject.name}, {len(scripts)} scripts", number, len(chosen))
        results[subject.name] = run_subject(build_, subject, scripts, report)
    window = {script: asserts_window(folder, script) for script in scripts}
    outcomes = [judge(name, found, results["reno"], window) for name, found in results.items()]
    return outcomes, results, ensure_modules(build_, progress=report).version


class ForeignUnknown(LbeError):
    """A subject or script that there is not."""

    exit_status = 2
