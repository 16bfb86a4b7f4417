# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed: the command line. Exit status 0 good, 1 failed, 2 asked wrongly."""

from __future__ import annotations

if __name__ == "__main__":  # first: a Python without our packages goes on in the one that has them
    from .base import bootstrap  # noqa: F401

# isort: split
import argparse
import json
import math
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

from .base.errors import LbeError
from .campaign import oracle
from .foreign import command as foreign_command
from .judge import checks
from .present import text as report_text
from .proof import command as proof_command
from .results import files as result_files
from .robustness import command as abuse_command
from .robustness import soak as soak_command
from .spec import experiment as experiments
from .spec.experiment import Experiment
from .spec.tables import ExperimentError

DEFAULT_OUT = Path("results")
RESULT_PAGES = Path("Documentation/results")

EXAMPLES = """\
examples:
  python3 -m testbed list                              what there is
  python3 -m testbed run lp_beside_cubic               run, print the table, draw
  python3 -m testbed run lp_beside_cubic --short       the form that the tests use
  python3 -m testbed run lp_beside_cubic --dry-run     every command and plan, nothing run
  python3 -m testbed run lp_beside_cubic --set topology.rate_mbit=50 --runs 5
  python3 -m testbed run my_own.toml                   an experiment of your own
  python3 -m testbed report lp_beside_cubic            table and pictures again, from the files
  python3 -m testbed shell                             the three nodes, in real time, to try things
  python3 -m testbed evaluate --minutes 30             everything, as one page
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m testbed",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Less-than-best-effort transport on real kernels in virtual time: experiments and their results.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="the experiments, a line each")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.add_argument("tag", nargs="?", help="only those with this tag (tcp_lp, demo, ...)")

    def running(name: str, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=text, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        sub.add_argument("--runs", type=int, metavar="N", help="seeds per case (default: the experiment's)")
        sub.add_argument("--jobs", type=int, metavar="N", help="machines at once (default: one per CPU)")
        sub.add_argument("--seed", type=int, metavar="N", help="first seed (default: the experiment's, 1)")
        sub.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="override a parameter, such as flow.bg.cc=vegas; may be repeated",
        )
        sub.add_argument(
            "--case", action="append", default=[], metavar="DIM=VARIANT", help="only these cases; may be repeated"
        )
        sub.add_argument("--kernel", metavar="SERIES", help="6.1, 6.12 (default; else $LBE_SERIES) or 7.2")
        sub.add_argument(
            "--backend",
            default="uml",
            metavar="B",
            help="uml (default), qemu: a distribution's kernel in real time, host: the running kernel, as root, "
            "ssh: three machines, ns2: the simulator, for what it can express",
        )
        sub.add_argument("--machines", type=Path, metavar="FILE", help="the machines of --backend ssh, a TOML file")
        sub.add_argument("--flavour", default="plain", metavar="F", help="plain (default) or sanitizer")
        sub.add_argument("--kernel-source", type=Path, metavar="DIR", help="a kernel source of your own")
        sub.add_argument(
            "--out",
            type=Path,
            default=DEFAULT_OUT,
            metavar="DIR",
            help=f"where results and pictures go (default: {DEFAULT_OUT}/)",
        )
        length = sub.add_mutually_exclusive_group()
        length.add_argument(
            "--full",
            action="store_const",
            dest="mode",
            const="full",
            help="the paper's own lengths and numbers of runs",
        )
        length.add_argument(
            "--short", action="store_const", dest="mode", const="short", help="the short form that the tests use"
        )
        sub.set_defaults(mode="default")
        sub.add_argument("--fresh", action="store_true", help="run again what has been run before")
        sub.add_argument("--dask", metavar="ADDRESS", help="run on the workers of this Dask scheduler")
        sub.add_argument("--dry-run", action="store_true", help="print commands and plans, run nothing")
        sub.add_argument("--no-plots", action="store_true", help="draw nothing")
        sub.add_argument("--json", action="store_true", help="the report as JSON on standard output")
        return sub

    run = running("run", "run experiments, print the table, draw the pictures")
    run.add_argument("names", nargs="+", metavar="NAME", help="experiment, or path of a .toml file")
    running("demo", "a background transfer steps aside for a foreground one: table and picture")
    bench = running("bench", "every experiment (or those of a tag), with the papers' figures beside ours")
    bench.add_argument("tag", nargs="?", help="only those with this tag")

    speed = commands.add_parser("speed", help="how fast the testbed is: simulated seconds a second")
    speed.add_argument("--kernel", action="append", metavar="SERIES", help="6.1, 6.12 or 7.2 (default: all three)")
    speed.add_argument("--rounds", type=int, default=3, metavar="N", help="the fastest of so many (default: 3)")

    evaluate = commands.add_parser(
        "evaluate",
        help="every table and figure of the papers, and the scoreboard: runs, reuses, writes pages",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    evaluate.add_argument("names", nargs="*", metavar="NAME", help="these experiments only (default: all)")
    evaluate.add_argument(
        "--minutes", type=float, metavar="N", help="how long it may take (default: 30); longer forms fill the time"
    )
    evaluate.add_argument("--full", action="store_true", help="the papers' own lengths and numbers of runs: days")
    evaluate.add_argument("--jobs", type=int, metavar="N", help="machines at once (default: one per CPU)")
    evaluate.add_argument("--dask", metavar="ADDRESS", help="run on the workers of this Dask scheduler")
    evaluate.add_argument("--fresh", action="store_true", help="run again what has been run before")
    evaluate.add_argument("--no-plots", action="store_true", help="draw nothing")
    evaluate.add_argument(
        "--check",
        action="store_true",
        help="run and write nothing: judge the results that the pages are made of; what is red, what is stale",
    )
    evaluate.add_argument("--plan", action="store_true", help="print what would be run, and what it costs")
    evaluate.add_argument("--pages", action="store_true", help="make the pages again from earlier results, run nothing")
    evaluate.add_argument(
        "--results",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="make the pages, run nothing; take result files of `run` from this folder too; may be repeated",
    )
    evaluate.add_argument(
        "--cached", action="store_true", help="of each experiment the longest form that was run already; run nothing"
    )
    evaluate.add_argument("--kernel", default="6.12", metavar="SERIES", help="6.1, 6.12 (default) or 7.2")
    evaluate.add_argument(
        "--out", type=Path, default=DEFAULT_OUT / "report", metavar="DIR", help="results, pictures, index.html"
    )
    evaluate.add_argument(
        "--docs", type=Path, default=RESULT_PAGES, metavar="DIR", help=f"Markdown and digests (default: {RESULT_PAGES})"
    )

    report = commands.add_parser("report", help="table and pictures from result files")
    report.add_argument(
        "names", nargs="*", metavar="NAME", help="experiment, or path of a .json file (default: all in --out)"
    )
    report.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="DIR", help="where the results are")
    report.add_argument("--no-plots", action="store_true", help="draw nothing")
    report.add_argument("--json", action="store_true", help="as JSON")

    abuse_command.add_parser(commands)
    soak_command.add_parser(commands)
    foreign_command.add_parser(commands)
    proof_command.add_parser(commands)
    oracle.add_parser(commands)

    shell = commands.add_parser("shell", help="the nodes in real time, modules loaded, a prompt")
    shell.add_argument("name", nargs="?", default="lp_beside_cubic", help="whose topology (default: lp_beside_cubic)")
    shell.add_argument("--kernel", metavar="SERIES", help="6.1, 6.12 (default; else $LBE_SERIES) or 7.2")
    shell.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return parser


# ------------------------------------------------------------------------------------- progress


class Bar:
    """Progress of runs on standard error: a bar with the time left, or a line now and then."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.began_s = self.said_s = time.monotonic()

    def __call__(self, done: int, total: int, text: str) -> None:
        if sys.stderr.isatty():
            self._rich(done, total, text)
            return
        now = time.monotonic()
        if done == total or now - self.said_s > 10:
            self.said_s = now
            left = (now - self.began_s) / done * (total - done) if done else math.nan
            print(
                f"{done} of {total} runs"
                + (f", about {left:.0f} s left" if done < total and done else "")
                + (f" ({text})" if text else ""),
                file=sys.stderr,
                flush=True,
            )

    def _rich(self, done: int, total: int, text: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self.bar is None:
            self.bar = Progress(
                TextColumn("{task.description:<44.44}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("runs,"),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=Console(stderr=True),
                transient=True,
            )
            self.bar.start()
            self.task = self.bar.add_task("runs", total=total)
        self.bar.update(self.task, completed=done, total=total, description=text)

    def close(self) -> None:
        """Give the terminal back."""
        if self.bar is not None:
            self.bar.stop()


# ------------------------------------------------------------------------------------- commands


def _sets(words: list[str]) -> dict[str, Any]:
    return dict(experiments.parse_set(word) for word in words)


def _case_filter(experiment: Experiment, words: list[str]) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    for word in words:
        dimension, equals, variant = word.partition("=")
        if not equals or dimension not in experiment.vary:
            raise ExperimentError(
                f"--case {word!r}: expected DIM=VARIANT; dimensions are " + (", ".join(experiment.vary) or "none")
            )
        if variant not in experiment.vary[dimension]:
            raise ExperimentError(
                f"--case {word!r}: variants of {dimension} are " + ", ".join(experiment.vary[dimension])
            )
        wanted.setdefault(dimension, []).append(variant)
    return wanted


def command_list(args: argparse.Namespace) -> int:
    """A line per experiment."""
    rows = [experiments.load(name) for name in experiments.names()]
    rows = [one for one in rows if not args.tag or args.tag in one.head.tags]
    if not rows:
        raise ExperimentError(f"no experiment has the tag {args.tag!r}" if args.tag else "there are no experiments")
    if args.json:
        print(
            json.dumps(
                [
                    {
                        "name": one.name,
                        "title": one.head.title,
                        "claim": one.head.claim,
                        "source": one.head.source,
                        "tags": one.head.tags,
                        "cases": len(one.cases()),
                        "runs": one.runs(),
                    }
                    for one in rows
                ],
                indent=1,
            )
        )
        return 0
    width = max(len(one.name) for one in rows)
    for one in rows:
        print(f"{one.name:<{width}}  {one.head.title or one.head.claim}")
    return 0


def _run_all(names: list[str], args: argparse.Namespace) -> int:
    """Run experiments one after the other; the exit status is 1 if a bound is missed."""
    from .base.progress import make_progress
    from .commands.choose import make_backend
    from .present.plots import draw
    from .run import dask_engine
    from .run.job import dry_run
    from .run.runner import Options, locally, plan, run

    loaded = [experiments.load(name) for name in names]
    sets = _sets(args.set)
    command = shlex.join(["python3", "-m", "testbed", *sys.argv[1:]])
    if args.jobs is not None and args.jobs < 1:
        raise ExperimentError(f"--jobs {args.jobs}: at least 1")

    def options(one: Experiment) -> Options:
        return Options(
            args.mode, args.runs, args.jobs, args.seed, sets, not args.fresh, command, _case_filter(one, args.case)
        )

    plans = [plan(one, options(one)) for one in loaded]  # refuses what is wrong before anything is built
    if args.dry_run:
        for jobs in plans:
            for job in jobs:
                print(dry_run(job), end="\n\n")
        return 0
    backend = make_backend(args.backend, args.kernel, args.flavour, args.kernel_source, args.machines)
    progress = make_progress()
    try:
        backend.prepare({module for jobs in plans for job in jobs for module in job.modules}, progress)
    finally:
        progress.close()

    status = 0
    documents = []
    for one in loaded:
        bar = Bar()
        try:
            results = run(one, backend, options(one), bar, dask_engine.over(args.dask) if args.dask else locally)
        finally:
            bar.close()
        path = results.save(args.out)
        text = report_text.text(one, results)
        (args.out / f"{one.name}.txt").write_text(text, encoding="utf-8")
        pictures = [] if args.no_plots else draw(one, results, args.out)
        if args.json:
            documents.append(result_files.plain(report_text.as_json(one, results)))
        else:
            print(text)
            print(
                f"results: {path}",
                *[f"picture: {picture}" for picture in pictures if picture.suffix == ".png"],
                sep="\n",
            )
        if checks.is_red(one, results, checks.judge(one, results)):
            status = 1
    if args.json:
        print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1))
    return status


