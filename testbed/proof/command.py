# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed proof: how third-party programs disturb a user, as they are and in the background.

The numbers are written to proof.json, a document for the pages. Exit status: 0 success; 1 a program failed or misses a
bound (judge/proof.py); 2 wrong usage.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..backends.distro import ensure_image
from ..backends.tools import CONTROL_SOURCES, build_vulturectl
from ..base.columns import aligned
from ..base.errors import LbeError
from ..base.progress import Report, make_progress
from ..judge.proof import NAME, NOBODY
from ..measure.summary import summarise
from ..present import state
from ..present.text import interval
from ..results import digest
from ..run import collect, identity, runner
from . import machine

MODES = ("alone", "plain", "background")
#: files that affect the numbers, besides the modules: all that vulturectl is built from, without what its build makes
FILES = [
    "testbed/proof/guest/person.py", "testbed/proof/machine.py", "testbed/proof/programs.sh",
    "testbed/backends/distro.py",
    *(name for name in CONTROL_SOURCES if not name.endswith(".skel.h")),
    *(f"packaging/{name}" for name in machine.UNITS),
]  # fmt: skip
METRICS = ("page", "page_worst", "pages", "voice", "voice_lost", "took")
EXAMPLES = """\
examples:
  python3 -m testbed proof                    every program, about five minutes each, one per CPU at a time
  python3 -m testbed proof curl restic        these; what the file has of others stays, if it is of the same tree
  python3 -m testbed proof nobody             the person alone
  python3 -m testbed proof --runs 3           three runs of every program, with the numbers' spread
"""


RUNS_MAX = 100


class ProofUnknown(LbeError):
    """The program, the number of runs or the number of guests is not valid."""

    exit_status = 2


