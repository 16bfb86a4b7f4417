# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed run, demo, bench: run experiments, print their tables, draw their plots."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..base.progress import RunsProgress, make_progress
from ..judge import checks
from ..present import text as report_text
from ..present.plots import draw
from ..results import files as result_files
from ..run import dask_engine
from ..run.job import Job, dry_run
from ..run.runner import Options, locally, plan
from ..run.runner import run as run_experiment
from ..spec.experiment import Experiment, load
from ..spec.tables import ExperimentError
from .choose import make_backend
from .listing import tagged
from .shared import DEFAULT_OUT, add_verb, add_workers, print_json, settings


def add_parser(commands: Any) -> None:
    """Add the parsers of the three subcommands."""
    run = add_verb(commands, "run", "run experiments, print the table, draw the pictures")
    run.add_argument("names", nargs="+", metavar="NAME", help="experiment, or path of a .toml file")
    run.set_defaults(do=lambda args: run_all(list(map(load, args.names)), args))
    demo = add_verb(
        commands, "demo", "show a background transfer that steps aside for a foreground one: table and picture"
    )
    demo.set_defaults(do=lambda args: run_all([load("demo")], args))
    bench = add_verb(
        commands, "bench", "run every experiment (or those of a tag), with the papers' figures beside ours"
    )
    bench.add_argument("tag", nargs="?", help="only those with this tag")
    bench.set_defaults(do=lambda args: run_all(tagged(args.tag), args))
    for sub in (run, demo, bench):
        _add_what(sub)
        _add_where(sub)
        add_workers(sub)
        sub.add_argument("--dry-run", action="store_true", help="print commands and plans, run nothing")
        sub.add_argument("--json", action="store_true", help="the report as JSON on standard output")


def _add_what(sub: argparse.ArgumentParser) -> None:
    """Add the options that select runs of an experiment."""
    sub.add_argument("--runs", type=int, metavar="N", help="seeds per case (default: the experiment's)")
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


def _add_where(sub: argparse.ArgumentParser) -> None:
    """Add the options for kernel, machines and output folder."""
    sub.add_argument("--kernel", metavar="SERIES", help="6.1, 6.12 (default; else $LBE_SERIES) or 7.2")
    sub.add_argument(
        "--backend",
        default="uml",
        metavar="B",
        help="uml (default), qemu: a distribution's kernel in real time, host: the running kernel, as root, "
        "ssh: three machines, ns2, ns3: the simulators, for what they can express",
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


def _cases(experiment: Experiment, words: list[str]) -> dict[str, Any]:
    """The selected cases of all --case options: dimension -> variants."""
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


def _options(experiment: Experiment, args: argparse.Namespace) -> Options:
    cases = _cases(experiment, args.case)
    sets = settings(args.set)
    return Options(args.mode, args.runs, args.jobs, args.seed, sets, not args.fresh, args.command_line, cases)


def run_all(experiments: list[Experiment], args: argparse.Namespace) -> int:
    """Run experiments one after the other; the exit status is 1 if a bound is missed."""
    if args.jobs is not None and args.jobs < 1:
        raise ExperimentError(f"--jobs {args.jobs}: at least 1")
    # find errors before anything is built
    jobs = [job for experiment in experiments for job in plan(experiment, _options(experiment, args))]
    if args.dry_run:
        for job in jobs:
            print(dry_run(job), end="\n\n")
        return 0
    backend = _backend(jobs, args)
    red = False
    documents = []
    for experiment in experiments:
        progress = RunsProgress()
        try:
            execute = dask_engine.over(args.dask) if args.dask else locally
            results = run_experiment(experiment, backend, _options(experiment, args), progress, execute)
        finally:
            progress.close()
        path = results.save(args.out)
        text = report_text.text(experiment, results)
        (args.out / f"{experiment.name}.txt").write_text(text, encoding="utf-8")
        pictures = [] if args.no_plots else draw(experiment, results, args.out)
        if args.json:
            documents.append(result_files.plain(report_text.as_json(experiment, results)))
        else:
            print(text)
            print(f"results: {path}")
            for picture in pictures:
                if picture.suffix == ".png":
                    print(f"picture: {picture}")
        red |= checks.is_red(experiment, results, checks.judge(experiment, results))
    if args.json:
        print_json(documents)
    return 1 if red else 0


def _backend(jobs: list[Job], args: argparse.Namespace) -> Any:
    """The requested backend, prepared for these jobs."""
    backend = make_backend(args.backend, args.kernel, args.flavour, args.kernel_source, args.machines)
    progress = make_progress()
    try:
        backend.prepare({module for job in jobs for module in job.modules}, progress)
    finally:
        progress.close()
    return backend
