# SPDX-License-Identifier: GPL-2.0
"""Orders and trends that a paper states without a number, and rows that do not count for a figure's verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed.base.errors import LbeError
from testbed.judge import coverage, figures
from testbed.measure.summary import summarise
from testbed.present import tables
from testbed.tests.made import TWO_FLOWS, experiment, result_set
from testbed.tests.made_digests import made

HEAD = TWO_FLOWS[: TWO_FLOWS.index("[[check]]")]
ORDER = (
    HEAD
    + '[[check]]\nmetric = "be"\nwhy = "Table 9: more"\ncase = { background = "polite" }\n'
    + 'of = { background = "alone" }\norder = true\nmin = 100\n'
)
NUMBER = HEAD + '[[check]]\nmetric = "be"\ncase = { background = "polite" }\npaper = 9\npaper_at = "Table 9"\n'


def figure(**keys: Any) -> figures.Figure:
    return figures.Figure("tcp_lp", "Table 9", "made up", experiment="made", **keys)


def rows(text: str, polite: list[float], mode: str = "default", of: figures.Figure | None = None) -> list[coverage.Row]:
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
        ([7.0, 8.5, 9.5], coverage.UNDECIDED),
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
        finding = figures.Finding("sum", "be", {"background": "polite"}, min=least, order=True)
        (row,) = coverage.finding_rows(figure(finding=[finding]), made)
        assert row.against == said


def test_a_row_that_stands_beside_is_not_counted_and_says_why() -> None:
    (row,) = rows(NUMBER, [5.0, 5.1])
    assert row.against == coverage.DIFFERS
    beside = figures.Beside("today's TCP", ("be",), {"background": "polite"})
    of = figure(beside=(beside,))
    (row,) = rows(NUMBER, [5.0, 5.1], of=of)
    assert (row.against, row.beside) == ("", "today's TCP")
    verdict = coverage.FigureVerdict(of, [row], "no bound", "default")
    assert verdict.against == coverage.NO_NUMBER, "a figure of such rows alone is not reproduced"
    assert tables.row_cells(row)[-1] == "beside"
    assert any("today's TCP" in reason and "background=polite" in reason for reason in tables.reasons(verdict))
    # a `beside` of another metric or case does not exempt the row
    for other in (figures.Beside("w", ("bg",)), figures.Beside("w", (), {"background": "alone"})):
        (row,) = rows(NUMBER, [5.0, 5.1], of=figure(beside=(other,)))
        assert row.against == coverage.DIFFERS


@pytest.mark.parametrize(
    ("rises", "first", "last", "said"),
    [
        (True, [1.0, 1.1, 1.0], [2.0, 2.1, 2.0], coverage.REPRODUCED),
        (False, [1.0, 1.1, 1.0], [2.0, 2.1, 2.0], coverage.DIFFERS),
        (True, [2.0, 2.1, 2.0], [1.0, 1.1, 1.0], coverage.DIFFERS),
        # undecided
        (True, [1.0, 2.0, 1.0], [1.1, 1.8, 1.6], coverage.UNDECIDED),
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
    trend = figures.Trend("be", "background", "alone", "polite", rises)
    (row,) = coverage.trend_rows(figure(trend=[trend]), one, made)
    assert (row.against, row.red) == (said, False)
    assert row.what == "best effort: background=polite minus background=alone"


def test_a_trend_may_be_of_a_comparison() -> None:
    one = experiment(HEAD + '[[check]]\nmetric = "be"\nwhy = "w"\nmin = 1\n')
    values = {"alone": [2.0, 2.0], "polite": [3.0, 3.2], "strict": [1.0, 1.0]}
    made = result_set(one, {name: [{"be": value} for value in runs] for name, runs in values.items()})
    trend = figures.Trend("be", "background", "strict", "polite", True, of={"background": "alone"})
    (row,) = coverage.trend_rows(figure(trend=[trend]), one, made)
    assert abs(row.ours.mean - (155 - 50)) < 1e-9


# ------------------------------------------------------- tolerances, and parameters that the paper does not give


def test_a_tolerance_counts_for_the_rows_that_it_is_of() -> None:
    near = figures.Near(10, "read off a curve", ("be",), {"background": "polite"})
    for one, said in (
        (near, coverage.REPRODUCED),
        (replace(near, metric=("bg",)), coverage.DIFFERS),
        (replace(near, case={"background": "alone"}), coverage.DIFFERS),
        (replace(near, experiment="another"), coverage.DIFFERS),
        (replace(near, percent=5), coverage.DIFFERS),
    ):
        (row,) = rows(NUMBER, [9.8, 9.81], of=figure(near=(one,)))
        assert row.against == said, one
    assert "or of be where background=polite within 10 %: read off a curve" in tables.near_rule(figure(near=(near,)))
    (row,) = rows(NUMBER, [9.8, 9.81])
    assert row.against == coverage.DIFFERS, "without a tolerance only the interval counts"


@pytest.mark.parametrize("percent", [0, -1, 11])
def test_a_tolerance_is_at_most_ten_percent(percent: float) -> None:
    with pytest.raises(LbeError, match="above 0, up to 10"):
        figures._refuse(figure(near=(figures.Near(percent, "w"),)), "coverage.toml")


@pytest.mark.parametrize(
    ("values", "said"), [(("no_such", "lp"), "no background=no_such"), (("lp",), "two values or more")]
)
def test_what_no_sweep_may_be(values: tuple[str, ...], said: str) -> None:
    unknown = figures.Unknown("the background", "background", values)
    with pytest.raises(LbeError, match=said):
        figures._refuse(replace(figure(unknown=(unknown,)), experiment="lp_table1"), "coverage.toml")


@pytest.mark.parametrize(
    ("tcp", "said"),
    [
        # near with one value: unknown there, the other beside
        ({"1.5M": 96.8, "10M": 50.0}, {"1.5M": coverage.UNKNOWN, "10M": ""}),
        ({"1.5M": 50.0, "10M": 96.8}, {"1.5M": "", "10M": coverage.UNKNOWN}),
        # with none: the parameter is not the reason
        ({"1.5M": 50.0, "10M": 50.0}, {"1.5M": coverage.DIFFERS, "10M": coverage.DIFFERS}),
    ],
)
def test_the_value_that_fits_is_judged_and_the_others_stand_beside(tcp: dict[str, float], said: dict[str, str]) -> None:
    document = made("lp_table1", {"tcp": 0.0})
    for case in document["cases"]:
        case["metrics"]["tcp"] = [tcp[case["case"]["link"]]]
    unknown = figures.Unknown("the rate", "link", ("1.5M", "10M"), metric=("tcp",))
    of = figure(unknown=(unknown,), near=(figures.Near(1, "made up"),))
    there = [
        coverage.row_of(
            of,
            ("tcp", "tcp", case["case"]),
            96.8,
            summarise(case["metrics"]["tcp"]),
            (None, None),
            ("shown", "", False),
            experiment="lp_table1",
            source=figures.Source("lp_table1", "tcp", case["case"]),
        )
        for case in document["cases"]
    ]
    judged = coverage.try_values(of, unknown, there, {"lp_table1": document})
    assert {row.case["link"]: row.against for row in judged if row.case} == said
    fits = [row for row in judged if row.against == coverage.UNKNOWN]
    assert all("does not give the rate" in row.why and "fits best" in row.why for row in fits)
    assert all("fits best" in row.beside for row in judged if not row.against)
    verdict = coverage.FigureVerdict(of, judged, "no bound", "default")
    if fits:
        assert verdict.against == coverage.UNKNOWN
        assert any(line.startswith("Unknown (") for line in tables.reasons(verdict))


def test_what_the_paper_does_not_define_is_unknown_with_the_metric_that_fits() -> None:
    document = made("lp_table1", {"tcp": 50.0, "lp": 96.8})
    unknown = figures.Unknown("what it counts", figures.METRIC, ("tcp", "lp"))
    of = figure(unknown=(unknown,), near=(figures.Near(1, "made up"),))
    figures._refuse(replace(of, experiment="lp_table1"), "coverage.toml")
    case = document["cases"][0]["case"]
    there = [
        coverage.row_of(
            of,
            (metric, metric, case),
            96.8,
            coverage.measured(source, {"lp_table1": document}),
            (None, None),
            ("shown", "", False),
            experiment="lp_table1",
            source=source,
        )
        for metric in unknown.values
        for source in [figures.Source("lp_table1", metric, case)]
    ]
    judged = {row.metric: row for row in coverage.try_values(of, unknown, there, {"lp_table1": document})}
    assert judged["lp"].against == coverage.UNKNOWN and "lp fits best" in judged["lp"].why
    assert judged["tcp"].against == "" and "lp fits best" in judged["tcp"].beside
    # an order is judged by that metric too
    orders = [replace(row, paper=None, order=True, against=coverage.DIFFERS) for row in there]
    judged = {row.metric: row for row in coverage.try_values(of, unknown, [*there, *orders], {"lp_table1": document})}
    assert judged["lp"].against == coverage.DIFFERS and judged["tcp"].against == ""
    with pytest.raises(LbeError, match="lp_table1 has no metric 'no_such'"):
        wrong = replace(unknown, values=("tcp", "no_such"))
        figures._refuse(replace(of, experiment="lp_table1", unknown=(wrong,)), "coverage.toml")


def test_one_value_holds_for_all_rows() -> None:
    document = made("lp_table1", {"tcp": 50.0})
    for case in document["cases"]:
        case["metrics"]["tcp"] = [{"lp": 96.8, "alone": 100.0}.get(case["case"]["background"], 50.0)]
        if case["case"]["link"] == "10M":
            case["metrics"]["tcp"] = [96.8 if case["case"]["background"] == "reno" else 50.0]
    unknown = figures.Unknown("the rate", "link", ("1.5M", "10M"), metric=("tcp",))
    of = figure(unknown=(unknown,), near=(figures.Near(1, "made up"),))
    there = [
        coverage.row_of(
            of,
            ("tcp", "tcp", case["case"]),
            100.0 if case["case"]["background"] == "alone" else 96.8,
            summarise(case["metrics"]["tcp"]),
            (None, None),
            ("shown", "", False),
            experiment="lp_table1",
            source=figures.Source("lp_table1", "tcp", case["case"]),
        )
        for case in document["cases"]
    ]
    judged = coverage.try_values(of, unknown, there, {"lp_table1": document})
    at = {(row.case["background"], row.case["link"]): row for row in judged if row.case}
    assert at["lp", "1.5M"].against == coverage.UNKNOWN
    assert at["reno", "10M"].against == "", "it fits with 10M, which is not the value that fits most"
    assert at["reno", "1.5M"].against == coverage.DIFFERS and "but not here" in at["reno", "1.5M"].why


def test_a_mean_over_cases_has_the_interval_of_its_seeds() -> None:
    document = made("lp_table1", {"tcp": 0.0})
    for case in document["cases"]:
        at = 60.0 if case["case"]["link"] == "1.5M" else 40.0
        case.update(seeds=[1, 2], metrics={"tcp": [at - 1, at + 1]})
    document["asked_seeds"] = [1, 2]
    found = coverage.measured(figures.Source("lp_table1", "tcp", {"background": "lp"}), {"lp_table1": document})
    assert (found.n, found.mean, found.low, found.high) == (2, 50.0, 49.0, 51.0)
    assert coverage.mean_by_seed([[1.0, None], [3.0, 4.0]]) == [2.0, None]
