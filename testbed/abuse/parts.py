# SPDX-License-Identifier: GPL-2.0
"""The parts of `make abuse`: what each does, in which kernel, how often, in full and in the short form.

    Part -> job folder (guest/*.py, settings.json, files) -> Machine -> result.json -> Outcome

Every part runs on the sanitizer kernel, which reports misuse of memory, locks and integers and is about
15 times slower. What the issue asks for by number and what would take longer than a coffee there runs
on the plain kernel in full, and a part of it on the sanitizer: the table says which.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..backend import HOST_ROOT
from ..errors import LbeError, MachineFailure
from ..kernel import KernelBuild, KernelSpec, ensure_kernel
from ..machine import Machine, read_text, signs_of
from ..modules import ensure_modules
from ..progress import Report, silent
from . import fuzz

GUEST = Path(__file__).resolve().parent / "guest"
MODULES = ("tcp_lp", "tcp_lowpri", "tcp_ledbat", "vulture", "sch_shred", "shred_hint")
SANITIZER, PLAIN = "sanitizer", "plain"


class AbuseError(LbeError):
    """A part is unknown, or its program did not come to its end."""


@dataclass
class Outcome:
    """What a part did. warnings: the kernel's own words; wrong: what was not as it should be."""

    part: str
    kernel: str
    seed: int
    cases: int = 0
    bytes: int = 0
    lost: int = 0
    warnings: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    wall_s: float = 0.0
    more: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def good(self) -> bool:
        """Nothing warned, nothing lost, nothing wrong, and something tried."""
        return bool(self.cases) and not (self.warnings or self.wrong or self.lost)

    def plain(self) -> dict[str, object]:
        """For JSON."""
        made = asdict(self)
        del made["more"]
        return {**made, "good": self.good}


@dataclass(frozen=True)
class Part:
    """A program of guest/ with its settings. files: what to put beside it, of the seed and the settings."""

    name: str
    flavour: str
    title: str
    program: str
    full: dict[str, int]
    short: dict[str, int]
    files: Callable[[int, dict[str, int]], dict[str, str | bytes]] = lambda seed, settings: {}
    mem_mb: int = 768
    limit_s: float = 1800.0

    @property
    def key(self) -> str:
        """As the command line names it."""
        return f"{self.name}/{self.flavour}"


def job_script(environment: dict[str, str]) -> str:
    """What the guest starts."""
    lines = [f"export {name}='{value}'" for name, value in environment.items()]
    # a copy in memory: the job folder is the host's, and read-only
    move = "mkdir /tmp/abuse && cp -r . /tmp/abuse && cd /tmp/abuse"
    return "\n".join([*lines, move, "exec /usr/bin/python3 -u program.py"])


def watch(path: Path, title: str, ended: threading.Event, report: Report) -> None:
    """Show the guest's progress once a second."""
    while not ended.wait(1.0):
        words = (read_text(path) or "").split()
        if len(words) == 2:
            report(title, int(words[0]), int(words[1]))


def in_guest(
    part: Part, build: KernelBuild, modules: dict[str, Path], seed: int, settings: dict[str, int], report: Report
) -> Outcome:
    """Run a part's program once."""
    outcome = Outcome(part.name, f"{build.release} {build.flavour}", seed)
    with tempfile.TemporaryDirectory(prefix="lbe-abuse.") as name:
        job, out = Path(name) / "job", Path(name) / "out"
        job.mkdir()
        out.mkdir()
        shutil.copy(GUEST / "common.py", job)
        shutil.copy(GUEST / f"{part.program}.py", job / "program.py")
        for file, content in part.files(seed, settings).items():
            data = content.encode() if isinstance(content, str) else content
            (job / file).parent.mkdir(exist_ok=True)
            (job / file).write_bytes(data)
        known = {one: f"{HOST_ROOT}{path.resolve()}" for one, path in modules.items()}
        text = json.dumps({"seed": seed, "modules": known, **settings, **MARKS})
        (job / "settings.json").write_text(text, encoding="utf-8")
        (job / "job.sh").write_text(job_script({}), encoding="ascii")
        ended = threading.Event()
        title = f"{part.title} ({part.flavour})"
        report(title, 0, None)
        watcher = threading.Thread(target=watch, args=(out / "progress", title, ended, report), daemon=True)
        watcher.start()
        began = time.monotonic()
        try:
            Machine(build, mem_mb=part.mem_mb).run(
                job, out, seed=seed, virtual_limit_s=500000, wall_limit_s=part.limit_s
            )
        except MachineFailure as failure:
            outcome.warnings = [line for _, line in signs_of(read_text(out / "console") or "")] or [str(failure)]
            outcome.more["failure"] = str(failure)
        finally:
            ended.set()
            watcher.join()
        outcome.wall_s = round(time.monotonic() - began, 1)
        if (out / "result.json").is_file():
            result = json.loads((out / "result.json").read_text(encoding="utf-8"))
            outcome.cases, outcome.counts = result.pop("cases"), result.pop("counts")
            outcome.bytes, outcome.lost, outcome.wrong = result.pop("bytes"), result.pop("lost"), result.pop("wrong")
            outcome.more |= result
        elif not outcome.warnings:
            raise AbuseError(f"{part.key}: no result")
    return outcome


#: what fuzz.py leaves for the guest to fill in
MARKS = {"family_mark": fuzz.FAMILY_MARK, "pid_mark": fuzz.PID_MARK, "cgroup_mark": fuzz.CGROUP_MARK}


def fuzz_files(seed: int, settings: dict[str, int]) -> dict[str, str | bytes]:
    """The stored corpus, then new lines."""
    lines = [*fuzz.stored(), *fuzz.Fuzzer(seed).lines(settings["messages"])]
    return {"lines": "\n".join(lines) + "\n"}


PARTS = (
    Part(
        "cycles", PLAIN, "load and unload", "cycles",
        {"idle": 1000, "busy": 1000, "bytes": 100000}, {"idle": 40, "busy": 10, "bytes": 50000},
    ),
    Part(
        "cycles", SANITIZER, "load and unload", "cycles",
        {"idle": 100, "busy": 100, "bytes": 100000}, {"idle": 3, "busy": 2, "bytes": 50000},
    ),
    Part(
        "fuzz", SANITIZER, "netlink, tc and settings", "fuzz",
        {"messages": 100000}, {"messages": 1500}, fuzz_files,
    ),
)  # fmt: skip


def run_part(
    part: Part, seed: int = 1, *, short: bool = False, series: str = "6.12", report: Report = silent
) -> Outcome:
    """One part, one seed. Raises what the kernel's and the modules' builds raise."""
    build = ensure_kernel(KernelSpec(series=series, flavour=part.flavour), report)
    modules = ensure_modules(build, progress=report).paths
    return in_guest(part, build, modules, seed, part.short if short else part.full, report)
