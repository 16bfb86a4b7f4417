# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed foreign: run suites that others wrote, print a line a subject, keep the results.

Exit status: 0 no fault; 1 a fault, an outdated expectation or an absent suite; 2 asked wrongly.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..base.columns import aligned
from ..base.progress import make_progress
from ..kernels.series import SUITES as SERIES
from ..results import digest
from ..results.digest import Document
from ..run import collect, identity, runner
from . import packetdrill
from .packetdrill import SUBJECTS, ForeignAbsent, ForeignUnknown, Outcome, Ran

#: a suite's document is named after it, with this before the name
PREFIX = "foreign_"
#: what decides the statuses and what is said of them, beside kernel and modules
FILES = [f"testbed/foreign/packetdrill.{suffix}" for suffix in ("py", "sh", "toml")] + [
    "testbed/foreign/sysctl.bash",
    "testbed/foreign/timestamps.py",
]
#: runs of a script over a family: all, passed, of those with a tolerance, failed; of those like the reference, since
#: the script asserts a window or a rate, as listed, without a reason; entries of the list that are no longer true;
#: connections that vulture took, and the runs in which it took one
METRICS = (
    "ran", "passed", "slow", "failed", "as_reference", "by_law", "expected", "faults", "outdated", "taken",
    "with_taken",
)  # fmt: skip
EXAMPLES = """\
examples:
  python3 -m testbed foreign                            every suite, every subject
  python3 -m testbed foreign lbe credit --suite kernel  two subjects, the kernel's own scripts
  python3 -m testbed foreign lp --only 'tcp/sack/*'     only these scripts
  LBE_PACKETDRILL=packetdrill.tar.gz make check-foreign names the archive
"""


def add_parser(commands: Any) -> None:
    """The sub-command's words."""
    sub = commands.add_parser(
        "foreign",
        help="run packetdrill's scripts with each congestion control and with vulture",
        epilog=EXAMPLES + "\nsubjects: " + ", ".join(subject.name for subject in SUBJECTS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="SUBJECT", help="compared with Reno (default: all)")
    sub.add_argument(
        "--suite", action="append", default=[], metavar="NAME",
        help="google, kernel, google_timestamps or kernel_timestamps (default: all)",
    )  # fmt: skip
    sub.add_argument("--only", default="*", metavar="PATTERN", help="scripts whose path matches, such as 'tcp/sack/*'")
    sub.add_argument("--kernel", metavar="SERIES", help="6.1, 6.12 or 7.2 (default: the one that a suite is for)")
    sub.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help=f"where {PREFIX}*.json go")
    sub.add_argument("--json", action="store_true", help="the results as JSON on standard output")
    sub.set_defaults(do=run)


def table(outcomes: list[Outcome]) -> str:
    """A line a suite and subject, and the faults below."""
    rows: list[tuple[str, ...]] = [
        ("suite", "subject", "passed", "slow", "failed", "by law", "expected", "faults", "taken")
    ]
    for outcome in outcomes:
        counts = (
            outcome.passed, outcome.slow, outcome.failed, len(outcome.windows), len(outcome.expected),
            len(outcome.faults), outcome.taken,
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
    lines.append("taken: connections that vulture took, which have timestamps.")
    lines.append("slow: the script passes with a tolerance of 150 ms. by law: it fails and asserts a window or a rate.")
    lines.append(f"{sum(outcome.good for outcome in outcomes)} of {len(outcomes)} good, {faults} faults")
    return "\n".join(lines)


def document(one: Ran) -> Document:
    """A suite's results as the pages read them: a case a subject, with its counts, and every script that did not pass.

    failed, slow: by script, the families in which it did not pass, or passed with a tolerance, and why it failed.
    """
    made = digest.of_files(
        PREFIX + one.suite.name,
        (FILES, identity.hash_of_files(FILES)),
        one.identity,
        {
            "command": f"python3 -m testbed foreign --suite {one.suite.name}",
            "kernel": one.kernel,
            "backend": "uml",
            "host": collect.host_facts(),
            "scripts": one.suite.what,
        },
        {"testbed": [runner.version()], "modules": {}},
        [1],
    )
    made["counts"] = list(METRICS)
    for outcome in one.outcomes:
        results = one.results[outcome.subject]
        not_passed: dict[str, dict[str, str]] = {"fail": {}, "slow": {}}
        for result in results:
            if result.status != "pass":
                told = not_passed[result.status]
                said = f"{result.variant}: {result.message}" if result.message else result.variant
                told[result.script] = f"{told[result.script]}; {said}" if result.script in told else said
        counts = (
            len(results), outcome.passed, outcome.slow, outcome.failed, outcome.as_reference, len(outcome.windows),
            len(outcome.expected), len(outcome.faults), len(outcome.outdated),
            outcome.taken, outcome.with_taken,
        )  # fmt: skip
        made["cases"].append(
            {
                "case": {"subject": outcome.subject},
                "seeds": [1],
                "jobs": [],
                "queue": [],
                "metrics": {name: [count] for name, count in zip(METRICS, counts, strict=True)},
                "faults": outcome.faults + outcome.outdated,
                "failed": not_passed["fail"],
                "slow": not_passed["slow"],
            }
        )
    return made


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
        suites = [suite for suite in suites if not args.names or packetdrill.wanted_of(suite, args.names)]
        if not suites:
            raise ForeignUnknown(f"no suite is for {', '.join(args.names)}")
        ran = [packetdrill.run(suite, args.names, args.kernel, args.only, progress) for suite in suites]
    except ForeignAbsent as absent:
        progress.close()
        print(f"ABSENT: {absent}")
        return 1
    finally:
        progress.close()
    documents = [document(one) for one in ran]
    for made in documents:
        digest.save(made, args.out)
    outcomes = [outcome for one in ran for outcome in one.outcomes]
    print(json.dumps(documents, indent=1) if args.json else table(outcomes))
    return 0 if all(outcome.good for outcome in outcomes) else 1
