# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed speed: measure how many seconds the testbed simulates per second."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import Any

from ..base.progress import make_progress
from ..bench import speed
from ..run import runner
from ..spec.tables import ExperimentError


def add_parser(commands: Any) -> None:
    """Add the subcommand's parser."""
    sub = commands.add_parser("speed", help="measure simulated seconds per second of real time")
    sub.add_argument("--kernel", action="append", metavar="SERIES", help="6.1, 6.12 or 7.2 (default: all three)")
    sub.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="rounds, of which the fastest counts (default: 3)"
    )
    sub.set_defaults(do=run)


def run(args: argparse.Namespace) -> int:
    """Run the command, which prints a line for each case and kernel. 1 if a case carried almost no traffic or is slower
    than its aim."""
    if not 1 <= args.rounds <= 100:
        raise ExperimentError(f"--rounds {args.rounds}: allowed are 1 to 100")
    progress = make_progress()
    # date and version, so that a page with these lines can say when and with which tree they were measured
    print(f"measured {datetime.now(UTC):%Y-%m-%d}, testbed {runner.version()}")
    try:
        measured = speed.run_all(tuple(args.kernel or speed.SERIES), args.rounds, progress)
        simulator = speed.beside_ns3(args.rounds, progress)
    finally:
        progress.close()
    idle = speed.idle(measured)
    for case in idle:
        print(f"testbed: {case.case.name} on {case.series}: next to nothing came through", file=sys.stderr)
    slow = speed.slow(measured, simulator)
    for case, aim in slow:
        print(f"testbed: {case.case.name} on {case.series}: {case.speed:.1f}, aim {aim:.1f}", file=sys.stderr)
    return 1 if idle or slow else 0
