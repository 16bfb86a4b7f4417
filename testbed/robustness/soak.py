# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed soak: long connections in virtual time (lives/*.toml), each judged by its checks.

A life is an experiment (Documentation/testbed.md) that is too long for the tables: gigabytes of data, days of idle
time, hours of sending, unusual clocks. make check runs the short forms. Finished runs are cached, so that an
interrupted soak continues where it stopped. A life's document is stored as soon as the life ends, so that an error or
an interrupt in a later life does not lose it.

Exit status: 0 no bound missed and no run missing; 1 otherwise, and after an error; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..backends.uml import Uml
from ..base.columns import aligned
from ..base.errors import LbeError
from ..base.places import REPO
from ..base.progress import Report, make_progress, silent
from ..judge import checks
from ..kernels.series import DEFAULT_SERIES
from ..kernels.series import SUITES as SERIES
from ..results import digest
from ..results.digest import Document
from ..run import identity, runner
from ..spec import lives as life_files
from ..spec.experiment import case_name, load

EXAMPLES = """\
examples:
  python3 -m testbed soak                       every experiment in full: two hours
  python3 -m testbed soak --short               what make check runs
  python3 -m testbed soak life_idle             one experiment
  python3 -m testbed run testbed/robustness/lives/life_idle.toml --case background=lp --case idle=day --case peer=ms
"""


class SoakError(LbeError):
    """Wrong usage."""

    exit_status = 2


def lives(short: bool = False) -> dict[str, Path]:
    """Name -> file. short: only those with a short form."""
    return {name: path for name, path in life_files.files().items() if not short or "short" in load(str(path)).modes}


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
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
    sub.add_argument("--cached", action="store_true", help="judge the runs that are in the cache, run nothing")
    sub.add_argument("--kernel", default=DEFAULT_SERIES, metavar="SERIES", help="6.1, 6.12 (default) or 7.2")
    sub.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where each life's JSON goes")
    sub.set_defaults(do=run)


@dataclass(frozen=True)
class Lived:
    """Result of a life: its document for the pages, the number of judged checks, those that failed or differ as
    explained, and the number of runs that are missing."""

    document: Document
    checks: int
    wrong: list[str]
    differs: list[str]
    missing: int = 0

    @property
    def name(self) -> str:
        """The life's name."""
        return str(self.document["experiment"])

    @property
    def cases(self) -> int:
        """Number of its cases."""
        return len(self.document["cases"])


def live(name: str, options: runner.Options, series: str = DEFAULT_SERIES, report: Report = silent) -> Lived | None:
    """Run one life and judge it; None if only cached runs are allowed and there are none. Raises a run's errors."""
    return judged(lives()[name], options, series, report)


def play(path: Path, options: runner.Options, series: str = DEFAULT_SERIES, report: Report = silent) -> Lived:
    """Run an experiment of its own file and judge it. Raises a run's errors."""
    lived = judged(path, options, series, report)
    assert lived is not None, "without cached runs only there are results"
    return lived


def judged(path: Path, options: runner.Options, series: str, report: Report) -> Lived | None:
    """Run an experiment and judge it; None if only cached runs are allowed and there are none."""
    experiment = load(str(path))
    backend = Uml(series)
    backend.prepare({module for job in runner.plan(experiment, options) for module in job.modules}, report)
    made = runner.run(experiment, backend, options, lambda done, total, text: report(experiment.name, done, total))
    if not made.results:
        return None
    # with cached runs only, some cases may be missing: the others are judged, and the document has all requested cases,
    # so that the pages show what is missing
    have = [run.case for run in made.results]
    verdicts = checks.judge(
        experiment, replace(made, asked_cases=[case for case in made.asked_cases if case in have])
    )

    def said(one: checks.Verdict) -> str:
        case, wanted = case_name(one.case or {}), checks.bound_text(one.bound)
        return f"{case}: {one.check.metric} is {one.ours.mean:.4g}, wanted {wanted}"

    wrong = [said(one) for one in checks.failures(verdicts)]
    differs = [f"{said(one)}: {one.note}" for one in verdicts if one.status in ("differs", "unsettled")]
    files = [str(path.relative_to(REPO))] if path.is_relative_to(REPO) else []
    document = digest.make(made) | {"files": files, "file_sha256": identity.hash_of_files(files)}
    # each run's own time, also of one that was in the cache
    took_s = sum(run.facts.get("wall_s", 0.0) for run in made.results)
    document |= {"wrong": wrong, "differs": differs, digest.SECONDS: round(took_s)}
    return Lived(document, len(checks.judged(verdicts)), wrong, differs, len(made.missing()))


def table(done: list[Lived], head: str = "life") -> str:
    """A line for each life, then everything that is wrong."""
    rows: list[tuple[str, ...]] = [(head, "cases", "missing", "checks", "differ", "wrong", "seconds")]
    for one in done:
        counts = (one.cases, one.missing, one.checks, len(one.differs), len(one.wrong), one.document[digest.SECONDS])
        rows.append((one.name, *map(str, counts)))
    lines = aligned(rows, words=1)
    lines += [f"{one.name}: {text}" for one in done for text in one.differs]
    lines += [f"{one.name}: WRONG: {text}" for one in done for text in one.wrong]
    lines += [f"{one.name}: INCOMPLETE: {one.missing} cases have no run" for one in done if one.missing]
    lines.append(f"{sum(len(one.wrong) for one in done)} wrong of {sum(one.checks for one in done)} checks")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Run the command: run, print and write; returns the exit status."""
    known = lives(args.short)
    unknown = sorted(set(args.names) - set(known))
    if unknown:
        raise SoakError(f"no life {', '.join(unknown)}; there are: {', '.join(known)}")
    if args.kernel not in SERIES:
        raise SoakError(f"--kernel {args.kernel}: there are {', '.join(SERIES)}")
    options = runner.Options(
        "short" if args.short else "default",
        jobs=args.jobs,
        seed=args.seed,
        reuse=not args.fresh,
        command="python3 -m testbed soak",
        cached=args.cached,
    )
    done: list[Lived] = []
    progress = make_progress()
    try:
        for name in args.names or known:
            lived = live(name, options, args.kernel, progress)
            if lived is not None:
                digest.save(lived.document, args.out)
                done.append(lived)
    finally:
        progress.close()
    print(table(done))
    return 1 if not done or any(one.wrong or one.missing for one in done) else 0
