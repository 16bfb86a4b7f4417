# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed abuse: run the parts, print a table, write a document for the pages."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..base.columns import aligned
from ..base.places import REPO
from ..base.progress import make_progress
from ..kernels.build import configuration_key
from ..results import digest
from ..results.digest import Document
from ..run import collect, identity, runner
from ..spec.experiment import load
from . import fuzz, parts, scenarios
from .parts import MODULES, OWN, PARTS, PLAIN, SANITIZER, AbuseError, Part, PartOutcome

#: name of the document, with a suffix for the short form
NAME, SHORT = "abuse", "_short"
#: of a part and a seed: cases; MB carried beside them; bytes of it that were lost; the kernel's warnings about the
#: modules, and about its own code; wrong answers; seconds of wall time
METRICS = ("ran", "carried", "lost", "warnings", "own", "wrong", "seconds")
COUNTS = ("ran", "lost", "warnings", "own", "wrong", "seconds")

EXAMPLES = """\
examples:
  python3 -m testbed abuse                     every part in full: a quarter of an hour
  python3 -m testbed abuse --short             the reduced form that the tests use
  python3 -m testbed abuse fuzz --seed 7       other messages; only this part
  python3 -m testbed abuse cycles/sanitizer packets --rounds 3
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser(
        "abuse",
        help="attack the modules: load cycles, fuzzing, hostile packets, failing memory",
        epilog=EXAMPLES + "\nparts: " + ", ".join(part.key for part in PARTS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="PART", help="part, or part/kernel flavour (default: all)")
    sub.add_argument("--seed", type=int, default=1, metavar="N", help="first seed (default: 1)")
    sub.add_argument("--rounds", type=int, default=1, metavar="N", help="rounds, each with the next seed (default: 1)")
    sub.add_argument("--short", action="store_true", help="the reduced form that the tests use")
    sub.add_argument("--fresh", action="store_true", help="run everything again, also what passed before")
    sub.add_argument("--kernel", default="6.12", metavar="SERIES", help="6.1, 6.12 (default) or 7.2")
    sub.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where abuse.json goes")
    sub.add_argument("--json", action="store_true", help="the figures as JSON on standard output")
    sub.add_argument("--corpus", action="store_true", help="add the fuzzer's new answers to the stored corpus")
    sub.set_defaults(do=run)


def chosen(names: list[str]) -> list[Part]:
    """The parts with these names; AbuseError for an unknown one."""
    if not names:
        return list(PARTS)
    unknown = [name for name in names if not any(name in (part.name, part.key) for part in PARTS)]
    if unknown:
        raise AbuseError(f"no part {', '.join(unknown)}; there are: {', '.join(part.key for part in PARTS)}")
    return [part for part in PARTS if part.name in names or part.key in names]


def table(outcomes: list[PartOutcome]) -> str:
    """A line for each part, and below them everything that was wrong."""
    rows = [("part", "kernel", "seed", "cases", "MB carried", "bytes lost", "warnings", "wrong", "seconds")]
    for one in outcomes:
        rows.append(
            (
                one.part, one.kernel, str(one.seed), str(one.cases), f"{one.bytes / 1e6:.1f}", str(one.lost),
                str(len(one.warnings)), str(len(one.wrong)), f"{one.wall_s:.0f}",
            )
        )  # fmt: skip
    lines = aligned(rows, words=2)
    for one in outcomes:
        lines += [f"{one.part} ({one.kernel}): {text}" for text in (*one.warnings, *one.wrong)]
        if not one.cases:
            lines.append(f"{one.part} ({one.kernel}): nothing was tried: {one.more.get('failure', '')}")
    return "\n".join(lines)


def files() -> list[str]:
    """The files that affect the outcomes, besides kernel and modules."""
    programs = [*parts.HERE.glob("*.py"), *parts.GUEST.glob("*.py"), *(parts.HERE / "corpus").glob("*.txt")]
    experiments = [load(name).path for several in scenarios.EXPERIMENTS.values() for name in several]
    return sorted(str(path.relative_to(REPO)) for path in [*programs, *experiments])


def document(outcomes: list[PartOutcome], series: str, short: bool = False) -> Document:
    """The outcomes as a document for the pages: a case for each part and kernel, a number for each seed.

    Its kernel is the sanitizer kernel, if a part ran on it.
    """
    flavour = SANITIZER if any(one.kernel.endswith(SANITIZER) for one in outcomes) else PLAIN
    release = next(one.kernel.split()[0] for one in outcomes if one.kernel.endswith(flavour))
    made = digest.of_files(
        NAME + SHORT * short,
        (files(), identity.hash_of_files(files())),
        identity.of_tree(configuration_key(series, flavour), MODULES),
        {
            "command": "python3 -m testbed abuse" + " --short" * short,
            "kernel": {"series": series, "flavour": flavour, "release": release, "source": "", "key": ""},
            "backend": "uml",
            "host": collect.host_facts(),
        },
        {"testbed": [runner.version()], "modules": {}},
        sorted({one.seed for one in outcomes}),
    )
    made["mode"], made["counts"] = "short" if short else "default", list(COUNTS)
    for key in dict.fromkeys((one.part, one.kernel.split()[-1]) for one in outcomes):
        mine = [one for one in outcomes if (one.part, one.kernel.split()[-1]) == key]
        rows = [
            (
                one.cases, round(one.bytes / 1e6, 1), one.lost, len(one.warnings), one.counts.get(OWN, 0),
                len(one.wrong), round(one.wall_s),
            )
            for one in mine
        ]  # fmt: skip
        made["cases"].append(
            {
                "case": {"part": key[0], "kernel": key[1]},
                "seeds": [one.seed for one in mine],
                "jobs": [],
                "queue": [],
                "metrics": {name: [row[index] for row in rows] for index, name in enumerate(METRICS)},
                "faults": [fault for one in mine for fault in faults_of(one)],
                "counts": [one.counts for one in mine],
            }
        )
    return made


def faults_of(outcome: PartOutcome) -> list[str]:
    """Why an outcome is not good, one line each."""
    lost = [f"{outcome.lost} bytes lost"] * bool(outcome.lost)
    nothing = [f"nothing was tried: {outcome.more.get('failure', '')}"] * (not outcome.cases)
    return [*outcome.warnings, *outcome.wrong, *lost, *nothing]


def write_corpus(outcomes: list[PartOutcome]) -> None:
    """Store the lines that gave different answers, old and new ones."""
    answers: dict[str, str] = {}
    for one in outcomes:
        answers |= one.more.get("signatures", {})
    if not answers:
        raise AbuseError("--corpus: no part gave answers; name fuzz")
    print("corpus:", ", ".join(f"{number} {name}" for name, number in fuzz.make_corpus(answers).items()))


def run(args: argparse.Namespace) -> int:
    """Run the command. Exit status 0: no warning, nothing lost, nothing wrong."""
    if args.rounds < 1 or not 0 <= args.seed < 1 << 40:
        raise AbuseError(f"--rounds {args.rounds} --seed {args.seed}: allowed are 1 and more, 0 to 2^40 - 1")
    wanted = [part for part in chosen(args.names) if not args.short or part.short is not None]
    progress = make_progress()
    outcomes = []
    try:
        for seed in range(args.seed, args.seed + args.rounds):
            for part in wanted:
                outcomes.append(
                    parts.run_part(part, seed, short=args.short, series=args.kernel, fresh=args.fresh, report=progress)
                )
                if not outcomes[-1].good:
                    progress.close()
                    progress = make_progress()
    finally:
        progress.close()
    if args.corpus:
        write_corpus(outcomes)
    made = document(outcomes, args.kernel, args.short)
    digest.save(made, args.out)
    print(json.dumps(made, indent=1) if args.json else table(outcomes))
    return 0 if all(one.good for one in outcomes) else 1
