# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed foreign: run suites that others wrote, print a line a subject, keep the results.

Exit status: 0 no fault; 1 a fault, an outdated expectation or an absent suite; 2 asked wrongly.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from ..base.columns import aligned
from ..base.progress import make_progress
from ..kernels.series import SUITES as SERIES
from . import packetdrill
from .packetdrill import SUBJECTS, ForeignAbsent, ForeignUnknown, Outcome, Ran

EXAMPLES = """\
examples:
  python3 -m testbed foreign                            every suite, every subject
  python3 -m testbed foreign lbe credit --suite kernel  two subjects, the kernel's own scripts
  python3 -m testbed foreign lp --only 'tcp/sack/*'     only these scripts
  LBE_PACKETDRILL=packetdrill.tar.gz make check-foreign names the archive
"""


def add_parser(commands) -> None:
    """The sub-command's words."""
    sub = commands.add_parser(
        "foreign",
        help="run packetdrill's scripts with each congestion control and with vulture",
        epilog=EXAMPLES + "\nsubjects: " + ", ".join(subject.name for subject in SUBJECTS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="SUBJECT", help="compared with Reno (default: all)")
    sub.add_argument("--suite", action="append", default=[], metavar="NAME", help="google or kernel (default: both)")
    sub.add_argument("--only", default="*", metavar="PATTERN", help="scripts whose path matches, such as 'tcp/sack/*'")
    sub.add_argument("--kernel", metavar="SERIES", help="6.1, 6.12 or 7.2 (default: the one that a suite is for)")
    sub.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where foreign.json goes")
    sub.add_argument("--json", action="store_true", help="the results as JSON on standard output")
    sub.set_defaults(do=run)


def table(outcomes: list[Outcome]) -> str:
    """A line a suite and subject, and the faults below."""
    rows = [("suite", "subject", "passed", "slow", "failed", "by law", "expected", "faults")]
    for outcome in outcomes:
        counts = (
            outcome.passed, outcome.slow, outcome.failed, len(outcome.windows), len(outcome.expected),
            len(outcome.faults),
        )  # fmt: skip
        rows.append((outcome.suite, outcome.subject, *(str(count) for count in counts)))
    lines = aligned(rows, words=2)
    for outcome in outcomes:
        lines += [f"{outcome.subject}: FAULT: {text}" for text in outcome.faults]
        lines += [f"{outcome.subject}: OUTDATED: {text}" for text in outcome.outdated]
    faults = sum(len(outcome.faults) + len(outcome.outdated) for outcome in outcomes)
    lines.append("")
    lines.append(
        "Scripts run over IPv4, Reno's and vulture's over IPv6 too; what fails with a reference is not run beside it."
    )
    lines.append("slow: the script passes with a tolerance of 150 ms. by law: it fails and asserts a window or a rate.")
    lines.append(f"{sum(outcome.good for outcome in outcomes)} of {len(outcomes)} good, {faults} faults")
    return "\n".join(lines)


def document(ran: list[Ran]) -> dict[str, object]:
    """For JSON: what ran, on what, and every status (p: pass, s: slow, f: fail) by script, IPv4's before IPv6's."""
    suites = []
    for one in ran:
        scripts: dict[str, dict[str, str]] = {}
        for subject, results in one.results.items():
            for result in results:
                statuses = scripts.setdefault(result.script, {})
                statuses[subject] = statuses.get(subject, "") + result.status[0]
        suites.append(
            {
                "suite": one.suite.name,
                "source": one.suite.what,
                "kernel": one.kernel,
                "version": one.version,
                "outcomes": [{**asdict(outcome), "good": outcome.good} for outcome in one.outcomes],
                "scripts": scripts,
            }
        )
    return {"format": 2, "what": "packetdrill", "suites": suites}


def run(args: argparse.Namespace) -> int:
    """Run, print and write; the exit status."""
    if args.kernel not in {None, *SERIES}:
        raise ForeignUnknown(f"--kernel {args.kernel}: there are {', '.join(SERIES)}")
    packetdrill.chosen(args.names)
    progress = make_progress()
    try:
        suites = [suite for suite in packetdrill.ensure_suites(args.suite, progress) if suite.scripts(args.only)]
        if not suites:
            raise ForeignUnknown(f"--only {args.only}: no script matches")
        ran = [packetdrill.run(suite, args.names, args.kernel, args.only, progress) for suite in suites]
    except ForeignAbsent as absent:
        progress.close()
        print(f"ABSENT: {absent}")
        return 1
    finally:
        progress.close()
    text = json.dumps(document(ran), indent=1)
    outcomes = [outcome for one in ran for outcome in one.outcomes]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "foreign.json").write_text(text + "\n", encoding="utf-8")
    print(text if args.json else table(outcomes))
    return 0 if all(outcome.good for outcome in outcomes) else 1
