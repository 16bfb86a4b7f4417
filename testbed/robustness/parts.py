# SPDX-License-Identifier: GPL-2.0
"""The parts of `make abuse`: what each does, in which kernel, how often, in the full and in the short form.

    Part -> job folder (guest/*.py, settings.json, files) -> Machine -> result.json -> Outcome

Every part runs on the sanitizer kernel, which reports misuse of memory, locks and integers. Load cycles and
drills also run on the plain kernel, which is closer to the kernels of users.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..backends.machine import Machine, leaks_of, read_text, signs_of
from ..backends.tools import build_side_modules, content_of
from ..backends.uml import HOST_ROOT, Uml
from ..base.cache import cache_root
from ..base.content import hash_of_programs
from ..base.errors import Kmemleak, LbeError, MachineFailure
from ..base.progress import Report, silent
from ..kernels.build import KernelBuild
from . import fuzz, packets, scenarios

HERE = Path(__file__).resolve().parent
GUEST = HERE / "guest"
MODULES = ("tcp_lp", "tcp_lowpri", "tcp_ledbat", "tcp_lbe", "vulture", "sch_shred", "shred_hint")
SANITIZER, PLAIN = "sanitizer", "plain"
#: name of a count of an outcome
OWN = "warnings of the kernel's own"
#: limit on the wall time of a boot; the longest took two minutes on a busy CPU
LIMIT_S = 600.0


class AbuseError(LbeError):
    """A part is unknown, or its program did not finish."""


@dataclass
class PartOutcome:
    """Result of a part. warnings: messages of the kernel; wrong: failed assertions."""

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
    more: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def good(self) -> bool:
        """Whether there was at least one case, and no warning, no lost byte and nothing wrong."""
        return bool(self.cases) and not (self.warnings or self.wrong or self.lost)


@dataclass(frozen=True)
class Part:
    """A program of guest/ with its settings. files: makes further files for it from the seed and the settings."""

    name: str
    flavour: str
    title: str
    program: str
    full: dict[str, int]
    short: dict[str, int] | None  # None: not in the short form
    files: Callable[[int, dict[str, int]], dict[str, str | bytes]] = lambda seed, settings: {}
    boots: int = 1  # number of boots in the full form, each with its own seed
    mem_mb: int = 768

    @property
    def key(self) -> str:
        """Its name on the command line."""
        return f"{self.name}/{self.flavour}"


def shadow_module(build: KernelBuild, report: Report = silent) -> Path:
    """module/lbe_shadow.ko for a sanitizer kernel, cached by content; its source explains its purpose."""
    files = {path.name: path for path in sorted((HERE / "module").glob("[Kl]*"))}
    content = content_of(build, files)
    built = build_side_modules(build, f"shadow-{content}", content, files, (), "building lbe_shadow", report)
    return built["lbe_shadow"]


#: Faults of the kernel's own code if one of its allocations fails while a module is being loaded: pattern -> place
#: (6.12). Patterns are searched in the line of a warning, or in the trace of a leak.
KERNELS_OWN = {
    r"WARNING: .* event_(define_fields|file_put)\+": "kernel/trace/trace_events.c: WARN_ON_ONCE() of an ENOMEM",
    r"\bsysfs_slab_add\+": "mm/slub.c: leaks the name of a cache that sysfs could not take",
}


def sorted_out(console: str, leaks: str) -> tuple[list[str], list[str]]:
    """The kernel's warnings in a boot: (those about its own code, those about the modules)."""
    own: list[str] = []
    ours: list[str] = []
    for kind, line in signs_of(console):
        if kind is Kmemleak:
            continue
        (own if any(re.search(pattern, line) for pattern in KERNELS_OWN) else ours).append(line)
    for text in leaks_of(leaks):
        known = any(re.search(pattern, text) for pattern in KERNELS_OWN)
        (own if known else ours).append("kmemleak: unreferenced object" + text.rstrip())
    return own, ours


#: job.sh; it works on a copy in memory, since the job folder is the host's and read-only
JOB = "mkdir /tmp/abuse && cp -r . /tmp/abuse && cd /tmp/abuse\nexec /usr/bin/python3 -u program.py\n"


