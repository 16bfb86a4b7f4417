# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed evaluate: every table and figure of the papers, and the pages of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..campaign.command import run
from .shared import DEFAULT_OUT, add_verb, add_workers

RESULT_PAGES = Path("Documentation/results")


def add_parser(commands: Any) -> None:
    """The sub-command's words."""
    sub = add_verb(
        commands,
        "evaluate",
        "every table and figure of the papers, and the scoreboard: runs, reuses, writes pages",
    )
    sub.add_argument("names", nargs="*", metavar="NAME", help="these experiments only (default: all)")
    sub.add_argument(
        "--minutes", type=float, metavar="N", help="how long it may take (default: 30); longer forms fill the time"
    )
    sub.add_argument("--full", action="store_true", help="the papers' own lengths and numbers of runs: days")
    sub.add_argument(
        "--check",
        action="store_true",
        help="run and write nothing: judge the results that the pages are made of; what is red, what is stale",
    )
    sub.add_argument("--plan", action="store_true", help="print what would be run, and what it costs")
    sub.add_argument("--pages", action="store_true", help="make the pages again from earlier results, run nothing")
    sub.add_argument(
        "--results",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="make the pages, run nothing; take result files of `run` from this folder too; may be repeated",
    )
    sub.add_argument(
        "--cached", action="store_true", help="of each experiment the longest form that was run already; run nothing"
    )
    sub.add_argument("--kernel", default="6.12", metavar="SERIES", help="6.1, 6.12 (default) or 7.2")
    sub.add_argument(
        "--out", type=Path, default=DEFAULT_OUT / "report", metavar="DIR", help="results, pictures, index.html"
    )
    sub.add_argument(
        "--docs", type=Path, default=RESULT_PAGES, metavar="DIR", help=f"Markdown and digests (default: {RESULT_PAGES})"
    )
    add_workers(sub)
    sub.set_defaults(do=run)