def command_report(args: argparse.Namespace) -> int:
    """Tables and pictures of result files."""
    from .present.plots import draw

    paths = [Path(name) if name.endswith(".json") else args.out / f"{name}.json" for name in args.names] or sorted(
        args.out.glob("*.json")
    )
    if not paths:
        raise ExperimentError(f"no results in {args.out}/; python3 -m testbed run NAME makes some")
    documents = []
    red = False
    for path in paths:
        if not path.is_file():
            raise ExperimentError(f"no results {path}; python3 -m testbed run {path.stem} makes them")
        results = result_files.load(path)
        one = experiments.parse(results.text, Path(f"{results.experiment}.toml"))
        if args.json:
            documents.append(result_files.plain(report_text.as_json(one, results)))
        else:
            print(report_text.text(one, results))
        if not args.no_plots:
            for picture in draw(one, results, path.parent):
                print(f"picture: {picture}", file=sys.stderr)
        red |= checks.is_red(one, results, checks.judge(one, results))
    if args.json:
        print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1))
    return 1 if red else 0


def command_speed(args: argparse.Namespace) -> int:
    """A line a case and kernel. 1 if a case let nothing through."""
    from .base.progress import make_progress
    from .bench import speed

    if not 1 <= args.rounds <= 100:
        raise ExperimentError(f"--rounds {args.rounds}: allowed are 1 to 100")
    progress = make_progress()
    try:
        made = speed.run_all(tuple(args.kernel or speed.SERIES), args.rounds, progress)
        speed.beside_ns3(args.rounds, progress)
    finally:
        progress.close()
    for one in speed.idle(made):
        print(f"testbed: {one.case.name} on {one.series}: next to nothing came through", file=sys.stderr)
    return 1 if speed.idle(made) else 0


