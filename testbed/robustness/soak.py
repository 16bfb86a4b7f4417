# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed soak: long lives of connections in virtual time (lives/*.toml), each held to its checks.

A life is an experiment like any other (Documentation/testbed.md) that is too long for the tables: gigabytes, days of
idleness, hours of sending, odd clocks. make check runs the short forms. Finished runs are kept in the cache, so an
interrupted soak goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..backends.uml import Uml
from ..base.columns import aligned
from ..base.errors import LbeError
from ..base.progress import Report, make_progress, silent
from ..judge import checks
from ..kernels.series import DEFAULT_SERIES
from ..kernels.series import SUITES as SERIES
from ..run import runner
from ..spec.experiment import case_name, load

LIVES = Path(__file__).resolve().parent / "lives"

EXAMPLES = """\
examples:
  python3 -m testbed soak                       every experiment in full: two hours
  python3 -m testbed soak --short               what make check runs
  python3 -m testbed soak life_idle             one experiment
  python3 -m testbed run testbed/robustness/lives/life_idle.toml --case background=lp --case idle=day --case peer=ms
"""


class SoakError(LbeError):
    """Asked wrongly."""

    exit_status = 2


def lives(short: bool = False) -> dict[str, Path]:
    """Name -> file. short: those that have a short form."""
    files = {path.stem: path for path in sorted(LIVES.glob("*.toml"))}
    return {name: path for name, path in files.items() if not short or "short" in load(str(path)).modes}


def add_parser(commands) -> None:
    """The sub-command's words."""
    sub = commands.add_parser(
        "soak",
        help="run long connections in virtual time, and judge each by its checks",
        epilog=EXAMPLES + "\nlives: " + ", ".join(lives()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("names", nargs="*", metavar="LIFE", help="experiment (default: all)")
    sub.add_argument("--short", action="store_true", help="the reduced form that the tests use")
    sub.add_argument("--seed", type=int, default=1, metavar="N", help="first seed (default: 1)")
    sub.add_argument("--jobs", type=int, metavar="N", help="machines at once (default: one for each CPU)")
    sub.add_argument("--fresh", action="store_true", help="run everything again, without reusing earlier runs")
    sub.add_argument("--kernel", default=DEFAULT_SERIES, metavar="SERIES", help="6.1, 6.12 (default) or 7.2")
    sub.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where soak.json goes")
    sub.set_defaults(do=run)


def live(
    name: str, options: runner.Options, series: str = DEFAULT_SERIES, report: Report = silent
) -> dict[str, object]:
    """Run one life and judge it. Return: what soak.json has of it. Raises what a run raises."""
    experiment = load(str(lives()[name]))
    backend = Uml(series)
    backend.prepare({module for job in runner.plan(experiment, options) for module in job.modules}, report)
    made = runner.run(experiment, backend, options, lambda done, total, text: report(name, done, total))
    verdicts = checks.judge(experiment, made)
    return {
        "life": name,
        "title": experiment.head.title,
        "kernel": str(backend.build.release),
        "version": backend.tools().modules_version,
        "cases": {
            case_name(one.case): {key: round(value, 3) for key, value in one.metrics.items()} for one in made.results
        },
        "checks": len(checks.judged(verdicts)),
        "wrong": [
            f"{case_name(one.case)}: {one.check.metric} is {one.ours.mean:.4g}, wanted {checks.bound_text(one.bound)}"
            for one in checks.failures(verdicts)
        ],
        "differs": [
            f"{case_name(one.case)}: {one.check.metric} is {one.ours.mean:.4g}, wanted {checks.bound_text(one.bound)}:"
            f" {one.note}"
            for one in verdicts
            if one.status == "differs"
        ],
    }


def table(done: list[dict]) -> str:
    """A line a life, then what is wrong."""
    rows = [("life", "cases", "checks", "differ", "wrong")]
    for one in done:
        numbers = len(one["cases"]), one["checks"], len(one["differs"]), len(one["wrong"])
        rows.append((one["life"], *map(str, numbers)))
    lines = aligned(rows, words=1)
    lines += [f"{one['life']}: {text}" for one in done for text in one["differs"]]
    lines += [f"{one['life']}: WRONG: {text}" for one in done for text in one["wrong"]]
    lines.append(f"{sum(len(one['wrong']) for one in done)} wrong of {sum(one['checks'] for one in done)} checks")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Run, print and write; the exit status."""
    known = lives(args.short)
    unknown = sorted(set(args.names) - set(known))
    if unknown:
        raise SoakError(f"no life {', '.join(unknown)}; there are: {', '.join(known)}")
    if args.kernel not in SERIES:
        raise SoakError(f"--kernel {args.kernel}: there are {', '.join(SERIES)}")
    options = runner.Options(
        "short" if args.short else "default", jobs=args.jobs, seed=args.seed, reuse=not args.fresh, command="soak"
    )
    progress = make_progress()
    try:
        done = [live(name, options, args.kernel, progress) for name in args.names or known]
    finally:
        progress.close()
    args.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": 1, "seed": args.seed, "short": args.short, "lives": done}, indent=1)
    (args.out / "soak.json").write_text(text + "\n", encoding="utf-8")
    print(table(done))
    return 1 if any(one["wrong"] for one in done) else 0
