# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed evaluate: run all tables and figures of the papers, and write the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..campaign.command import run
from .shared import DEFAULT_OUT, add_verb, add_workers

RESULT_PAGES = Path("Documentation/results")


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = add_verb(
        commands,
        "evaluate",
        "run the papers' tables and figures and the scoreboard within a given time, and write the pages",
    )
    sub.add_argument("names", nargs="*", metavar="NAME", help="these experiments only (default: all)")
    sub.add_argument(
        "--minutes", type=float, metavar="N", help="time to spend (default: 30); longer forms of experiments fill it"
    )
    sub.add_argument(
        "--full", action="store_true", help="the papers' own lengths and numbers of runs, which takes days"
    )
    sub.add_argument(
        "--check",
        action="store_true",
        help="run and write nothing; judge the results of the pages, and list what is red and what is stale",
    )
    sub.add_argument("--plan", action="store_true", help="print what would be run and how long it would take")
    sub.add_argument("--pages", action="store_true", help="run nothing; make the pages again from earlier results")
    sub.add_argument(
        "--results",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="run nothing; make the pages, also from the result files of `run` in this folder; may be repeated",
    )
    sub.add_argument(
        "--cached", action="store_true", help="run nothing; take the longest form of each experiment that the cache has"
    )
    sub.add_argument("--kernel", default="6.12", metavar="SERIES", help="6.1, 6.12 (default) or 7.2")
    sub.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT / "report",
        metavar="DIR",
        help="where results, pictures and index.html go (default: results/report)",
    )
    sub.add_argument(
        "--docs",
        type=Path,
        default=RESULT_PAGES,
        metavar="DIR",
        help=f"where Markdown and digests go (default: {RESULT_PAGES})",
    )
    add_workers(sub)
    sub.set_defaults(do=run)