def watch(path: Path, title: str, ended: threading.Event, report: Report) -> None:
    """Show the guest's progress once a second."""
    while not ended.wait(1.0):
        words = (read_text(path) or "").split()
        if len(words) == 2:
            report(title, int(words[0]), int(words[1]))


def in_guest(
    part: Part, build: KernelBuild, modules: dict[str, Path], seed: int, settings: dict[str, int], report: Report
) -> PartOutcome:
    """Run a part's program once."""
    outcome = PartOutcome(part.name, f"{build.release} {build.flavour}", seed)
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
        text = json.dumps({"seed": seed, "modules": known, "attributes": attributes(), **settings, **MARKS})
        (job / "settings.json").write_text(text, encoding="utf-8")
        (job / "job.sh").write_text(JOB, encoding="ascii")
        ended = threading.Event()
        title = f"{part.title} ({part.flavour})"
        report(title, 0, None)
        watcher = threading.Thread(target=watch, args=(out / "progress", title, ended, report), daemon=True)
        watcher.start()
        began = time.monotonic()
        try:
            Machine(build, mem_mb=part.mem_mb).run(job, out, seed=seed, virtual_limit_s=500000, wall_limit_s=LIMIT_S)
        except MachineFailure as failure:
            outcome.more["failure"] = str(failure)
            own, ours = sorted_out(read_text(out / "console") or "", read_text(out / "kmemleak") or "")
            outcome.warnings = ours or ([] if own and read_text(out / "status") == "ok\n" else [str(failure)])
            if own:
                outcome.counts[OWN] = len(own)
        finally:
            ended.set()
            watcher.join()
        outcome.wall_s = round(time.monotonic() - began, 1)
        if (out / "result.json").is_file():
            result = json.loads((out / "result.json").read_text(encoding="utf-8"))
            outcome.cases = result.pop("cases")
            outcome.counts |= result.pop("counts")
            outcome.bytes, outcome.lost, outcome.wrong = result.pop("bytes"), result.pop("lost"), result.pop("wrong")
            outcome.more |= result
        elif not outcome.warnings:
            raise AbuseError(f"{part.key}: no result")
    return outcome


#: marks in the output of fuzz.py that the guest replaces
MARKS = {"family_mark": fuzz.FAMILY_MARK, "pid_mark": fuzz.PID_MARK, "cgroup_mark": fuzz.CGROUP_MARK}


def attributes() -> dict[str, dict[str, int]]:
    """Numbers of vulture's attributes, from its netlink specification: set -> name -> number."""
    return {name: {kind.name: kind.number for kind in kinds} for name, kinds in fuzz.vulture_grammar().sets.items()}


def fuzz_files(seed: int, settings: dict[str, int]) -> dict[str, str | bytes]:
    """Lines of the stored corpus, then new ones."""
    lines = [*fuzz.stored(), *fuzz.Fuzzer(seed).lines(settings["messages"])]
    return {"lines": "\n".join(lines) + "\n"}


def packet_files(seed: int, settings: dict[str, int]) -> dict[str, str | bytes]:
    """Templates of packets, and the module that sends them."""
    return {
        "packets": packets.Maker(seed).lines(settings["packets"]),
        "wire.py": (GUEST / "wire.py").read_text(encoding="utf-8"),
    }


def wire_files(seed: int, settings: dict[str, int]) -> dict[str, str | bytes]:
    """The module for the other end of the wire."""
    return {"wire.py": (GUEST / "wire.py").read_text(encoding="utf-8")}


