# SPDX-License-Identifier: GPL-2.0
"""The experiments in ns-2: the document ns2_NAME has the cases of NAME that ns-2 can express.

    python3 -m testbed ns2 [NAME|PAPER|FIGURE...]

Cases and metrics have the experiment's names, so that a row of a figure finds ns-2's number under the same name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..backends.ns2 import plan as plans
from ..backends.ns2.machine import NETWORK, PLAN, Ns2
from ..base.errors import LbeError
from ..base.places import REPO
from ..judge import figures
from ..measure.summary import summarise
from ..present.text import interval
from ..results import digest
from ..run import identity
from ..run import job as jobs
from ..run.runner import OnProgress, Options, run
from ..spec.experiment import Experiment, case_name, load, matches
from ..spec.tables import ExperimentError

#: an experiment that compares ns-2's senders with the kernel's
SENDERS = "ns2_tcp"


def expressible(one: Experiment, mode: str = "default") -> list[dict[str, str]]:
    """The cases that ns-2 can express."""
    found = []
    for case in one.cases(mode):
        try:
            plans.text(jobs.make(one.name, case, one.head.seed, one.setting(case, mode)))
        except plans.CannotSay:
            continue
        found.append(case)
    return found


def wanted(words: Iterable[str]) -> list[str]:
    """Experiments given by names, papers or keys of figures; without words, SENDERS and all experiments for figures."""
    listed = figures.listed()
    by_word: dict[str, list[str]] = {}
    for figure in listed:
        names = [name for name in (figure.experiment, figure.also) if name]
        by_word.setdefault(figure.paper, []).extend(names)
        by_word.setdefault(figure.key, []).extend(names)
    chosen: list[str] = []
    everything = [SENDERS, *(name for names in by_word.values() for name in names)]
    for word in words:
        if word in by_word:
            chosen += by_word[word]
        else:
            load(word)
            chosen.append(word)
    return list(dict.fromkeys(chosen or everything))


def document(
    name: str, backend: Ns2, options: Options, progress: OnProgress = lambda *_: None
) -> dict[str, Any] | None:
    """ns-2's document of an experiment; None if ns-2 can express none of its cases."""
    experiment = load(name)
    cases = [case for case in expressible(experiment, options.mode) if matches(case, options.cases)]
    if not cases:
        return None
    experiment.exclude += [case for case in experiment.cases(options.mode) if case not in cases]
    runs = digest.make(run(experiment, backend, options, progress))
    files = [str(path.relative_to(REPO)) for path in (experiment.path, NETWORK, PLAN)]
    return runs | {
        "experiment": digest.NS2 + name,
        "files": files,
        "file_sha256": identity.hash_of_files(files),
        # no kernel or module affects the result, only the files
        "identity": {},
    }


def table(document: dict[str, Any]) -> str:
    """One line for each case: mean and interval of every metric that has a value."""
    lines = [f"{document['experiment']} ({document['provenance']['kernel']['release']}, {digest.runs(document)} runs)"]
    for case in document["cases"]:
        numbers = [
            f"{name} {interval(summarise([float('nan') if value is None else value for value in values]))}"
            for name, values in case["metrics"].items()
            if any(value is not None for value in values)
        ]
        lines.append(f"  {case_name(case['case'])}: {', '.join(numbers)}")
    return "\n".join(lines)


def documents(
    names: Iterable[str], options: Options, progress: OnProgress = lambda *_: None
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Documents by name, and failures."""
    backend = Ns2()
    backend.prepare(())
    by_name, failed = {}, []
    for name in names:
        try:
            ran = document(name, backend, options, progress)
        except LbeError as error:
            failed.append(f"{digest.NS2}{name}: {error}")
            continue
        if ran:
            by_name[ran["experiment"]] = ran
    return by_name, failed


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser(
        "ns2",
        help="run the papers' experiments in ns-2, their simulator, for comparison",
        description="Runs the cases that ns-2 can express, in the experiment's own lengths, and writes ns2_NAME.json.",
    )
    sub.add_argument("names", nargs="*", metavar="NAME", help="experiment, paper or figure (default: all of them)")
    sub.add_argument("--runs", type=int, metavar="N", help="seeds per case (default: the experiment's)")
    sub.add_argument(
        "--case", action="append", default=[], metavar="DIM=VARIANT", help="only these cases; may be repeated"
    )
    sub.add_argument("--jobs", type=int, metavar="N", help="runs at once (default: one per CPU)")
    length = sub.add_mutually_exclusive_group()
    length.add_argument("--full", action="store_const", dest="mode", const="full", help="the paper's own lengths")
    length.add_argument(
        "--short", action="store_const", dest="mode", const="short", help="the short form that the tests use"
    )
    sub.set_defaults(mode="default", do=compare)
    sub.add_argument("--fresh", action="store_true", help="run everything again, without reusing earlier runs")
    sub.add_argument(
        "--out",
        type=Path,
        default=Path("Documentation/results/data"),
        metavar="DIR",
        help="where results go (default: Documentation/results/data)",
    )


def compare(args: argparse.Namespace) -> int:
    """Run the command: make, print and write the documents. 1 if a run failed."""
    for key in ("runs", "jobs"):
        value = getattr(args, key)
        if value is not None and not 1 <= value <= 10000:
            raise ExperimentError(f"--{key} {value}: allowed are 1 to 10000")
    only: dict[str, Any] = {}
    for word in args.case:
        dimension, equals, variant = word.partition("=")
        if not equals:
            raise ExperimentError(f"--case {word!r}: expected DIM=VARIANT")
        only.setdefault(dimension, []).append(variant)
    options = Options(args.mode, args.runs, args.jobs, reuse=not args.fresh, command=args.command_line, cases=only)
    names = wanted(args.names)
    by_name, failed = documents(names, options)
    for document in by_name.values():
        digest.save(document, args.out)
        print(table(document))
    for name in names:
        key = digest.NS2 + name
        if args.names and key not in by_name and not any(failure.startswith(key) for failure in failed):
            print(f"{name}: no case of it can be said in ns-2", file=sys.stderr)
    for failure in failed:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failed else 0
