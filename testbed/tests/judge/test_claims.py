# SPDX-License-Identifier: GPL-2.0
"""Claims and their numbers: what a claims file may say, and the verdicts that follow from made-up results."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.judge import claims, coverage, figures
from testbed.judge.figures import PAPERS
from testbed.measure.summary import summarise
from testbed.present import claims_page
from testbed.results import digest
from testbed.spec.tables import ExperimentError
from testbed.tests.made_digests import made

NUMBER = claims.Number(
    "TCP beside lp, % of alone",
    "lp_table1",
    "tcp",
    96.8,
    case={"link": "10M", "background": "lp"},
    of={"background": "alone"},
)


def found(number: claims.Number, tcp: float) -> claims.Found:
    document = made("lp_table1", {"tcp": tcp, "lp": 2.7})
    source = figures.Source("lp_table1", number.metric, number.case, number.of)
    summary = coverage.measured(source, {"lp_table1": document})
    return claims.Found(number, summary, summarise([]), *claims.word_of(number, summary))


def test_every_abstract_has_claims_and_every_claim_a_number() -> None:
    have = claims.claims()
    assert {claim.paper for claim in have} == set(PAPERS)
    assert all(claim.number for claim in have)


@pytest.mark.parametrize(
    ("values", "keys", "word"),
    [
        ([96.0, 97.0, 97.4], {}, "reproduced"),
        ([99.0, 99.1, 99.2], {}, "differs"),
        ([99.0, 99.1, 99.2], {"better": "higher"}, "at least as good"),
        ([99.0, 99.1, 99.2], {"better": "lower"}, "differs"),
        ([99.0, 99.1, 99.2], {"near": 5.0, "near_why": "made up"}, "reproduced"),
        # a single run has no interval: only with a tolerance or a better side can it hold
        ([96.8], {}, "differs"),
        ([], {}, "not run"),
    ],
)
def test_a_verdict_follows_from_the_interval(values: list[float], keys: dict[str, Any], word: str) -> None:
    assert claims.word_of(replace(NUMBER, **keys), summarise(values))[0] == word


def test_a_comparison_is_made_seed_by_seed() -> None:
    assert found(NUMBER, 50.0).ours.mean == pytest.approx(100)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"near": 11.0, "near_why": "wide"}, "up to 10"),
        ({"near": 5.0}, "near_why"),
        ({"better": "more"}, "better"),
        ({"metric": "no_such"}, "no metric"),
        ({"case": {"background": "no_such"}}, "no background=no_such"),
    ],
)
def test_what_no_row_may_be(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ExperimentError, match=said):
        claims._refuse(replace(NUMBER, **keys), "claims.toml")


@pytest.mark.parametrize(
    "keys",
    [{"paper": None}, {"paper": None, "order": True}, {"order": True, "min": 90.0}, {"paper": None, "min": 90.0}],
)
def test_a_row_has_the_papers_number_or_an_order(keys: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError, match="give a number of the paper, or order with min or max"):
        claims._refuse(replace(NUMBER, **keys), "claims.toml")


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([101.0, 101.2, 101.4], "reproduced"),
        ([99.0, 99.1, 99.2], "differs"),
        # the interval contains the bound
        ([99.0, 103.0, 101.0], "undecided"),
        ([101.0], "reproduced"),
        ([101.0, math.nan], "differs"),
        ([], "not run"),
    ],
)
def test_an_order_is_reproduced_if_the_whole_interval_is_on_its_side(values: list[float], word: str) -> None:
    order = replace(NUMBER, paper=None, order=True, min=100.0)
    assert claims.word_of(order, summarise(values))[0] == word


@pytest.mark.parametrize(
    ("number", "word"),
    [
        # near with 10M: the parameter decides, which was picked by its outcome
        ({"case": {"link": "10M", "background": "lp"}}, coverage.UNKNOWN),
        ({"case": {"link": "1.5M", "background": "lp"}}, coverage.UNKNOWN),
        ({"paper": 30.0, "case": {"link": "10M", "background": "lp"}}, coverage.DIFFERS),
        # no row of the sweep is better than the paper by its value
        ({"paper": 30.0, "better": "higher", "case": {"link": "10M", "background": "lp"}}, coverage.GOOD),
    ],
)
def test_a_number_that_fits_with_a_value_that_the_paper_does_not_give_is_unknown(
    number: dict[str, Any], word: str
) -> None:
    document = made("lp_table1", {"tcp": 50.0})
    for case in document["cases"]:
        if case["case"]["background"] == "lp" and case["case"]["link"] == "10M":
            case["metrics"]["tcp"] = [48.4]
    unknown = figures.Unknown("the link", "link", ("1.5M", "10M"))
    one = replace(NUMBER, unknown=unknown, near=1.0, near_why="made up", **number)
    said = claims.word_of(one, coverage.measured(one.source, {"lp_table1": document}))
    assert claims.with_unknown(one, said, {"lp_table1": document})[0] == word


def test_a_paper_cell_of_an_order_says_so() -> None:
    order = replace(NUMBER, paper=None, order=True, min=100.0)
    ours = summarise([101.0, 101.2, 101.4])
    line = claims_page._line(claims.Found(order, ours, summarise([]), *claims.word_of(order, ours)), {})
    assert "| order |" in line and "reproduced | >= 100 |" in line


def test_a_claim_without_numbers_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text('[[claim]]\npaper = "tcp_lp"\nsays = "x"\nnumber = []\n', encoding="utf-8")
    monkeypatch.setattr(claims, "DATA", path)
    with pytest.raises(ExperimentError, match="counts for nothing"):
        claims.claims()


def test_the_page_shows_ns2s_number_beside_ours() -> None:
    name = "lp_table1_paper"
    ours, theirs = made(name, {"tcp": 48.0}), made(name, {"tcp": 48.5})
    text = claims_page.text({name: ours, digest.NS2 + name: theirs}, dict.fromkeys(PAPERS, "title"))
    line = next(line for line in text.splitlines() if "ten flows in the other direction, %" in line and "49.7" in line)
    assert "48.5" in line and "48.0" in line and "reproduced" in line
    assert "not run" in text


def test_a_number_that_a_figure_has_too_has_the_figures_verdict_and_reason() -> None:
    """Such a number has no verdict or reason of its own, so that the pages cannot contradict each other."""
    documents = {name: made(name) for name in ("lp_table1_paper", "vulture_onoff", "vulture_fairness", "lowpri_paper")}
    verdicts = [
        coverage.judge(figure, documents)
        for figure in figures.listed()
        if {figure.experiment, figure.also} & set(documents)
    ]
    shared = 0
    for claim, rows in claims.judge(documents):
        for row in rows:
            if row.number.experiment not in documents:
                continue
            twin = claims.of_figure(row.number, claim.paper, verdicts, documents)
            if twin is None:
                continue
            shared += 1
            assert row.word == twin[1].against, row.number.what
            own = (row.number.near, row.number.near_why, row.number.better, row.number.cause)
            assert own == (None, "", "", ""), row.number.what
    assert shared >= 12
    table = next(one for one in verdicts if (one.figure.paper, one.figure.number) == ("vulture", "Table 1"))
    for shown in table.rows:
        if shown.against == coverage.DIFFERS and shown.paper is not None:
            assert claims.as_figure(table.figure, shown) == (coverage.DIFFERS, shown.why)
