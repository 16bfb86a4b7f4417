# SPDX-License-Identifier: GPL-2.0
"""Shared code of several subcommands."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..spec.experiment import parse_set

#: folder in which `run` writes results and `show` looks for them
DEFAULT_OUT = Path("results")
EXAMPLES = """\
examples:
  python3 -m testbed list                              what there is
  python3 -m testbed run lp_beside_cubic               run, print the table, draw
  python3 -m testbed run lp_beside_cubic --short       the form that the tests use
  python3 -m testbed run lp_beside_cubic --dry-run     every command and plan, nothing run
  python3 -m testbed run lp_beside_cubic --set topology.rate_mbit=50 --runs 5
  python3 -m testbed run my_own.toml                   an experiment of your own
  python3 -m testbed show lp_beside_cubic              table and pictures again, from the files
  python3 -m testbed shell                             the three nodes, in real time, to try things
  python3 -m testbed evaluate --minutes 30             everything, as one page
"""


def add_verb(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Add a subcommand whose help ends with the examples."""
    sub: argparse.ArgumentParser = commands.add_parser(
        name, help=text, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    return sub


def add_workers(sub: argparse.ArgumentParser) -> None:
    """Add the options for parallel runs, reuse of earlier runs, and plots."""
    sub.add_argument("--jobs", type=int, metavar="N", help="machines at once (default: one per CPU)")
    sub.add_argument("--dask", metavar="ADDRESS", help="run on the workers of this Dask scheduler")
    sub.add_argument("--fresh", action="store_true", help="run everything again, without reusing earlier runs")
    sub.add_argument("--no-plots", action="store_true", help="draw nothing")


def settings(words: list[str]) -> dict[str, Any]:
    """The values of all --set options."""
    return dict(parse_set(word) for word in words)


def print_json(documents: list[Any]) -> None:
    """Print one document directly, or several as a list."""
    print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1))
