# SPDX-License-Identifier: GPL-2.0
"""The range of an explained miss is not much wider than the committed results need.

A check's ``differs`` explains why a bound is missed, and gives a range: outside of it the check fails. A range that is
much wider than the spread of the runs explains a large change as well, so that nobody notices the change.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from testbed.judge import checks, figures
from testbed.measure.summary import summarise
from testbed.results import digest
from testbed.results.digest import Document
from testbed.run import identity
from testbed.spec.experiment import Case, Check, Differs, case_name, load, matches, names

#: how much wider than what was measured a range may be
TIMES = 3
#: least width that counts as measured: part of the mean, and part of the distance between mean and bound
OF_MEAN, OF_MISS = 0.01, 0.05


class Range(NamedTuple):
    """A range of explained values in one case, and the values of the runs there."""

    where: str
    check: Check
    known: Differs
    values: list[float]

    def measured(self) -> float:
        """Width of the union of the runs' spread and the 95 % interval of their mean."""
        ours, bound = summarise(self.values), (self.check.min, self.check.max)
        ends = [value for value in self.values if not (self.check.each and checks.meets(value, bound))]
        if not self.check.each and not math.isnan(ours.half):
            ends += [ours.mean - ours.half, ours.mean + ours.half]
        spread = max(ends) - min(ends) if ends else 0.0
        miss = min(abs(ours.mean - edge) for edge in bound if edge is not None)
        return max(spread, OF_MEAN * abs(ours.mean), OF_MISS * miss)

    @property
    def too_wide(self) -> bool:
        return self.known.max - self.known.min > TIMES * self.measured()

    def __str__(self) -> str:
        low, high = min(self.values), max(self.values)
        return f"{self.where}: {self.known.min:g} to {self.known.max:g}, where the runs have {low:.4g} to {high:.4g}"


def of_case(where: str, check: Check, case: Case, values: list[float | None]) -> Iterator[Range]:
    """Yield the range that applies to a case, if one does and its runs have values."""
    known = checks.explained(check, case)
    real = [value for value in values if value is not None and not math.isnan(value)]
    if known is not None and real:
        yield Range(f"{where} {check.metric} {case_name(case)}", check, known, real)


def ranges(name: str, document: Document) -> Iterator[Range]:
    """Yield the ranges of an experiment in the cases of its document."""
    one, results = load(name), digest.result_set(document)
    table = checks.Table.of(results, checks.committed_ns2(one))
    for check in one.checks:
        for case in results.asked_cases:
            if check.differs and matches(case, check.case):
                yield from of_case(name, check, case, table.check(check, case))


@functools.cache
def committed() -> dict[str, Document]:
    return digest.load_all(digest.FOLDER)


def explaining() -> list[str]:
    """The experiments with such a range and a committed document in their own lengths."""
    return [
        name
        for name in names()
        if any(check.differs for check in load(name).checks)
        and committed().get(name, {"mode": "short"})["mode"] != "short"
    ]


@pytest.mark.parametrize("name", explaining())
def test_a_range_is_not_much_wider_than_what_was_measured(name: str) -> None:
    document = committed()[name]
    wide = [one for one in ranges(name, document) if one.too_wide]
    if wide and identity.stale(document, load(name)):
        return  # the next results of a changed tree need ranges of their own
    assert not wide, "narrow these (or give the cases ranges of their own):\n" + "\n".join(map(str, wide))


def test_a_range_of_a_traced_number_is_not_much_wider_than_what_was_measured() -> None:
    seen = 0
    for figure in figures.listed():
        for one in figure.finding:
            if not one.differs or figure.traced not in committed():
                continue
            results = digest.result_set(committed()[figure.traced])
            table = checks.Table.of(results)
            check = Check(one.metric, min=one.min, max=one.max, differs=one.differs)
            for case in results.asked_cases:
                if matches(case, one.case):
                    for found in of_case(figure.key, check, case, table.values(case, one.metric)):
                        assert not found.too_wide, str(found)
                        seen += 1
    assert seen


def made_range(low: float, high: float, values: list[float], **keys: float | bool) -> Range:
    check = dataclasses.replace(Check("be", min=90), **keys)  # type: ignore[arg-type]
    return Range("made", check, Differs("w", low, high), values)


@pytest.mark.parametrize(
    ("low", "high", "values", "wide"),
    [
        (60, 80, [68.0, 70.0, 72.0], False),  # the interval of the mean has 10
        (45, 80, [68.0, 70.0, 72.0], True),
        (49, 51, [50.0], False),  # a single run: a hundredth of its mean or a twentieth of the miss
        (40, 55, [50.0], True),
        (5, 85, [7.0, 7.5, 8.2], True),
    ],
)
def test_a_wide_range_is_found(low: float, high: float, values: list[float], wide: bool) -> None:
    assert made_range(low, high, values).too_wide is wide


def test_runs_that_meet_the_bound_do_not_widen_a_range_of_single_runs() -> None:
    values = [80.0, 82.0, 99.0]
    assert made_range(70, 89, values, each=True).too_wide
    assert not made_range(70, 89, values).too_wide