PARTS = (
    Part(
        "cycles", PLAIN, "load and unload", "cycles",
        {"idle": 1000, "busy": 1000, "bytes": 100000}, {"idle": 20, "busy": 5, "bytes": 50000},
    ),
    Part(
        "cycles", SANITIZER, "load and unload", "cycles",
        {"idle": 200, "busy": 200, "bytes": 100000}, {"idle": 2, "busy": 2, "bytes": 50000}, boots=5,
    ),
    Part(
        "fuzz", SANITIZER, "netlink, tc and settings", "fuzz",
        {"messages": 10000}, {"messages": 400}, fuzz_files, boots=10,
    ),
    Part(
        "packets", SANITIZER, "hostile packets", "hostile",
        {"packets": 5000, "connections": 45}, {"packets": 300, "connections": 3}, packet_files, boots=4,
    ),
    Part("drills", PLAIN, "scripts on the wire", "drills", {}, {}, wire_files),
    Part("drills", SANITIZER, "scripts on the wire", "drills", {}, None, wire_files),
    Part(
        "liars", SANITIZER, "peers that lie", "liars",
        {"seconds": 4, "singly": 1}, {"seconds": 2, "singly": 0}, wire_files,
    ),
    Part("privilege", SANITIZER, "who may do what", "privilege", {}, {}),
    Part("failures", SANITIZER, "allocation failures", "failures", {"stride": 1}, {"stride": 80}),
    Part(
        "shortage", SANITIZER, "memory short at random", "shortage",
        {"connections": 400}, {"connections": 6}, wire_files,
    ),
    Part(
        "namespaces", SANITIZER, "namespaces under load", "namespaces",
        {"namespaces": 300, "bytes": 200000}, {"namespaces": 6, "bytes": 100000},
    ),
    # without a program: run by scenarios.py
    Part("scenarios", SANITIZER, "scenarios", "", {}, None),
)  # fmt: skip


def run_scenarios(part: Part, seed: int, series: str, fresh: bool, report: Report) -> PartOutcome:
    """Run the scenarios, with the runner and cache of experiments."""
    began = time.monotonic()
    cases, warnings, wrong, counts, kernel = scenarios.run_all(seed, series, part.flavour, fresh, report)
    outcome = PartOutcome(part.name, kernel, seed, cases, warnings=warnings, wrong=wrong, counts=counts)
    outcome.wall_s = round(time.monotonic() - began, 1)
    return outcome


def merge(parts: list[PartOutcome]) -> PartOutcome:
    """Combine the outcomes of several boots of a part."""
    one = PartOutcome(parts[0].part, parts[0].kernel, parts[0].seed)
    for other in parts:
        one.cases, one.bytes, one.lost = one.cases + other.cases, one.bytes + other.bytes, one.lost + other.lost
        one.warnings, one.wrong = one.warnings + other.warnings, one.wrong + other.wrong
        one.wall_s = round(one.wall_s + other.wall_s, 1)
        for name, number in other.counts.items():
            one.counts[name] = one.counts.get(name, 0) + number
        for name, value in other.more.items():
            old = one.more.get(name)
            one.more[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return one


def kept_in(part: Part, backend: Uml, seed: int, settings: dict[str, int]) -> Path:
    """File for the outcome of a boot, named by a hash of everything that affects it (for modules, their sources)."""
    digest = hashlib.sha256(f"{backend.key()} {part.key} {seed} {json.dumps(settings)} {attributes()}".encode())
    programs = (GUEST / "common.py", GUEST / f"{part.program}.py", HERE / "module" / "lbe_shadow.c")
    digest.update(hash_of_programs(programs).encode())
    for name in MODULES:
        digest.update(backend.tools().module_hash(name).encode())
    for name, content in sorted(part.files(seed, settings).items()):
        digest.update(name.encode() + (content.encode() if isinstance(content, str) else content))
    return cache_root() / "abuse" / f"{part.name}-{part.flavour}-{digest.hexdigest()[:16]}.json"


def run_part(
    part: Part, seed: int = 1, *, short: bool = False, series: str = "6.12", fresh: bool = False,
    report: Report = silent,
) -> PartOutcome:  # fmt: skip
    """Run all boots of one part with one seed. A boot that was good before is not repeated, unless `fresh`.

    Raises the errors of building the kernel and the modules.
    """
    if not part.program:
        return run_scenarios(part, seed, series, fresh, report)
    backend = Uml(series, part.flavour)
    backend.prepare(MODULES, report)
    modules = {name: backend.tools().modules[name] for name in MODULES}
    if part.flavour == SANITIZER:
        modules["lbe_shadow"] = shadow_module(backend.build, report)
    settings = (part.short or {}) if short else part.full
    outcomes = []
    for boot in range(1 if short else part.boots):
        own_seed = seed * 1000 + boot
        kept = kept_in(part, backend, own_seed, settings)
        if kept.is_file() and not fresh:
            outcomes.append(PartOutcome(**json.loads(kept.read_text(encoding="utf-8"))))
            continue
        outcome = in_guest(part, backend.build, modules, own_seed, settings, report)
        if outcome.good:
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
        outcomes.append(outcome)
    made = merge(outcomes)
    made.seed = seed
    return made
