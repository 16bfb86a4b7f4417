# SPDX-License-Identifier: GPL-2.0
"""The experiments in simulators: the document ns2_NAME has the cases of NAME that ns-2 can express, ns3_NAME those of
ns-3.

    python3 -m testbed ns2 [NAME|PAPER|FIGURE...]
    python3 -m testbed ns3 [NAME|PAPER|FIGURE...]

Cases and metrics have the experiment's names, so that a row of a figure finds a simulator's number under the same name.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..backends.backend import Backend
from ..base.errors import LbeError
from ..judge import figures
from ..measure.summary import summarise
from ..present.simulated import NS2, NS3, SimulatorEntry, expressible, identified
from ..present.text import interval
from ..results import digest
from ..run.runner import OnProgress, Options, run
from ..spec.experiment import case_name, load, matches
from ..spec.tables import ExperimentError

#: an experiment that compares ns-2's senders with the kernel's
SENDERS = "ns2_tcp"


def wanted(words: Iterable[str], simulator: SimulatorEntry = NS2) -> list[str]:
    """Experiments given by names, papers or keys of figures; without words, the simulator's own, or SENDERS and all
    experiments for figures."""
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
    return list(dict.fromkeys(chosen or simulator.own or everything))


def document(
    name: str,
    backend: Backend,
    options: Options,
    progress: OnProgress = lambda *_: None,
    simulator: SimulatorEntry = NS2,
) -> dict[str, Any] | None:
    """A simulator's document of an experiment; None if it can express none of its cases."""
    experiment = load(name)
    cases = [case for case in expressible(experiment, options.mode, simulator) if matches(case, options.cases)]
    if not cases:
        return None
    experiment.exclude += [case for case in experiment.cases(options.mode) if case not in cases]
    return identified(digest.make(run(experiment, backend, options, progress)), experiment, simulator)


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
    names: Iterable[str],
    options: Options,
    progress: OnProgress = lambda *_: None,
    simulator: SimulatorEntry = NS2,
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Documents by name, and failures."""
    backend = simulator.backend()
    backend.prepare(())
    by_name, failed = {}, []
    for name in names:
        try:
            ran = document(name, backend, options, progress, simulator)
        except LbeError as error:
            failed.append(f"{simulator.prefix}{name}: {error}")
            continue
        if ran:
            by_name[ran["experiment"]] = ran
    return by_name, failed


def add_parser(commands: Any) -> None:
    """Add the subcommands' parsers."""
    for simulator, about in ((NS2, "the simulator of four papers"), (NS3, "which has a TCP-LP of its own")):
        _add_parser(commands, simulator, about)


def _add_parser(commands: Any, simulator: SimulatorEntry, about: str) -> None:
    prefix, title = simulator.prefix, simulator.title
    sub = commands.add_parser(
        simulator.command,
        help=f"run the papers' experiments in {title}, {about}, for comparison",
        description=f"Runs the cases that {title} can express, in the experiment's own lengths, and writes "
        f"{prefix}NAME.json.",
    )
    own = ", ".join(simulator.own) or "all of them"
    sub.add_argument("names", nargs="*", metavar="NAME", help=f"experiment, paper or figure (default: {own})")
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
    sub.set_defaults(mode="default", do=functools.partial(compare, simulator=simulator))
    sub.add_argument("--fresh", action="store_true", help="run everything again, without reusing earlier runs")
    sub.add_argument(
        "--out",
        type=Path,
        default=Path("Documentation/results/data"),
        metavar="DIR",
        help="where results go (default: Documentation/results/data)",
    )


def compare(args: argparse.Namespace, simulator: SimulatorEntry = NS2) -> int:
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
    names = wanted(args.names, simulator)
    by_name, failed = documents(names, options, simulator=simulator)
    for document in by_name.values():
        digest.save(document, args.out)
        print(table(document))
    for name in names:
        key = simulator.prefix + name
        if args.names and key not in by_name and not any(failure.startswith(key) for failure in failed):
            print(f"{name}: no case of it can be said in {simulator.title}", file=sys.stderr)
    for failure in failed:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failed else 0
