# SPDX-License-Identifier: GPL-2.0
"""Orders and trends that a paper states without a number, and rows that do not count for a figure's verdict."""

from __future__ import annotations

import pytest

from testbed.base.errors import LbeError
from testbed.judge import coverage
from testbed.present import tables
from testbed.tests.made import TWO_FLOWS, experiment, result_set

HEAD = TWO_FLOWS[: TWO_FLOWS.index("[[check]]")]
ORDER = (
    HEAD
    + '[[check]]\nmetric = "be"\nwhy = "Table 9: more"\ncase = { background = "polite" }\n'
    + 'of = { background = "alone" }\norder = true\nmin = 100\n'
)
NUMBER = HEAD + '[[check]]\nmetric = "be"\ncase = { background = "polite" }\npaper = 9\npaper_at = "Table 9"\n'


def figure(**keys) -> coverage.Figure:
    return coverage.Figure("tcp_lp", "Table 9", "made up", experiment="made", **keys)


def rows(
    text: str, polite: list[float], mode: str = "default", of: coverage.Figure | None = None
) -> list[coverage.Row]:
    one = experiment(text)
    values = {"alone": [{"be": 8.0}] * len(polite), "polite": [{"be": value, "bg": 1.0} for value in polite]}
    of = of or figure()
    return [coverage.stand_beside(of, row) for row in coverage.check_rows(of, one, result_set(one, values, mode))]


@pytest.mark.parametrize(
    ("polite", "said"),
    [
        ([9.0, 9.1, 9.2], coverage.REPRODUCED),
        ([7.0, 7.1, 7.2], coverage.DIFFERS),
        # the interval contains the bound: not reproduced until more seeds decide
        ([7.0, 8.5, 9.5], coverage.DIFFERS),
    ],
)
def test_an_order_is_reproduced_if_the_whole_interval_is_on_its_side(polite: list[float], said: str) -> None:
    (row,) = rows(ORDER, polite)
    assert (row.against, row.order, row.paper) == (said, True, None)
    assert tables.row_cells(row)[2] == "order"


def test_an_order_that_this_form_does_not_judge_says_nothing() -> None:
    (row,) = rows(ORDER + "short = false\n", [9.0], "short")
    assert row.against == ""


def test_a_bound_alone_is_no_order() -> None:
    (row,) = rows(ORDER.replace("order = true\n", ""), [9.0, 9.1, 9.2])
    assert (row.against, row.order) == ("", False)


@pytest.mark.parametrize("keys", ["order = true\npaper = 9\nmin = 8", "order = true\npaper = 9"])
def test_an_order_has_a_bound_and_no_number(keys: str) -> None:
    with pytest.raises(LbeError, match="order is of a bound"):
        experiment(HEAD + f'[[check]]\nmetric = "be"\nwhy = "w"\n{keys}\n')


def test_a_finding_may_be_an_order() -> None:
    one = experiment(HEAD + '[[check]]\nmetric = "be"\nwhy = "w"\nmin = 1\n')
    made = result_set(one, {"alone": [{"be": 8.0}] * 2, "polite": [{"be": 6.0, "bg": 1.0}] * 2})
    for least, said in ((5, coverage.REPRODUCED), (7, coverage.DIFFERS)):
        finding = coverage.Finding("sum", "be", {"background": "polite"}, min=least, order=True)
        (row,) = coverage.finding_rows(figure(finding=[finding]), made)
        assert row.against == said


def test_a_row_that_stands_beside_is_not_counted_and_says_why() -> None:
    (row,) = rows(NUMBER, [5.0, 5.1])
    assert row.against == coverage.DIFFERS
    beside = coverage.Beside("today's TCP", ("be",), {"background": "polite"})
    of = figure(beside=(beside,))
    (row,) = rows(NUMBER, [5.0, 5.1], of=of)
    assert (row.against, row.beside) == ("", "today's TCP")
    verdict = coverage.FigureVerdict(of, [row], "no bound", "default")
    assert verdict.against == coverage.NO_NUMBER, "a figure of such rows alone is not reproduced"
    assert tables.row_cells(row)[-1] == "beside"
    assert any("today's TCP" in reason and "background=polite" in reason for reason in tables.reasons(verdict))
    # a `beside` of another metric or case does not exempt the row
    for other in (coverage.Beside("w", ("bg",)), coverage.Beside("w", (), {"background": "alone"})):
        (row,) = rows(NUMBER, [5.0, 5.1], of=figure(beside=(other,)))
        assert row.against == coverage.DIFFERS


@pytest.mark.parametrize(
    ("rises", "first", "last", "said"),
    [
        (True, [1.0, 1.1, 1.0], [2.0, 2.1, 2.0], coverage.REPRODUCED),
        (False, [1.0, 1.1, 1.0], [2.0, 2.1, 2.0], coverage.DIFFERS),
        (True, [2.0, 2.1, 2.0], [1.0, 1.1, 1.0], coverage.DIFFERS),
        # undecided
        (True, [1.0, 2.0, 1.0], [1.1, 1.8, 1.6], coverage.DIFFERS),
        # not run
        (True, [1.0, 1.1, 1.0], [], ""),
    ],
)
def test_a_trend_is_the_last_number_less_the_first(
    rises: bool, first: list[float], last: list[float], said: str
) -> None:
    one = experiment(HEAD + '[[check]]\nmetric = "be"\nwhy = "w"\nmin = 1\n')
    values = {"alone": first, "polite": last}
    made = result_set(one, {name: [{"be": value} for value in runs] for name, runs in values.items() if runs})
    trend = coverage.Trend("be", "background", "alone", "polite", rises)
    (row,) = coverage.trend_rows(figure(trend=[trend]), one, made)
    assert (row.against, row.red) == (said, False)
    assert row.what == "best effort: background=polite minus background=alone"


def test_a_trend_may_be_of_a_comparison() -> None:
    one = experiment(HEAD + '[[check]]\nmetric = "be"\nwhy = "w"\nmin = 1\n')
    values = {"alone": [2.0, 2.0], "polite": [3.0, 3.2], "strict": [1.0, 1.0]}
    made = result_set(one, {name: [{"be": value} for value in runs] for name, runs in values.items()})
    trend = coverage.Trend("be", "background", "strict", "polite", True, of={"background": "alone"})
    (row,) = coverage.trend_rows(figure(trend=[trend]), one, made)
    assert abs(row.ours.mean - (155 - 50)) < 1e-9
