# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed show: print tables and draw plots again, from result files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..judge import checks
from ..present import text as report_text
from ..present.plots import draw
from ..results import files as result_files
from ..spec.experiment import parse
from ..spec.tables import ExperimentError
from .shared import DEFAULT_OUT, print_json


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser("show", help="print tables and draw pictures again, from result files")
    sub.add_argument(
        "names", nargs="*", metavar="NAME", help="experiment, or path of a .json file (default: all in --out)"
    )
    sub.add_argument(
        "--out", type=Path, default=DEFAULT_OUT, metavar="DIR", help="where the results are (default: results/)"
    )
    sub.add_argument("--no-plots", action="store_true", help="draw nothing")
    sub.add_argument("--json", action="store_true", help="as JSON")
    sub.set_defaults(do=run)


def _paths(names: list[str], out: Path) -> list[Path]:
    """The result files with these names; without names, all in the folder."""
    paths = [Path(name) if name.endswith(".json") else out / f"{name}.json" for name in names]
    paths = paths or sorted(out.glob("*.json"))
    if not paths:
        raise ExperimentError(f"no results in {out}/; python3 -m testbed run NAME makes some")
    for path in paths:
        if not path.is_file():
            raise ExperimentError(f"no results {path}; python3 -m testbed run {path.stem} makes them")
    return paths


def run(args: argparse.Namespace) -> int:
    """Run the command; exit status 1 if a bound is missed."""
    documents = []
    red = False
    for path in _paths(args.names, args.out):
        results = result_files.load(path)
        experiment = parse(results.text, Path(f"{results.experiment}.toml"))
        if args.json:
            documents.append(result_files.plain(report_text.as_json(experiment, results)))
        else:
            print(report_text.text(experiment, results))
        if not args.no_plots:
            for picture in draw(experiment, results, path.parent):
                print(f"picture: {picture}", file=sys.stderr)
        red |= checks.is_red(experiment, results, checks.judge(experiment, results))
    if args.json:
        print_json(documents)
    return 1 if red else 0
