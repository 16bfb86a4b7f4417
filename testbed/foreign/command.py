# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed foreign: run test suites of other projects, print a line for each subject, store the results.

A suite's document is stored as soon as the suite ends, so that an error in a later suite does not lose it.

Exit status: 0 no fault; 1 a fault, an outdated expectation or an absent suite; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.columns import aligned
from ..base.progress import Report, make_progress
from ..kernels.series import SUITES as SERIES
from ..results import digest
from ..results.digest import Document
from ..robustness import soak
from ..run import collect, identity, runner
from . import netfilter, packetdrill, played, tctesting
from .packetdrill import SUBJECTS, ForeignAbsent, ForeignUnknown, PacketdrillOutcome, PacketdrillRan
from .played import TracesAbsent

#: prefix of the name of a suite's document
PREFIX = "foreign_"
#: files that affect the results and their judgement, besides kernel and modules
FILES = [f"testbed/foreign/packetdrill.{suffix}" for suffix in ("py", "sh", "toml")] + [
    "testbed/foreign/sysctl.bash",
    "testbed/foreign/timestamps.py",
]
#: number of runs (of a script over a family): all; passed; passed with a tolerance; failed; of these as the reference,
#: because the script asserts a window or a rate, as listed, and without a reason; list entries that are outdated;
#: connections that vulture controlled, and runs in which it controlled one
METRICS = (
    "ran", "passed", "slow", "failed", "as_reference", "by_law", "expected", "faults", "outdated", "taken",
    "with_taken",
)  # fmt: skip
#: the kernel's suites with vulture and with shred, with their files and metrics
NETFILTER = "netfilter"
NETFILTER_FILES = [f"testbed/foreign/netfilter.{suffix}" for suffix in ("py", "sh")]
NETFILTER_METRICS = ("ran", "passed", "skipped", "failed", "as_reference", "taken", "faults")
TC = "tc"
TC_FILES = ["testbed/foreign/tctesting.py", "tools/tc/q_shred.c", "tools/tc/tc_abi.h"]
TC_METRICS = ("ran", "passed", "different", "faults")
EXAMPLES = """\
examples:
  python3 -m testbed foreign                            every suite, every subject
  python3 -m testbed foreign lbe credit --suite kernel  two subjects, the kernel's own scripts
  python3 -m testbed foreign lp --only 'tcp/sack/*'     only these scripts
  python3 -m testbed foreign --suite netfilter          the kernel's netfilter scripts with vulture
  python3 -m testbed foreign --suite tc --suite flent   the kernel's tests of queues with shred, flent's of LEDBAT
  LBE_TRACES=traces python3 -m testbed foreign --suite recorded    links that somebody recorded
  LBE_PACKETDRILL=packetdrill.tar.gz make check-foreign names the archive
  LBE_FOREIGN=folder make check-foreign names a folder with packetdrill's archive and the recorded links
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser(
        "foreign",
        help="run test suites of other projects: packetdrill, netfilter, tc-testing, flent, recorded links",
        epilog=EXAMPLES
        + "\nsubjects: "
        + ", ".join(subject.name for subject in SUBJECTS)
        + "\nsuites: "
        + ", ".join(known_suites()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="SUBJECT", help="compared with Reno (default: all)")
    sub.add_argument(
        "--suite", action="append", default=[], metavar="NAME",
        help="a suite by its name, may be repeated (default: all; with subjects, those that have subjects)",
    )  # fmt: skip
    sub.add_argument("--only", default="*", metavar="PATTERN", help="scripts whose path matches, such as 'tcp/sack/*'")
    sub.add_argument(
        "--kernel", metavar="SERIES",
        help="6.1, 6.12 or 7.2, but for netfilter (default: the one that a suite is for)",
    )  # fmt: skip
    sub.add_argument("--short", action="store_true", help="for flent, wifi and recorded: the tests' short form")
    sub.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help=f"where {PREFIX}*.json go")
    sub.add_argument("--json", action="store_true", help="the results as JSON on standard output")
    sub.set_defaults(do=run)


def table(outcomes: list[PacketdrillOutcome]) -> str:
    """A line for each suite and subject, and below them the faults."""
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


def document(one: PacketdrillRan) -> Document:
    """A suite's results as a document: a case for each subject, with counts and all scripts that did not pass.

    failed, slow: script -> the families in which it failed, or passed with a tolerance, with the message.
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
            digest.counted(
                {"subject": outcome.subject},
                METRICS,
                counts,
                faults=outcome.faults + outcome.outdated,
                failed=not_passed["fail"],
                slow=not_passed["slow"],
            )
        )
    return made


