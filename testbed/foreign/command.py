# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed foreign: run suites that others wrote, print a line a subject, keep the results.

Exit status: 0 no fault; 1 a fault, an outdated expectation or an absent suite; 2 asked wrongly.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from ..base.progress import make_progress
from ..kernels.series import DEFAULT_SERIES
from ..kernels.series import SUITES as SERIES
from . import packetdrill
from .packetdrill import SUBJECTS, ForeignAbsent, ForeignUnknown, Outcome, Result

EXAMPLES = """\
examples:
  python3 -m testbed foreign                            every subject, every script
  python3 -m testbed foreign lbe vulture                these beside Reno
  python3 -m testbed foreign lp --only 'tcp/sack/*'     these scripts alone
  LBE_PACKETDRILL=packetdrill.tar.gz make check-foreign the archive is somewhere else
"""


def add_parser(commands) -> None:
    """The sub-command's words."""
    sub = commands.add_parser(
        "foreign",
        help="suites that others wrote, with each congestion control and with vulture",
        epilog=EXAMPLES + "\nsubjects: " + ", ".join(subject.name for subject in SUBJECTS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="SUBJECT", help="these beside Reno (default: all)")
    sub.add_argument("--only", default="*", metavar="PATTERN", help="scripts whose path matches, such as 'tcp/sack/*'")
    sub.add_argument("--kernel", default=DEFAULT_SERIES, metavar="SERIES", help="6.1, 6.12 (default) or 7.2")
    sub.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where foreign.json goes")
    sub.add_argument("--json", action="store_true", help="the results as JSON on standard output")


def table(outcomes: list[Outcome]) -> str:
    """A line a subject, and the faults below."""
    rows = [("subject", "passed", "slow", "failed", "by law", "expected", "faults")]
    for outcome in outcomes:
        counts = (
            outcome.passed, outcome.slow, outcome.failed, len(outcome.windows), len(outcome.expected),
            len(outcome.faults),
        )  # fmt: skip
        rows.append((outcome.subject, *(str(count) for count in counts)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in rows
    ]
    for outcome in outcomes:
        lines += [f"{outcome.subject}: FAULT: {text}" for text in outcome.faults]
        lines += [f"{outcome.subject}: OUTDATED: {text}" for text in outcome.outdated]
    faults = sum(len(outcome.faults) + len(outcome.outdated) for outcome in outcomes)
    lines.append("")
    lines.append("slow: the script passes with a tolerance of 150 ms. by law: it fails and asserts a window or a rate.")
    lines.append(f"{sum(outcome.good for outcome in outcomes)} subjects good, {faults} faults")
    return "\n".join(lines)


def document(series: str, version: str, outcomes: list[Outcome], results: dict[str, list[Result]]) -> dict[str, object]:
    """For JSON: what ran, on what, and every status."""
    return {
        "format": 1,
        "suite": "packetdrill",
        "source": packetdrill.settings()["source"]["what"],
        "kernel": series,
        "version": version,
        "outcomes": [{**asdict(outcome), "good": outcome.good} for outcome in outcomes],
        "scripts": {name: [asdict(result) for result in found] for name, found in results.items()},
    }


def run(args: argparse.Namespace) -> int:
    """Run, print and write; the exit status."""
    if args.kernel not in SERIES:
        raise ForeignUnknown(f"--kernel {args.kernel}: there are {', '.join(SERIES)}")
    progress = make_progress()
    try:
        outcomes, results, version = packetdrill.run(args.names, args.kernel, args.only, progress)
    except ForeignAbsent as absent:
        progress.close()
        print(f"ABSENT: {absent}")
        return 1
    finally:
        progress.close()
    text = json.dumps(document(args.kernel, version, outcomes, results), indent=1)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "foreign.json").write_text(text + "\n", encoding="utf-8")
    print(text if args.json else table(outcomes))
    return 0 if all(outcome.good for outcome in outcomes) else 1
