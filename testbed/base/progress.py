# SPDX-License-Identifier: GPL-2.0
"""Progress of long steps on standard error: a bar on a terminal, plain lines elsewhere.

A progress is any callable `report(step, done, total)`; `total` None = not known.
A new `step` ends the one before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

Report = Callable[[str, int, "int | None"], None]

PLAIN_EVERY_S = 10  # a log wants few lines, a person wants a sign of life


def silent(_step: str, _done: int = 0, _total: int | None = None) -> None:
    """Report nothing."""


class PlainProgress:
    """One line when a step begins, then one every PLAIN_EVERY_S."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.clock = stream or sys.stderr, clock
        self.step, self.began_s, self.said_s = "", 0.0, 0.0

    def __call__(self, step: str, done: int = 0, total: int | None = None) -> None:
        now = self.clock()
        if step != self.step:
            self.step, self.began_s = step, now
        elif now - self.said_s < PLAIN_EVERY_S:
            return
        self.said_s = now
        share = f" {min(done, total)} of {total}" if total and done else ""
        spent = f" ({now - self.began_s:.0f} s)" if now > self.began_s else ""
        print(f"{step}{share}{spent}", file=self.stream, flush=True)

    def close(self) -> None:
        """Nothing to put back."""


class BarProgress:
    """A bar of the rich library for the current step."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self.bar.start()
        self.step, self.task = "", TaskID(0)

    def __call__(self, step: str, done: int = 0, total: int | None = None) -> None:
        if step != self.step:
            if self.step:
                self.bar.update(self.task, total=1, completed=1)
                self.bar.stop_task(self.task)
            self.step, self.task = step, self.bar.add_task(step, total=total)
        self.bar.update(self.task, total=total, completed=min(done, total) if total else done)

    def close(self) -> None:
        """Give the terminal back."""
        self.bar.stop()


def make_progress() -> PlainProgress | BarProgress:
    """The right one for standard error; plain lines where rich is not installed."""
    if sys.stderr.isatty():
        try:
            return BarProgress()
        except ImportError:
            pass
    return PlainProgress()