def netfilter_table(outcomes: list[netfilter.NetfilterOutcome]) -> str:
    """A line for each subject, and below them the faults."""
    rows: list[tuple[str, ...]] = [("netfilter", "passed", "skipped", "failed", "as reference", "taken", "faults")]
    for outcome in outcomes:
        counts = (
            outcome.passed, outcome.skipped, outcome.failed, outcome.as_reference, outcome.taken, len(outcome.faults),
        )  # fmt: skip
        rows.append((outcome.subject, *(str(count) for count in counts)))
    lines = aligned(rows, words=1)
    for outcome in outcomes:
        lines += [f"{outcome.subject}: FAULT: {text}" for text in outcome.faults]
    lines.append("")
    lines.append("taken: connections that vulture's rules took. as reference: the same verdicts as without vulture.")
    faults = sum(len(outcome.faults) for outcome in outcomes)
    lines.append(f"{sum(outcome.good for outcome in outcomes)} of {len(outcomes)} good, {faults} faults")
    return "\n".join(lines)


def netfilter_document(one: netfilter.NetfilterRan) -> Document:
    """netfilter's results as a document: a case for each subject, with counts and all scripts that did not pass."""
    made = digest.of_files(
        PREFIX + NETFILTER,
        (NETFILTER_FILES, identity.hash_of_files(NETFILTER_FILES)),
        identity.of_tree(f"qemu {one.release}", ["vulture"]),
        {
            "command": f"python3 -m testbed foreign --suite {NETFILTER}",
            "kernel": {"series": netfilter.SERIES, "flavour": "Debian", "release": one.release, "key": one.key},
            "backend": "qemu",
            "host": collect.host_facts(),
            "programs": one.versions,
            "scripts": f"Linux {netfilter.SERIES}, {netfilter.PART}/net/netfilter",
        },
        {"testbed": [runner.version()], "modules": {}},
        [1],
    )
    made["counts"] = list(NETFILTER_METRICS)
    for outcome in one.outcomes:
        results = one.results[outcome.subject]
        counts = (
            len(results), outcome.passed, outcome.skipped, outcome.failed, outcome.as_reference, outcome.taken,
            len(outcome.faults),
        )  # fmt: skip
        made["cases"].append(
            digest.counted(
                {"subject": outcome.subject},
                NETFILTER_METRICS,
                counts,
                faults=outcome.faults,
                failed={result.script: list(result.said) for result in results if result.verdict == "fail"},
                skipped={result.script: list(result.said) for result in results if result.verdict == "skip"},
            )
        )
    return made


def tc_table(outcomes: list[tctesting.TcOutcome]) -> str:
    """A line for each file, and below them the faults."""
    rows: list[tuple[str, ...]] = [(TC, "passed", "different on purpose", "faults")]
    for one in outcomes:
        rows.append((one.file, str(len(one.passed)), str(len(one.different)), str(len(one.faults))))
    lines = aligned(rows, words=1)
    lines += [f"{one.file}: FAULT: {text}" for one in outcomes for text in one.faults]
    lines += ["", f"{sum(one.good for one in outcomes)} of {len(outcomes)} good"]
    return "\n".join(lines)


def tc_document(one: tctesting.TcRan) -> Document:
    """tc-testing's results as a document: a case for each file."""
    made = digest.of_files(
        PREFIX + TC,
        (TC_FILES, identity.hash_of_files(TC_FILES)),
        one.identity,
        {
            "command": f"python3 -m testbed foreign --suite {TC}",
            "kernel": one.kernel,
            "backend": "uml",
            "host": collect.host_facts(),
            "scripts": f"Linux {tctesting.TDC_SERIES} and {tctesting.INFRA_SERIES}, {tctesting.SELFTESTS}",
        },
        {"testbed": [runner.version()], "modules": {}},
        [1],
    )
    made["counts"] = list(TC_METRICS)
    for outcome in one.outcomes:
        counts = (outcome.ran, len(outcome.passed), len(outcome.different), len(outcome.faults))
        made["cases"].append(
            digest.counted(
                {"file": outcome.file}, TC_METRICS, counts,
                faults=outcome.faults, different={name: tctesting.DIFFERENCES[name] for name in outcome.different},
            )
        )  # fmt: skip
    return made


@dataclass(frozen=True)
class SuitePart:
    """What a part of the suites gave beside its documents: its table, whether all is good, and what is absent."""

    text: str = ""
    good: bool = True
    absent: str = ""


#: stores the document of a suite that has ended
Keep = Callable[[Document], None]


def timed(made: Document, began: float) -> Document:
    """The document with the wall time since ``began``. What was in the cache took none."""
    return made | {digest.SECONDS: round(time.monotonic() - began)}


