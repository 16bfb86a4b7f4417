# SPDX-License-Identifier: GPL-2.0
"""Rows of coverage.toml that no check gives: a formula of a paper, and a curve of a figure's second experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.base.errors import LbeError
from testbed.judge import coverage, figures, formulas
from testbed.tests.made_digests import made

OF = {"C": 187.5, "delta": 0.4}


def test_a_formula_has_the_value_of_its_variables() -> None:
    assert formulas.value("sqrt(5 * C) * (1 - sqrt(delta))", OF) == pytest.approx(11.25, abs=0.01)
    assert formulas.value("(C + 0.5) / 2 - delta ** 2", OF) == pytest.approx(93.84)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5 * D", "'D': allowed are numbers, C, delta"),
        ("exp(C)", "exp"),
        ("C.real", "C.real"),
        ("'C'", "'C'"),
        ("C if C else 0", "allowed are"),
        ("5 *", "has no value"),
        ("C / (delta - 0.4)", "has no value"),
        ("sqrt(delta - C)", "has no value"),
        ("C ** 1000", "has no value"),
    ],
)
def test_what_no_formula_may_have(text: str, said: str) -> None:
    with pytest.raises(LbeError, match=said.replace("(", r"\(").replace("*", r"\*")):
        formulas.value(text, OF)


def test_a_formula_is_shown_and_counts_for_nothing() -> None:
    figure = next(one for one in figures.listed() if (one.paper, one.number) == ("tcp_lp", "Figure 6"))
    (row,) = coverage.formula_rows(figure)
    assert (row.paper, row.status, row.against) == (11.25, "shown", "")
    assert row.ours.mean == pytest.approx(11.25, abs=0.01)
    assert "not a measurement" in row.beside


def test_a_curve_may_be_of_the_second_experiment() -> None:
    curve = figures.Curve("tcp", "background", {"lp": 40.0}, case={"link": "10M"}, experiment="lp_table1_reverse")
    figure = figures.Figure(
        "tcp_lp", "Table 9", "made up", experiment="lp_table1", also="lp_table1_reverse", at="none", curve=[curve]
    )
    documents = {name: made(name, {"tcp": 40.0}) for name in ("lp_table1", "lp_table1_reverse")}
    (row,) = coverage.judge(figure, documents).rows
    assert row.experiment == "lp_table1_reverse"
    figures._refuse(figure, "coverage.toml")
    with pytest.raises(LbeError, match="curve of 'lp_loss': allowed are lp_table1, lp_table1_reverse"):
        figures._refuse(replace(figure, curve=[replace(curve, experiment="lp_loss")]), "coverage.toml")


def test_a_curve_depends_on_what_the_paper_does_not_give_and_so_does_its_trend() -> None:
    case = {"background": "lp"}
    curves = [figures.Curve("tcp", "background", {"lp": 96.8}, case={"link": link}) for link in ("1.5M", "10M")]
    trends = [figures.Trend("tcp", "background", "alone", "lp", False, {"link": link}) for link in ("1.5M", "10M")]
    unknown = figures.Unknown("the rate", "link", ("1.5M", "10M"), metric=("tcp",))
    figure = figures.Figure(
        "tcp_lp",
        "Table 9",
        "made up",
        experiment="lp_table1",
        at="none",
        curve=curves,
        trend=trends,
        unknown=(unknown,),
        near=(figures.Near(1, "made up"),),
    )
    document = made("lp_table1", {"tcp": 100.0})
    for one in document["cases"]:
        if one["case"] == {**one["case"], **case, "link": "10M"}:
            one["metrics"]["tcp"] = [96.8]
    rows = coverage.judge(figure, {"lp_table1": document}).rows
    assert [(row.order, row.against) for row in rows] == [
        (False, ""),
        (False, coverage.UNKNOWN),
        (True, ""),
        (True, coverage.REPRODUCED),
    ]
    assert all("10M fits best" in row.beside for row in rows if not row.against)