def programs() -> list[str]:
    """The names of PROGRAMS in guest/person.py, and "nobody"."""
    for statement in ast.parse(machine.PERSON.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "PROGRAMS":
            assert isinstance(statement.value, ast.Dict)
            return [NOBODY, *(str(key.value) for key in statement.value.keys if isinstance(key, ast.Constant))]
    raise ProofUnknown(f"{machine.PERSON.name} has no PROGRAMS")


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser(
        NAME,
        help="measure how ordinary programs disturb a person's pages and calls, as they are and in the background",
        epilog=EXAMPLES + "\nprograms: " + ", ".join(programs()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="PROGRAM", help="program (default: all)")
    sub.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help=f"where {NAME}.json is read and written"
    )
    sub.add_argument("--runs", type=int, default=1, metavar="N", help="runs of each program (default: 1)")
    sub.add_argument("--jobs", type=int, metavar="N", help="guests at the same time (default: one per CPU)")
    sub.set_defaults(do=run)


def empty(report: Report, name: str = NAME, files: list[str] = FILES, runs: int = 1) -> dict[str, Any]:
    """A document of this tree without cases, of the command of that name, for so many runs of each case."""
    image = ensure_image(machine.SERIES, report)
    kernel = {"series": machine.SERIES, "flavour": "Debian", "release": image.release, "key": image.key}
    return digest.of_files(
        name,
        (files, identity.hash_of_files(files)),
        identity.of_tree(f"qemu {image.release}", ["tcp_lbe", "vulture"]),
        {
            "command": f"python3 -m testbed {name}",
            "kernel": kernel,
            "backend": "qemu",
            "host": collect.host_facts(),
            "programs": machine.ensure_programs(image, report).versions,
        },
        {"testbed": [runner.version()], "modules": {}},
        list(range(1, runs + 1)),
    )


def same_tree(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the numbers of two documents may be combined in one."""
    return all(one.get(key) == other.get(key) for key in ("format", "identity", "file_sha256", "files")) and (
        one["provenance"]["programs"] == other["provenance"]["programs"]
    )


def with_seeds(document: dict[str, Any], runs: int) -> None:
    """Add this number of runs to those that were asked for."""
    seeds = sorted({*document["asked_seeds"], *range(1, runs + 1)})
    document["asked_seeds"] = seeds
    more = f" --runs {len(seeds)}" if len(seeds) > 1 else ""
    document["provenance"]["command"] = f"python3 -m testbed {NAME}{more}"


def case_of(program: str, mode: str) -> dict[str, str]:
    """The case of a program in a mode."""
    return {"beside": NOBODY if program == NOBODY else "program", "program": program, "mode": mode}


def with_programs(document: dict[str, Any], names: list[str]) -> None:
    """Add the cases of these programs to those that were asked for, in the order of programs and modes."""
    had = document.get("asked_cases", [one["case"] for one in document["cases"]])
    more = [case_of(name, mode) for name in names for mode in (MODES[:1] if name == NOBODY else MODES)]
    document["asked_cases"] = sorted([*had, *(case for case in more if case not in had)], key=place())


def place() -> Callable[[dict[str, str]], tuple[int, int]]:
    """What gives the place of a case in the order of programs and modes."""
    order = programs()
    return lambda case: (order.index(case["program"]), MODES.index(case["mode"]))


def with_case(document: dict[str, Any], told: dict[str, Any], run: int = 1) -> None:
    """Add the output of person.py for one mode of a run to a document; it replaces an earlier one of that run."""
    case = case_of(told["program"], told["mode"])
    runs: dict[int, dict[str, float]] = {}
    seen: list[str] = []
    cases = []
    for one in document["cases"]:
        if one["case"] != case:
            cases.append(one)
            continue
        others = [index for index, seed in enumerate(one["seeds"]) if seed != run]
        seen = one["seen"] if others else []
        runs = {one["seeds"][at]: {name: values[at] for name, values in one["metrics"].items()} for at in others}
    runs[run] = {name: round(float(told[name]), 4) for name in METRICS if name in told}
    seeds = sorted(runs)
    made = {
        "case": case, "seeds": seeds, "jobs": [], "queue": [],
        "metrics": {name: [runs[seed][name] for seed in seeds] for name in runs[run]},
        "seen": list(dict.fromkeys([*seen, *told.get("seen", [])])),
        "user": told.get("user", ""),
    }  # fmt: skip
    place_of = place()
    document["cases"] = sorted([*cases, made], key=lambda one: place_of(one["case"]))


def background_was_seen(told: dict[str, Any]) -> bool:
    """Whether vulturectl top showed connections of the program in the background, in at least one direction."""
    return told["mode"] != "background" or bool(told["seen"])


def table(document: dict[str, Any]) -> str:
    """A line for each program and mode."""
    rows = [("program", "mode", "page s", "worst s", "voice ms", "takes s", "seen")]
    for one in document["cases"]:
        value = {name: interval(summarise(values)) for name, values in one["metrics"].items()}
        cells = (value.get(name, "") for name in ("page", "page_worst", "voice", "took"))
        rows.append((one["case"]["program"], one["case"]["mode"], *cells, ", ".join(one["seen"])))
    return "\n".join(aligned(rows, words=len(rows[0])))


def measured(asked: tuple[int, str]) -> tuple[int, str, list[dict[str, Any]], float, str]:
    """Measure a run of a program in a worker process: both, the output of person.py, the seconds taken, an error."""
    run, name = asked
    began = time.monotonic()
    said: list[dict[str, Any]] = []
    why = ""
    with tempfile.TemporaryDirectory(prefix="lbe-proof.") as folder:
        try:
            said = machine.noticed(name, (), Path(folder) / "out", run=run)
        except LbeError as error:
            why = f"{name}: {error}"
    return run, name, said, time.monotonic() - began, why


def ignore_interrupt() -> None:
    """Ignore SIGINT in a worker: the parent gets it too and ends the workers, and guests end with them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(args: argparse.Namespace) -> int:
    """Run the command: measure, print and write; returns the exit status."""
    known = programs()
    unknown = [name for name in args.names if name not in known]
    if unknown:
        raise ProofUnknown(f"no program {', '.join(unknown)}; there are: {', '.join(known)}")
    if args.jobs is not None and args.jobs < 1:
        raise ProofUnknown(f"--jobs {args.jobs} is not at least 1")
    if not 1 <= args.runs <= RUNS_MAX:
        raise ProofUnknown(f"--runs {args.runs} is not from 1 to {RUNS_MAX}")
    progress = make_progress()
    path = args.out / f"{NAME}.json"
    failed = []
    try:
        document = empty(progress, runs=args.runs)
        if path.is_file() and same_tree(old := digest.load(path), document):
            document = old
        with_seeds(document, args.runs)
        with_programs(document, args.names or known)
        machine.ensure_disk(progress)
        build_vulturectl(progress)
        asked = [(run, name) for run in range(1, args.runs + 1) for name in args.names or known]
        with multiprocessing.Pool(args.jobs or runner.default_jobs(), ignore_interrupt) as pool:
            for number, (run, name, said, took_s, why) in enumerate(pool.imap_unordered(measured, asked)):
                failed += [why] if why else []
                failed += [f"{name}: vulturectl showed nothing of it" for told in said if not background_was_seen(told)]
                for told in said:
                    with_case(document, told, run)
                digest.save(document, args.out)
                progress(f"{name}, run {run}: {took_s:.0f} s", number + 1, len(asked))
    finally:
        progress.close()
    print(table(document))
    for text in [*failed, *(missed := state.proof_faults(document))]:
        print(f"FAILED: {text}")
    return 1 if failed or missed else 0