def run_packetdrill(args: argparse.Namespace, wanted: list[str], report: Report, keep: Keep) -> SuitePart | None:
    """Run packetdrill's suites among the wanted ones; None if none of the selected subjects or scripts is theirs."""
    names = [entry["name"] for entry in packetdrill.settings()["suite"] if entry["name"] in wanted]
    if not names:
        return None
    try:
        chosen = [
            suite
            for suite in packetdrill.ensure_suites(names, report)
            if suite.scripts(args.only) and (not args.names or packetdrill.wanted_of(suite, args.names))
        ]
        if not chosen:
            return None
        packetdrill.ensure_packetdrill(report)  # every suite needs the program, also one with the kernel's own scripts
    except ForeignAbsent as why:
        return SuitePart(good=False, absent=f"{', '.join(names)}: {why}")
    outcomes = []
    for suite in chosen:
        began = time.monotonic()
        ran = packetdrill.run(suite, args.names, args.kernel, args.only, report)
        keep(timed(document(ran), began))
        outcomes += ran.outcomes
    return SuitePart(table(outcomes), all(outcome.good for outcome in outcomes))


def run_netfilter(args: argparse.Namespace, wanted: list[str], report: Report, keep: Keep) -> SuitePart | None:
    """Run netfilter's scripts; None if none of the selected subjects or scripts is netfilter's."""
    controllers = tuple(name for name in netfilter.CONTROLLERS if not args.names or name in args.names)
    scripts = tuple(name for name in netfilter.SCRIPTS if fnmatch.fnmatch(name, args.only))
    if NETFILTER not in wanted or not (controllers and scripts):
        return None
    began = time.monotonic()
    ran = netfilter.run(controllers, scripts, report)
    keep(timed(netfilter_document(ran), began))
    return SuitePart(netfilter_table(ran.outcomes), all(one.good for one in ran.outcomes))


def run_tc(args: argparse.Namespace, wanted: list[str], report: Report, keep: Keep) -> SuitePart | None:
    """Run tc-testing's files; None if none is selected."""
    files = [name for name in tctesting.FILES if fnmatch.fnmatch(name, args.only)]
    if TC not in wanted or not files:
        return None
    began = time.monotonic()
    ran = tctesting.run(files, args.kernel, report)
    keep(timed(tc_document(ran), began))
    return SuitePart(tc_table(ran.outcomes), all(one.good for one in ran.outcomes))


def run_played(args: argparse.Namespace, wanted: list[str], report: Report, keep: Keep) -> SuitePart | None:
    """Run the experiments; None if none is selected."""
    names = [name for name in played.EXPERIMENTS if name in wanted and fnmatch.fnmatch(name, args.only)]
    lived, absent = [], ""
    for name in names:
        try:
            one = played.run(name, PREFIX, "short" if args.short else "default", args.kernel, report)
        except TracesAbsent as why:
            absent = str(why)
            continue
        keep(one.document)
        lived.append(one)
    if not names:
        return None
    good = not absent and not any(one.wrong or one.missing for one in lived)
    return SuitePart(soak.table(lived, "scenario") if lived else "", good, absent)


#: in the order of the output
RUNS = (run_netfilter, run_packetdrill, run_tc, run_played)


def known_suites() -> list[str]:
    """Names of all suites."""
    return [*(entry["name"] for entry in packetdrill.settings()["suite"]), NETFILTER, TC, *played.EXPERIMENTS]


def run(args: argparse.Namespace) -> int:
    """Run the command: run, print and write; returns the exit status."""
    if args.kernel not in {None, *SERIES}:
        raise ForeignUnknown(f"--kernel {args.kernel}: there are {', '.join(SERIES)}")
    known = known_suites()
    unknown = sorted(set(args.suite) - set(known))
    if unknown:
        raise ForeignUnknown(f"no suite {', '.join(unknown)}; there are: {', '.join(known)}")
    packetdrill.chosen(args.names)
    # the suites without subjects are not of a run of some subjects, unless they are named
    wanted = args.suite or [name for name in known if not args.names or name not in (TC, *played.EXPERIMENTS)]
    documents: list[Document] = []

    def keep(made: Document) -> None:
        digest.save(made, args.out)
        documents.append(made)

    progress = make_progress()
    try:
        parts = [part for one in RUNS if (part := one(args, wanted, progress, keep)) is not None]
    finally:
        progress.close()
    if not parts:
        chosen = f"--only {args.only}" if args.only != "*" else f"subjects {', '.join(args.names)}"
        raise ForeignUnknown(f"{chosen}: no script of suite {', '.join(wanted)} matches")
    if args.json:
        print(json.dumps(documents, indent=1))
    else:
        print("\n\n".join(part.text for part in parts if part.text))
    for part in parts:
        if part.absent:
            print(f"ABSENT: {part.absent}")
    return 0 if all(part.good for part in parts) else 1
