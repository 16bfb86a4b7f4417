# SPDX-License-Identifier: GPL-2.0
"""A table of Documentation/sch_shred.md whose runs are not those of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from testbed.measure.summary import summarise
from testbed.present.text import interval


def print_table(
    heads: Sequence[str], rows: Iterable[tuple[str, Callable[[int], tuple[float, ...]]]], seeds: int
) -> None:
    """Print a line for each row as soon as it is measured.

    heads: of the row's title and of each number. rows: title, and the numbers of a seed's run. The runs of a row are
    made by threads, two at a time, since each run is a process of its own.
    """
    print(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
    for title, measure in rows:
        with ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(measure, range(1, seeds + 1)))
        print(f"| {title} | {' | '.join(interval(summarise(column)) for column in zip(*runs))} |", flush=True)