def command_evaluate(args: argparse.Namespace) -> int:
    """Run a campaign and write its pages. 1 if a run failed."""
    from .campaign import command as evaluate

    return evaluate.carry_out(args, shlex.join(["python3", "-m", "testbed", *sys.argv[1:]]))


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    args = _parser().parse_args(argv)
    # a plain kill unwinds like Ctrl-C
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if args.command == "list":
            return command_list(args)
        if args.command == "speed":
            return command_speed(args)
        if args.command == "evaluate":
            return command_evaluate(args)
        if args.command == "report":
            return command_report(args)
        if args.command == "abuse":
            return abuse_command.run(args)
        if args.command == "soak":
            return soak_command.run(args)
        if args.command == "foreign":
            return foreign_command.run(args)
        if args.command == "proof":
            return proof_command.run(args)
        if args.command == "ns2":
            return oracle.carry_out(args, shlex.join(["python3", "-m", "testbed", *sys.argv[1:]]))
        if args.command == "shell":
            from .commands.shell import run_shell

            return run_shell(experiments.load(args.name), args.kernel, _sets(args.set))
        if args.command == "demo":
            return _run_all(["demo"], args)
        if args.command == "bench":
            chosen = [
                name for name in experiments.names() if not args.tag or args.tag in experiments.load(name).head.tags
            ]
            if not chosen:
                raise ExperimentError(f"no experiment has the tag {args.tag!r}")
            return _run_all(chosen, args)
        return _run_all(args.names, args)
    except KeyboardInterrupt:
        print("interrupted; nothing is left running, and the same command goes on from here", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
    except LbeError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
