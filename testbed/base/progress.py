# SPDX-License-Identifier: GPL-2.0
"""Progress of long steps on standard error: a bar on a terminal, plain lines elsewhere.

A progress is any callable `report(step, done, total)`; `total` None means unknown.
A new `step` ends the previous one.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

Report = Callable[[str, int, "int | None"], None]

PLAIN_EVERY_S = 10  # interval of lines: few enough for a log, often enough for a user


def silent(_step: str, _done: int = 0, _total: int | None = None) -> None:
    """Report nothing."""


class PlainProgress:
    """One line when a step starts, then one every PLAIN_EVERY_S."""

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
        """Nothing to do."""


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


class RunsProgress:
    """Progress of runs and the time left: a bar on a terminal, elsewhere a line every PLAIN_EVERY_S."""

    def __init__(self, limit_s: float = math.inf) -> None:
        self.limit_s = limit_s
        self.began_s = self.said_s = time.monotonic()
        self.bar: Any = None

    def spent_s(self) -> float:
        """Time since the start, seconds."""
        return time.monotonic() - self.began_s

    def left(self, share: float) -> str:
        """Remaining time as text, when ``share`` of the work is done."""
        if not share:
            return ""
        seconds = max(0.0, min(self.spent_s() / share * (1 - share), self.limit_s - self.spent_s()))
        return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"

    def __call__(self, done: int, total: int, text: str, share: float | None = None) -> None:
        """Show that ``done`` runs are finished; share: of the work, if runs differ in cost."""
        share = done / total if share is None else share
        if sys.stderr.isatty():
            self._show(share, text)
        elif done == total or time.monotonic() - self.said_s > PLAIN_EVERY_S:
            self.said_s = time.monotonic()
            words = f"{100 * share:.0f} %, {done} of {total} runs, {self.left(share)}".rstrip(", ")
            print(words + (f" ({text})" if text else ""), file=sys.stderr, flush=True)

    def _show(self, share: float, text: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        if self.bar is None:
            self.bar = Progress(
                TextColumn("{task.description:<50.50}"),
                BarColumn(),
                TextColumn("{task.percentage:3.0f} %"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
            )
            self.bar.start()
            self.task = self.bar.add_task("", total=1.0, left="")
        self.bar.update(self.task, completed=share, description=text, left=self.left(share))

    def close(self) -> None:
        """Give the terminal back."""
        if self.bar is not None:
            self.bar.stop()


def make_progress() -> PlainProgress | BarProgress:
    """A bar if standard error is a terminal and rich is installed, else plain lines."""
    if sys.stderr.isatty():
        try:
            return BarProgress()
        except ImportError:
            pass
    return PlainProgress()
