# SPDX-License-Identifier: GPL-2.0
"""ns-3 on the testbed's dumbbell, to compare the cost of real kernel code with that of a simulator."""

from __future__ import annotations

import time
from pathlib import Path

from ...backends.ns3 import package
from ...base.progress import Report, silent

SOURCE = Path(__file__).with_name("dumbbell.cc")


def measure(flows: int, seconds: float, rounds: int, report: Report = silent) -> tuple[float, float]:
    """(wall seconds of the fastest round, Mbit/s received). LbeError if the package or a compiler is not available."""
    program = package.ensure(SOURCE, report)
    fastest, mbit = float("inf"), 0.0
    for _ in range(rounds):
        began = time.monotonic()
        mbit = float(package.run([str(program), str(flows), f"{seconds:g}"], 600))
        fastest = min(fastest, time.monotonic() - began)
    return fastest, mbit
