# SPDX-License-Identifier: GPL-2.0
"""Coverage, verdicts, scoreboard, forms and pages, tested on made-up results."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import re
import time
import tomllib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.backends.backend import Backend
from testbed.base.errors import LbeError
from testbed.campaign import campaign, command
from testbed.judge import checks, claims, coverage, figures, scoreboard
from testbed.kernels.build import configuration_key
from testbed.measure.summary import summarise
from testbed.present import html_report, markdown, quoting, state, tables
from testbed.results import digest
from testbed.run import identity, runner
from testbed.run import job as jobs
from testbed.spec import experiment as experiments
from testbed.tests.made import TWO_FLOWS, PretendBackend, result_set
from testbed.tests.made import experiment as make_experiment
from testbed.tests.made_digests import all_digests, made

ROOT = Path(__file__).parents[3]

#: every table and figure of the papers that shows measured or computed data. Left out are drawings (topologies,
#: pseudo-code, schematics), lists of parameters and data quoted from other papers.
PAPERS = {
    "lowpri": [*(f"Table {n}" for n in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)), "Figure 3"],
    "vulture": [
        *(f"Figure {n}" for n in (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 19, 20)),
        "Table 1",
        "Table 2",
    ],
    "tcp_lp": ["Table I", *(f"Figure {n}" for n in (6, 8, 10, 11, 12, 13, 14, 15, 17, 18, 20, 21))],
    "ledbat": [f"Figure {n}" for n in (3, 4, 5, 6)],
    "shred": [*(f"Figure {n}" for n in (3, 4, 5, 6, 7, 8)), "Table 1", "Table 2"],
}


@pytest.fixture(scope="module")
def documents() -> digest.Documents:
    return all_digests()


# ------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("paper", PAPERS)
def test_no_table_or_figure_is_missing(paper: str) -> None:
    have = [one.number for one in figures.listed() if one.paper == paper]
    assert sorted(have) == sorted(PAPERS[paper])


def test_every_figure_leads_to_an_experiment_that_speaks_of_it() -> None:
    for figure in figures.listed():
        if figure.cannot:
            continue
        if figure.traced:
            tool = importlib.import_module(command.TOOLS[figure.traced])
            assert figure.finding
            for one in figure.finding:
                (dimension,) = one.case
                variants = experiments.load(tool.PIV if dimension == "rate" else tool.CWND).vary[dimension]
                assert one.case[dimension] in (*variants, "above less below")
            continue
        checks = [
            check
            for name in filter(None, (figure.experiment, figure.also))
            for check in coverage.chosen(figure, experiments.load(name))
        ]
        assert checks or figure.curve, f"{figure.paper} {figure.number}: {figure.experiment} has nothing to compare"


def test_values_of_the_paper_are_of_variants_that_exist() -> None:
    for figure in figures.listed():
        for curve in figure.curve:
            one = experiments.load(curve.experiment or figure.experiment)
            assert curve.metric in one.tables["metric"]
            assert set(curve.paper) <= set(one.vary[curve.over])
            for dimension, wanted in curve.case.items():
                assert set(wanted if isinstance(wanted, list) else [wanted]) <= set(one.vary[dimension])


def figure_of(number: str, paper: str = "shred", **keys: Any) -> figures.Figure:
    return replace(next(one for one in figures.listed() if (one.paper, one.number) == (paper, number)), **keys)


@pytest.mark.parametrize(("jain", "rows", "near"), [(0.995, 30, 20), (0.9, 50, 0)])
def test_verdicts_follow_from_the_results(jain: float, rows: int, near: int) -> None:
    """If the rows of one pair of RED's thresholds are near the paper's, this pair is taken. Else each pair has ten rows
    that differ."""
    figure = figure_of("Table 2", case={"flows": []})
    verdict = coverage.judge(figure, {"shred_tables_paper": made("shred_tables_paper", {"jain": jain})})
    assert verdict.word == "no bound" and len(verdict.compared) == rows
    assert verdict.compared.count(coverage.REPRODUCED) == near


@pytest.mark.parametrize(("tcp", "word"), [(50.0, "holds"), (1.0, "FAILS")])
def test_the_claim_is_the_worst_of_its_rows(tcp: float, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # switch off the explanations that the experiment file gives for misses
    monkeypatch.setattr(checks, "explained", lambda *_: None)
    seeds = experiments.load("lp_table1").runs()
    document = made("lp_table1", {"tcp": 50.0, "lp": 2.7, "idle": 80.0}, seeds) | {"mode": "default"}
    for case in document["cases"]:
        if case["case"]["background"] == "lp":
            case["metrics"]["tcp"] = [tcp] * seeds
    verdict = coverage.judge(figure_of("Table I", "tcp_lp", experiment="lp_table1", also=""), {"lp_table1": document})
    assert verdict.word == word and verdict.red is (word == "FAILS")


def test_few_seeds_are_no_verdict_and_every_page_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "explained", lambda *_: None)
    document = made("lp_table1", {"tcp": 50.0, "lp": 2.7, "idle": 80.0}) | {"mode": "default", "stale": []}
    few = f"1 of {experiments.load('lp_table1').runs()} seeds"
    verdict = coverage.judge(figure_of("Table I", "tcp_lp", experiment="lp_table1", also=""), {"lp_table1": document})
    assert (verdict.word, verdict.held, verdict.red, verdict.seeds) == ("few seeds", 0, False, few)
    shown = markdown.pages({"lp_table1": document})
    bounds = [line for line in shown["checks.md"].splitlines() if line.startswith("| ")]
    rows = [line for line in bounds if f"few seeds: {few}, so far: holds" in line]
    assert rows and f"{len(rows)} rows are of *few seeds*" in shown["checks.md"]
    assert not any(line.endswith("| holds |") for line in bounds)
    for page in ("checks.md", "coverage.md", "experiments.md"):
        assert f"{tables.FORM['default']}, {few}" in shown[page], page
    assert f"| default, {few} |" in shown["coverage.md"] and f"Run with {few} only." in shown["coverage.md"]
    assert f"own lengths, {few}" in html_report.page({"lp_table1": document}, {})


def test_a_claims_number_of_few_seeds_says_how_many() -> None:
    name = claims.claims()[0].number[0].experiment
    document = made(name) | {"mode": "full"}
    wanted = experiments.load(name).runs("full")
    assert wanted > 1 and f" (1 of {wanted} seeds) |" in markdown.pages({name: document})["claims.md"]


def test_a_failing_case_that_is_taken_away_leaves_no_success() -> None:
    document = made("lp_table1", {"tcp": 50.0, "lp": 2.7, "idle": 80.0}) | {"mode": "default"}
    document["cases"] = [case for case in document["cases"] if case["case"]["background"] != "lp"]
    verdict = coverage.judge(figure_of("Table I", "tcp_lp", experiment="lp_table1", also=""), {"lp_table1": document})
    assert verdict.word == "INCOMPLETE" and verdict.red
    assert any("INCOMPLETE" in line for line in state.reds({"lp_table1": document}))


def test_seeds_that_are_missing_leave_no_success() -> None:
    document = made("lp_table1", {"tcp": 50.0, "lp": 2.7, "idle": 80.0}, seeds=3) | {"mode": "default"}
    case = next(case for case in document["cases"] if case["case"]["background"] == "lp")
    case["seeds"] = case["seeds"][:1]
    verdict = coverage.judge(figure_of("Table I", "tcp_lp", experiment="lp_table1", also=""), {"lp_table1": document})
    assert verdict.word == "INCOMPLETE" and state.reds({"lp_table1": document})


def grown() -> digest.Document:
    """Make a digest as it was before its experiment got the cases with lp in the background."""
    document = made("lp_table1", {"tcp": 50.0, "lp": 2.7, "idle": 80.0}) | {"mode": "default"}
    document["cases"] = [case for case in document["cases"] if case["case"]["background"] != "lp"]
    return document | {"asked_cases": [case["case"] for case in document["cases"]]}


def test_a_case_that_was_added_since_is_not_run_yet_and_not_lost() -> None:
    document = grown()
    figure = figure_of("Table I", "tcp_lp", experiment="lp_table1", also="")
    verdict = coverage.judge(figure, {"lp_table1": document})
    assert verdict.word == "not all run" and not verdict.red
    assert not any(row.against for row in verdict.rows if row.status == "new"), "what did not run differs from nothing"
    assert not any("INCOMPLETE" in line for line in state.reds({"lp_table1": document}))
    cases, runs = digest.not_run_yet(document)
    assert cases == runs == len(experiments.load("lp_table1").cases()) - len(document["cases"]) > 0
    # without the list of the cases that were asked for, a missing case cannot be known to be new
    del document["asked_cases"]
    document["stale"] = ["experiment (its file)"]
    assert digest.not_run_yet(document) == (0, 0)
    assert any("INCOMPLETE" in line for line in state.reds({"lp_table1": document}))


def test_the_pages_count_what_is_not_run_yet_and_call_only_the_lost_incomplete() -> None:
    document = grown() | {"stale": []}
    shown = markdown.pages({"lp_table1": document})
    rows = [line for line in shown["checks.md"].splitlines() if line.startswith("|") and "not run yet" in line]
    assert rows and f"{len(rows)} rows are *not run yet*" in shown["checks.md"]
    assert not any("INCOMPLETE" in text for name, text in shown.items() if name.endswith(".md"))
    cases, runs = digest.not_run_yet(document)
    assert f"not run yet: {cases} new cases, {runs} runs" in shown["experiments.md"]
    assert f"| not run yet | {runs} runs of {cases} cases" in shown["README.md"]
    # if no case is new, the pages do not mention new cases
    whole = markdown.pages({"lp_table1": made("lp_table1") | {"stale": []}})
    assert "not run yet" not in whole["checks.md"] + whole["README.md"]


def test_numbers_of_ns2_that_are_lost_are_red(monkeypatch: pytest.MonkeyPatch) -> None:
    document = digest.load(DATA / "data" / "ns2_tcp.json")
    monkeypatch.setattr(checks, "committed_ns2", lambda _: None)
    assert any("INCOMPLETE" in line for line in state.reds({"ns2_tcp": document}))


def test_a_reason_is_given_to_the_rows_that_it_is_of() -> None:
    document = made("lowpri_variants", {"kbytes": 1.0, "variation": 9.0, "total": 1.0})
    figure = figure_of("Table 1", "lowpri", why=(figures.Why("made up", ("variation",)),), unknown=())
    rows = coverage.judge(figure, {"lowpri_variants": document}).rows
    explained = {row.metric for row in rows if row.why}
    assert explained == {"variation"}
    assert any(row.against == coverage.DIFFERS and not row.why for row in rows), "another metric inherits no excuse"


def test_a_cause_counts_where_the_number_follows_it() -> None:
    document = made("lp_table1", {"tcp": 50.0, "lp": 2.7, "idle": 80.0})
    for case in document["cases"]:
        case["metrics"]["lp"] = [7.0 if case["case"]["link"] == "10M" else 2.7]
    here = {"link": "1.5M", "background": "lp", "reverse": "0"}
    figure = figure_of("Table I", "tcp_lp", near=(figures.Near(10, "made up"),))
    row = coverage.row_of(figure, ("lp", "lp", here), 7.3, summarise([2.7, 2.7]), (None, None), ("shown", "", False))
    assert row.against == coverage.DIFFERS
    for link, said in (("10M", coverage.TESTED), ("1.5M", coverage.DIFFERS)):
        why = figures.Why("the link", tested=figures.Source("lp_table1", "lp", {"link": link}))
        assert coverage.explain(replace(figure, why=(why,)), row, {"lp_table1": document}).against == said
    assert coverage.explain(replace(figure, why=(why,)), row, {}).against == coverage.DIFFERS


@pytest.mark.parametrize(
    ("bound", "said"),
    [((5.0, None), coverage.GOOD), ((None, 5.0), coverage.DIFFERS), ((5.0, 20.0), coverage.DIFFERS)],
)
def test_more_than_the_paper_is_good_where_the_bound_has_no_other_side(bound: checks.Limits, said: str) -> None:
    assert coverage.against(7.0, summarise([12.0, 12.1]), 10, coverage.better(bound)) == said


def test_bounds_come_before_nearness() -> None:
    # within its bound (at least 96 %), although far from the paper's number (2.7 %)
    documents = {"lp_table1": made("lp_table1", {"tcp": 50.0, "lp": 2.7})}
    rows = coverage.judge(figure_of("Table I", "tcp_lp"), documents).rows
    kept = next(row for row in rows if "in % of" in row.what and row.rule.startswith(">="))
    assert kept.status == "pass" and kept.ours.mean == pytest.approx(100)


def test_what_was_not_run_is_no_success() -> None:
    assert coverage.judge(figure_of("Table 2"), {}).word == "not run"


def test_what_is_too_short_to_be_judged_is_not_called_not_run() -> None:
    figure = figure_of("Figure 18", "tcp_lp")
    verdict = coverage.judge(figure, {"lp_fig17_hops": made("lp_fig17_hops")})
    assert verdict.word == "not judged" and any("longer runs" in line for line in tables.reasons(verdict))


def test_a_number_that_is_missing_does_not_hold() -> None:
    figure = figure_of("Table 2")
    verdict = coverage.judge(figure, {"shred_tables_paper": made("shred_tables_paper", {"jain": math.nan})})
    assert verdict.compared == [coverage.DIFFERS] * 50


def test_half_a_comparison_is_incomplete() -> None:
    document = made("lp_table1", {"tcp": 50.0, "lp": 2.7})
    document["cases"] = [case for case in document["cases"] if case["case"]["background"] != "alone"]
    rows = coverage.judge(figure_of("Table I", "tcp_lp"), {"lp_table1": document}).rows
    kept = next(row for row in rows if "in % of" in row.what and row.rule.startswith(">="))
    assert kept.status == "incomplete" and kept.red


def bulk(background: list[float]) -> tuple[digest.Document, coverage.FigureVerdict, coverage.Row]:
    """Make lowpri_bulk, with these numbers where a miss is explained, and judge it: document, figure, row."""
    one = experiments.load("lowpri_bulk")
    document = made("lowpri_bulk", {"filler": 100.0, "use": 99.0}, one.runs()) | {"mode": "default"}
    explained = next(check for check in one.checks if check.differs)
    document["cases"] = [
        {**case, "case": mine, "metrics": {name: list(values) for name, values in case["metrics"].items()}}
        for mine, case in zip(one.cases("default"), document["cases"] * 2)
    ]
    for case in document["cases"]:
        if experiments.matches(case["case"], explained.case):
            case["metrics"]["filler"] = (background * one.runs())[: one.runs()]
    verdict = coverage.judge(figure_of("Table 17", "lowpri"), {"lowpri_bulk": document})
    rows = [row for row in verdict.rows if row.case is not None and experiments.matches(row.case, explained.case)]
    return document, verdict, rows[0]


def test_an_explained_miss_that_is_undecided_says_so_in_its_figure_and_on_the_pages() -> None:
    document, verdict, row = bulk([98.0, 104.0])
    assert (row.status, row.red) == ("unsettled", False), row.note
    assert coverage.word_of([row]) == "undecided"
    assert any("the interval contains the bound" in reason for reason in tables.reasons(verdict))
    page = markdown.pages({"lowpri_bulk": document | {"stale": []}})["checks.md"]
    assert "| undecided (explained): more seeds: the interval contains the bound" in page
    rows = [line for line in page.splitlines() if "| undecided" in line]
    assert f"{len(rows)} rows are *undecided*" in page


@pytest.mark.parametrize(("background", "word"), [(100.2, "not reached"), (0.43, "FAILS"), (110.0, "FAILS")])
def test_an_explained_miss_that_leaves_its_range_either_way_is_red(background: float, word: str) -> None:
    _, _, row = bulk([background])
    assert row.status == {"not reached": "differs", "FAILS": "fail"}[word], row.note
    assert row.red is (word == "FAILS")


def test_table_1_is_not_table_10() -> None:
    one = experiments.load("lowpri_battery")
    assert all("Table 1 " not in check.paper_at for check in coverage.chosen(figure_of("Table 10", "lowpri"), one))
    assert not coverage.chosen(replace(figure_of("Table 10", "lowpri"), at="Table 1"), one)


def traced(share: float) -> digest.Document:
    """Make the document of Figures 3 to 5 as the tool that reads the module's trace writes it."""
    cases = [
        {"case": {"of": "vulture_piv", "rate": rate}, "seeds": [1, 2], "jobs": [], "metrics": {"share": values}}
        for rate, values in (("4", [share, share]), ("8", [73.0, None]))
    ]
    return made("vulture_piv") | {"experiment": "vulture_figures", "cases": cases, "asked_seeds": [1, 2]}


@pytest.mark.parametrize(("share", "word"), [(12.0, "holds"), (36.0, "FAILS"), (math.nan, "FAILS")])
def test_what_a_trace_shows_is_judged_like_the_rest(share: float, word: str) -> None:
    documents = {"vulture_figures": traced(share)}
    verdict = coverage.judge(figure_of("Figure 3", "vulture"), documents)
    assert (verdict.word, verdict.judged, verdict.form) == (word, 1, "brief")
    # a figure without a bound is compared with the paper's number; a seed without a value makes it differ
    (row,) = coverage.judge(figure_of("Figure 4", "vulture"), documents).rows
    assert (row.status, row.against, row.ours.n, row.ours.blank) == ("shown", coverage.DIFFERS, 1, 1)
    assert coverage.judge(figure_of("Figure 3", "vulture"), {}).word == "not run"


def test_tools_of_traces_run_where_their_experiments_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool, bool]] = []

    def document(_backend: Backend, runs: int = 5, run: bool = True, reuse: bool = True) -> digest.Document | None:
        asked.append((runs, run, reuse))
        if runs == 5 and run:
            raise LbeError("broken")
        return traced(12.0) if run else None

    tool = SimpleNamespace(PIV="vulture_piv", CWND="vulture_cwnd", RUNS=5, document=document)
    monkeypatch.setattr(importlib, "import_module", lambda _name: tool)
    words = {"out": tmp_path, "fresh": False, "full": False, "cached": False}
    both = ["vulture_piv", "vulture_cwnd"]

    def done(chosen: list[str], **more: bool) -> tuple[list[str], list[str]]:
        asked.clear()
        made, failed = command.traced(chosen, PretendBackend(tmp_path), argparse.Namespace(**words | more))
        return list(made), failed

    assert done(["vulture_piv"]) == ([], []) and not asked
    assert done(both) == (["vulture_figures"], []) and asked == [(5, False, True), (1, True, True)]
    assert (tmp_path / "digests" / "vulture_figures.json").is_file()
    assert done(both, cached=True) == ([], []) and not any(run for _, run, _ in asked)
    assert done(both, fresh=True)[0] and asked == [(1, True, False)]
    assert done(both, full=True) == ([], ["vulture_figures: broken"])


def test_numbers_of_files_of_their_own_are_current_as_long_as_these_are() -> None:
    files = ["testbed/experiments/vulture/vulture_piv.toml", "testbed/campaign/vulture_trace.py"]
    known = identity.of_tree(configuration_key("6.12", "plain"), ["vulture"])
    document = traced(12.0) | {"files": files, "file_sha256": identity.hash_of_files(files), "identity": known}
    assert identity.stale(document, None) == []
    assert identity.stale(document | {"files": files[:1]}, None) == ["tool"]
    assert identity.stale(document | {"files": [*files, "not/there"]}, None) == ["tool"]
    assert identity.stale(document | {"identity": {}}, None) == ["tool"]
    rows = tables.experiment_rows({"vulture_figures": document})
    assert ["vulture_figures", "current", tables.FORM["brief"]] in [row[:3] for row in rows]


# ----------------------------------------------------------------------------------- scoreboard


def test_every_scenario_and_contender_is_run_and_shown() -> None:
    board = scoreboard.load_board()
    for name in ("scoreboard", "scoreboard_aqm"):
        one = experiments.load(name)
        shown = {key for group in board.group if group.experiment == name for key in group.scenarios}
        assert shown == set(one.vary["scenario"])
        assert set(board.contender) == set(one.vary["contender"])
        assert {metric for group in board.group if group.experiment == name for metric in group.metrics} <= set(
            one.tables["metric"]
        )


@pytest.mark.parametrize(
    ("how", "ours", "reference", "distance"),
    [
        ("percent_less", 8.0, 10.0, 20.0),
        ("percent_more", 1.5, 1.0, 50.0),
        ("percent", 2.0, 4.0, 50.0),
        ("less", 0.9, 1.0, 0.1),
        ("more", 120.0, 100.0, 20.0),
    ],
)
def test_distances(how: str, ours: float, reference: float, distance: float) -> None:
    assert scoreboard.apart(how, ours, reference) == pytest.approx(distance)
    assert how in ("less", "more") or math.isnan(scoreboard.apart(how, ours, 0.0))


def test_distances_are_made_seed_by_seed() -> None:
    document = made("scoreboard", {}, seeds=2)
    for case in document["cases"]:
        twice = 2.0 if case["case"]["contender"] == "strict" else 1.0
        case["metrics"]["be"] = [4.0 * twice, 1.0 * twice]
    scores = scoreboard.Scores(scoreboard.load_board(), {"scoreboard": document})
    group = next(one for one in scores.board.group if one.key == "greedy")
    cell = scores.cell(group, "beside_cubic", "lp", "be")
    assert cell.distance.mean == pytest.approx(50) and cell.distance.half == pytest.approx(0)
    assert scores.cell(group, "beside_cubic", "strict", "be").distance.mean == 0


def test_slower_pages_are_a_lost_rate() -> None:
    document = made("scoreboard", {"be": 5.0})
    document["cases"] = [case for case in document["cases"] if case["case"]["scenario"] in ("web", "beside_6mbit")]
    for case in document["cases"]:
        case["metrics"]["page"] = [1.0 if case["case"]["contender"] == "strict" else 4.0]
    scores = scoreboard.Scores(scoreboard.load_board(), {"scoreboard": document})
    web = next(group for group in scores.board.group if group.key == "web")
    assert scores.over(web, "lp", "page") == pytest.approx(300)
    # the rate falls to a quarter in one of two groups; nothing is lost in the other
    assert scores.lost("lp") == pytest.approx((75 + 0) / 2)


def test_no_share_of_a_spare_that_is_not_there() -> None:
    document = made("scoreboard", {"bg": 0.01})
    scores = scoreboard.Scores(scoreboard.load_board(), {"scoreboard": document})
    group = next(one for one in scores.board.group if one.key == "alone")
    assert scores.cell(group, "alone", "lp", "bg").distance.n == 0


def test_a_cell_without_a_number_says_why() -> None:
    document = made("scoreboard")
    for case in document["cases"]:
        if case["case"]["contender"] == "cubic":
            case["metrics"]["yielding"] = case["metrics"]["be"] = [math.nan]
    assert "Strict priority is no limit here" in markdown.scoreboard_page(
        scoreboard.Scores(scoreboard.load_board(), {"scoreboard": document}), ""
    )
    scores = scoreboard.Scores(scoreboard.load_board(), {"scoreboard": document})
    groups = {one.key: one for one in scores.board.group}
    assert tables.nothing(scores, groups["swift"], "cubic") == "never"
    row = next(line for line in markdown.scoreboard_page(scores, "").splitlines() if line.startswith("| cubic |"))
    assert "| - / " in row and "| never |" in row
    document["cases"] = [case for case in document["cases"] if case["case"]["contender"] != "strict"]
    scores = scoreboard.Scores(scores.board, {"scoreboard": document})
    assert tables.nothing(scores, groups["swift"], "cubic") == "strict priority INCOMPLETE"
    assert tables.nothing(scores, groups["swift"], "strict") == "INCOMPLETE"
    document["asked_cases"] = [case["case"] for case in document["cases"]]
    scores = scoreboard.Scores(scores.board, {"scoreboard": document})
    assert tables.nothing(scores, groups["swift"], "cubic") == "strict priority not run"
    assert tables.nothing(scores, groups["swift"], "strict") == "not run"


def test_a_cell_that_lost_a_seed_says_so_everywhere() -> None:
    document = made("scoreboard", seeds=2)
    case = next(one for one in document["cases"] if one["case"] == {"scenario": "beside_cubic", "contender": "lp"})
    case["seeds"] = case["seeds"][:1]
    scores = scoreboard.Scores(scoreboard.load_board(), {"scoreboard": document})
    page = markdown.scoreboard_page(scores, "")
    main = next(line for line in page.splitlines() if line.startswith("| lp |"))
    assert "(2 of 3, INCOMPLETE)" in main
    behind = page[page.index("## Behind each cell") :]
    assert "| lp | INCOMPLETE (" in behind and "| cubic | INCOMPLETE" not in behind
    # its mean over the groups covers fewer scenarios than the other contenders', and the picture says so
    assert "lp (INCOMPLETE)" in tables.trade_off(scores) and "strict (INCOMPLETE)" not in tables.trade_off(scores)


def test_what_was_run_in_part_says_so_and_a_shared_scenario_is_no_run_of_a_group() -> None:
    document = made("scoreboard")
    document["cases"] = [case for case in document["cases"] if case["case"]["scenario"] == "beside_cubic"]
    scores = scoreboard.Scores(scoreboard.load_board(), {"scoreboard": document})
    groups = {one.key: one for one in scores.board.group}
    assert scores.run(groups["greedy"], "lp") == 1
    assert tables.in_part(scores, groups["greedy"], "lp") == " (1 of 3, INCOMPLETE)"
    assert "INCOMPLETE" in tables.nothing(scores, groups["buffer"], "lp")
    document["asked_cases"] = [case["case"] for case in document["cases"]]
    new = scoreboard.Scores(scores.board, {"scoreboard": document})
    assert tables.in_part(new, groups["greedy"], "lp") == " (1 of 3)"
    assert tables.nothing(new, groups["buffer"], "lp") == "not run"
    # beside_cubic is also part of the sweep of buffers, of whose own scenarios none was run
    assert scores.run(groups["buffer"], "lp") == 0
    assert math.isnan(scores.over(groups["buffer"], "lp", "be"))


# --------------------------------------------------------------------------------------- digests


def test_a_digest_comes_back_as_it_was(tmp_path: Path) -> None:
    document = made("lp_table1", seeds=2)
    assert digest.load(digest.save(document, tmp_path)) == document
    assert len(digest.result_set(document).results) == 2 * len(document["cases"])
    (tmp_path / "lp_table1.json").write_text('{"format": 9}')
    with pytest.raises(digest.BadDigest, match="format 9"):
        digest.load(tmp_path / "lp_table1.json")


@pytest.mark.parametrize(
    "where", ["", " --out /tmp/a", " --docs=/tmp/b", " --results /tmp/c", " --dask tcp://10.1.2.3:8786", " --jobs 64"]
)
def test_a_digest_does_not_say_where_its_runs_were_made(where: str) -> None:
    one = make_experiment()
    results = result_set(one, {"alone": [{"be": 9.0}]})
    results.provenance["command"] = f"python3 -m testbed evaluate{where} --minutes 5"
    results.results[0].facts.update(job="0", modules={}, topology=[], sysctls={"snd": {}})
    assert digest.make(results, one)["provenance"]["command"] == "python3 -m testbed evaluate --minutes 5"


def test_of_two_digests_each_case_is_taken_where_it_has_more_runs() -> None:
    mine, other = made("lp_table1", seeds=2), made("lp_table1", {"tcp": 1.0}, seeds=3)
    for one in (mine, other):
        one["identity"] = {"kernel": "k"}
    other["cases"] = other["cases"][:1]
    other["ran"] = {"testbed": ["v2"], "modules": {"tcp_lp": {"version": ["2"]}}}
    both = digest.with_more(mine, other)
    assert [len(case["seeds"]) for case in both["cases"]] == [3] + [2] * (len(mine["cases"]) - 1)
    assert both["cases"][0]["metrics"]["tcp"] == [1.0] * 3
    assert both["ran"] == {"testbed": ["v1", "v2"], "modules": {"tcp_lp": {"version": ["1", "2"]}}}
    # runs of another module, kernel or agent are never combined with these
    assert digest.with_more(mine, other | {"identity": {"kernel": "other"}}) is mine
    of_another_kernel = {"provenance": other["provenance"] | {"kernel": {"release": "7.2.0"}}}
    assert digest.with_more(mine, other | of_another_kernel) is mine
    assert digest.with_more(mine | {"identity": {}}, other | {"identity": {}})["cases"] == mine["cases"]
    part = {**mine, "cases": mine["cases"][1:]}
    assert len(digest.with_more(part, other)["cases"]) == len(mine["cases"])
    # digests of different forms are not combined: one of the two is returned as it is
    assert digest.with_more({**mine, "mode": "default"}, other)["mode"] == "default"
    assert digest.with_more({**part, "cases": part["cases"][:1], "mode": "short"}, other) is other


def current(name: str = "lp_table1") -> digest.Document:
    """Make up a digest with the identity of this tree."""
    one, document = experiments.load(name), made(name)
    for case in document["cases"]:
        job = jobs.make(name, case["case"], 1, one.setting(case["case"], "brief"))
        case["jobs"] = [identity.of_job(job)]
    known = identity.of_tree(configuration_key("6.12", "plain"), ["tcp_lp", "tcp_vegas"])
    return document | {"identity": known}


@pytest.mark.parametrize("part", ["kernel", "boot", "agent", "metrics"])
def test_a_digest_says_which_part_of_its_identity_is_not_today_s(part: str) -> None:
    document = current()
    one = experiments.load("lp_table1")
    assert identity.stale(document, one) == []
    document["identity"] = document["identity"] | {part: "other"}
    assert identity.stale(document, one) == [part]


def test_a_kind_of_metric_with_a_file_of_its_own_makes_only_its_results_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = identity.of_tree("k", [], ["goodput"])
    assert plain == identity.of_tree("k", []), "results of other kinds keep their identity"
    area = identity.of_tree("k", [], ["object_area", "goodput"])
    assert area == plain | {"kinds": area["kinds"]} and list(area["kinds"]) == ["object_area"]
    document, one = current(), experiments.load("lp_table1")
    document["identity"] |= {"kinds": area["kinds"]}
    assert identity.stale(document, one) == []
    (tmp_path / "areas.py").write_text("other = 1\n", encoding="utf-8")
    monkeypatch.setitem(identity.OWN_SOURCES, "object_area", tmp_path / "areas.py")
    assert identity.stale(document, one) == ["metric object_area"]
    assert identity.stale(current(), one) == []


def test_a_digest_is_stale_by_its_modules_and_its_jobs_and_not_by_a_comment() -> None:
    document = current()
    one = experiments.load("lp_table1")
    document["identity"]["modules"]["tcp_lp"] = "other"
    assert identity.stale(document, one) == ["module tcp_lp"]
    document = current()
    document["file_sha256"] = "of a file with other comments, titles and bounds"
    assert identity.stale(document, one) == []
    text = one.path.read_text(encoding="utf-8")
    longer = experiments.parse(text.replace("[experiment]\n", "[experiment]\nsample_ms = 37\n"), one.path)
    count = len(document["cases"])
    assert identity.stale(document, longer) == [f"experiment ({count} of {count} cases)"]
    assert identity.stale(document, None) == ["experiment (gone)"]


def test_a_case_is_stale_if_the_job_of_any_of_its_seeds_is() -> None:
    one, document = experiments.load("lp_table1"), current()
    case = document["cases"][1]
    job = jobs.make("lp_table1", case["case"], 2, one.setting(case["case"], "brief"))
    case |= {"seeds": [1, 2], "jobs": [*case["jobs"], identity.of_job(job)]}
    assert identity.stale(document, one) == []
    case["jobs"][1] = "of another state of the file"
    assert identity.stale(document, one) == [f"experiment (1 of {len(document['cases'])} cases)"]


def test_a_case_that_is_new_makes_a_digest_stale_and_one_that_was_lost_incomplete() -> None:
    one, document = experiments.load("lp_table1"), current()
    asked = [case["case"] for case in document["cases"]]
    document["cases"] = document["cases"][1:]
    assert identity.stale(document | {"asked_cases": asked}, one) == []
    assert identity.stale(document | {"asked_cases": asked[1:]}, one) == ["experiment (1 new case)"]
    assert identity.stale(document | {"file_sha256": "of another file"}, one) == []

    def lost(asked: list[experiments.Case]) -> list[str]:
        marked = state.mark_stale({"lp_table1": document | {"mode": "default", "asked_cases": asked}})
        return [line for line in state.reds(marked) if "INCOMPLETE" in line]

    assert not lost(asked[1:]), "what is new was not asked for"
    assert len(lost(asked[:-1])) == 1, "what was lost is red beside what is new"


# ----------------------------------------------------------------------------------------- texts


def test_references_in_the_texts_lead_to_metrics_and_variants() -> None:
    texts = tomllib.loads(quoting.TEXTS.read_text(encoding="utf-8"))
    assert set(texts) == set(figures.PAPERS)
    for paper in texts.values():
        # the suite's numbers are not typed but referred to, in [[ ]]; numbers typed in the text are the paper's
        found = re.findall(r"\[\[(.+?)\]\]", paper["text"])
        assert found
        for words in found:
            name, metric, *pairs = words.split()
            one = experiments.load(name)
            assert metric in one.tables["metric"], words
            for pair in pairs:
                if pair != "of":
                    dimension, variant = pair.split("=")
                    assert variant in one.vary[dimension], words


def test_quotes() -> None:
    documents = {"lp_table1": made("lp_table1", {"tcp": 40.0})}
    assert quoting.quote("lp_table1 tcp link=10M background=lp", documents) == "40.00"
    assert quoting.quote("lp_table1 tcp link=10M background=lp of background=alone", documents) == "100.0"
    assert quoting.quote("lp_table1 tcp link=10M", {}) == "(not run)"
    lost = {**documents["lp_table1"], "cases": documents["lp_table1"]["cases"][:1]}
    gone = "lp_table1 tcp " + " ".join("=".join(item) for item in documents["lp_table1"]["cases"][-1]["case"].items())
    assert quoting.quote(gone, {"lp_table1": lost}) == "(incomplete)"
    assert quoting.quote(gone, {"lp_table1": lost | {"asked_cases": [lost["cases"][0]["case"]]}}) == "(not run)"
    one = experiments.load("lp_table1")
    part = made("lp_table1", {"tcp": 40.0}, seeds=2)
    for case in part["cases"]:
        case["seeds"] = case["seeds"][:1]
    assert len(one.cases("brief")) == len(part["cases"])
    assert quoting.quote("lp_table1 tcp link=10M background=lp", {"lp_table1": part}) == "(incomplete)"
    assert "INCOMPLETE: lp_table1" in dict(quoting.papers({"lp_table1": part}))["tcp_lp"][1]
    with pytest.raises(LbeError, match="no metric 'nothing'"):
        quoting.quote("lp_table1 nothing", documents)


def test_a_paragraph_without_its_numbers_claims_nothing() -> None:
    text = dict(quoting.papers({}))["tcp_lp"][1]
    assert text.splitlines()[0] == "Not run for this state of the pages: lp_table1."
    assert "greedy Reno" not in text


def test_a_paragraph_of_short_runs_says_so() -> None:
    document = made("lp_table1")
    text = dict(quoting.papers({"lp_table1": document}))["tcp_lp"][1]
    assert "(From short runs only: lp_table1.)" in text.split("\n\n")[0]
    text = dict(quoting.papers({"lp_table1": {**document, "mode": "default"}}))["tcp_lp"][1]
    assert "short runs" not in text


def test_result_files_of_run_are_taken_if_their_experiment_is_as_it_was(
    name: str, backend: PretendBackend, tmp_path: Path
) -> None:
    run_all(name, backend, tmp_path / "out")
    # the tree has no experiment of this name, so the file is no result of the suite
    assert command.found_in([tmp_path / "out"]) == {}
    document = digest.load(tmp_path / "out" / "digests" / "made.json")
    assert document["provenance"]["command"] == "run"


DATA = ROOT / "Documentation" / "results"


@pytest.fixture(scope="module")
def committed() -> digest.Documents:
    return digest.load_all(DATA / "data")


def test_the_committed_pages_are_what_the_committed_runs_say(committed: digest.Documents) -> None:
    """Equal byte for byte. Staleness is as of the pages' making; `evaluate --check` tells what is stale today."""
    assert committed
    for name, text in markdown.pages(committed).items():
        assert (DATA / name).read_text(encoding="utf-8") == text, f"{name}: python3 -m testbed evaluate --pages"


def test_no_committed_result_is_red(committed: digest.Documents) -> None:
    """Every experiment, in its committed form, meets each bound or explains the miss, with a range for it."""
    red = state.reds(state.mark_stale(committed))
    assert not red, "\n".join(red)


def absent(documents: digest.Documents) -> list[str]:
    """The experiments that have no document at all, one line each."""
    return [f"{name}: INCOMPLETE: no result" for name in sorted(experiments.names()) if name not in documents]


def test_each_experiment_has_a_committed_result(committed: digest.Documents) -> None:
    """A red result does not become green by being deleted."""
    assert not absent(committed), "\n".join(absent(committed))
    gone = {name: document for name, document in committed.items() if name != "lp_table1"}
    assert absent(gone) == ["lp_table1: INCOMPLETE: no result"]


def test_a_committed_result_that_gets_worse_is_red(committed: digest.Documents) -> None:
    """The test above can fail: it does when a figure misses its bound and when a case is lost."""
    worse = json.loads(json.dumps(committed))
    for case in worse["lp_table1"]["cases"]:
        if case["case"]["background"] == "lp":
            case["metrics"]["tcp"] = [value / 2 for value in case["metrics"]["tcp"]]
    worse["demo"]["cases"] = worse["demo"]["cases"][1:]
    for document in worse.values():
        document["stale"] = []
    red = state.reds(worse)
    assert any(line.startswith("lp_table1: ") and "FAILS" in line for line in red)
    assert any(line.startswith("demo: INCOMPLETE") for line in red)


def halved(document: digest.Document) -> digest.Document:
    """Return a copy of a digest in which every metric is halved."""
    worse: digest.Document = json.loads(json.dumps(document))
    for case in worse["cases"]:
        case["metrics"] = {name: [value and value / 2 for value in values] for name, values in case["metrics"].items()}
    return worse


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("nothing", "1 results, 0 stale, 0 red, 0 runs not run yet"),
        ("numbers", "FAILS"),
        ("a run", "INCOMPLETE"),
        ("a new case", "NOT RUN YET lp_alone: 1 new cases"),
        ("seeds", "FEW SEEDS lp_alone: 1 of"),
        ("a page", "is not what its data say"),
    ],
)
def test_the_status_of_check_is_one_for_what_is_red(
    committed: digest.Documents,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    spoil: str,
    said: str,
) -> None:
    good = committed["lp_alone"]
    short = good | {"cases": good["cases"][1:]}
    new = short | {"asked_cases": [case["case"] for case in short["cases"]]}
    few = good | {
        "asked_seeds": [1],
        "cases": [
            case | {"seeds": [1], "metrics": {name: values[:1] for name, values in case["metrics"].items()}}
            for case in good["cases"]
        ],
    }
    every = {"nothing": good, "numbers": halved(good), "a run": short, "a new case": new, "a page": good, "seeds": few}
    kept = every[spoil]
    monkeypatch.setattr(identity, "stale", lambda *_: [])
    markdown.write(state.mark_stale({"lp_alone": kept}), tmp_path)
    if spoil == "a page":
        (tmp_path / "checks.md").write_text("all is well\n", encoding="utf-8")
    assert command.check(tmp_path / "out", tmp_path) == int(spoil not in ("nothing", "a new case", "seeds"))
    printed = capsys.readouterr().out
    assert said in printed
    seeds = len(good["asked_seeds"])
    waiting = seeds if spoil == "a new case" else 0
    assert printed.splitlines()[-1].endswith(f" red, {waiting} runs not run yet")


@pytest.mark.parametrize(("document", "status"), [("good", 0), ("bad", 1)])
def test_the_status_of_pages_is_one_for_what_is_red(
    committed: digest.Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: str, status: int
) -> None:
    monkeypatch.setattr(command, "write", lambda documents, out, docs: 0)
    good = committed["lp_alone"]
    digest.save(good if document == "good" else halved(good), tmp_path / "data")
    args = argparse.Namespace(out=tmp_path / "out", docs=tmp_path, results=[])
    assert command.make_pages(args) == status


def test_a_bound_that_a_rival_meets_is_red_unless_it_says_why(committed: digest.Documents) -> None:
    kept = json.loads(json.dumps(committed["lp_beside_6mbit"]))
    for case in kept["cases"]:
        if case["case"]["background"] == "cubic":
            case["metrics"]["be"] = [6.0] * len(case["seeds"])
    red = state.reds({"lp_beside_6mbit": kept})
    assert any("cubic 100 meets it too" in line for line in red), red
    assert not any("meets it too" in line for line in state.reds({"lp_beside_6mbit": committed["lp_beside_6mbit"]}))


def test_pages_delete_nothing(tmp_path: Path, documents: digest.Documents) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "of_old.json").write_text("{}")
    markdown.write({"lp_table1": documents["lp_table1"]}, tmp_path)
    assert (tmp_path / "data" / "of_old.json").is_file()


def test_a_stale_result_says_so_and_keeps_its_numbers() -> None:
    document = current() | {"stale": ["module tcp_lp"]}
    shown = markdown.pages({"lp_table1": document})
    assert "STALE: module tcp_lp" in shown["experiments.md"]
    assert "since then changed: module tcp_lp" in shown["coverage.md"] and ", STALE" in shown["coverage.md"]
    assert "0 current, 1 stale" in shown["README.md"]
    (row,) = [line for line in shown["coverage.md"].splitlines() if line.startswith("| Table I |")]
    assert "STALE" in row


def test_of_two_results_the_current_one_of_its_own_length_is_shown() -> None:
    old, new = current() | {"mode": "default", "stale": ["kernel"]}, current() | {"mode": "default", "stale": []}
    short = current() | {"mode": "short", "stale": []}
    assert command.better({"x": old}, {"x": new})["x"] is new and command.better({"x": new}, {"x": old})["x"] is new
    assert command.better({"x": old}, {"x": short})["x"] is old, "a longer run's numbers stay, marked"


# ----------------------------------------------------------------------------------------- pages


def test_the_page_needs_no_other_file(documents: digest.Documents) -> None:
    text = html_report.page(documents, {})
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "<script src" not in text and "@import" not in text
    # every cell of the table leads to its numbers
    targets = set(re.findall(r' id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= targets


def test_a_column_without_loss_is_sorted_by_use(documents: digest.Documents) -> None:
    cells = re.findall(r'href="#alone-(\w+)" data-sort="([^"]+)"', html_report.page(documents, {}))
    assert len(cells) == 13 and dict(cells)["strict"] == "100.000" and len({value for _, value in cells}) > 6


def test_markdown_is_made_of_the_same(documents: digest.Documents, tmp_path: Path) -> None:
    paths = markdown.write(documents, tmp_path)
    assert {path.name for path in paths if path.suffix == ".md"} == {
        "README.md",
        "claims.md",
        "coverage.md",
        "checks.md",
        "scoreboard.md",
        "experiments.md",
    }
    for figure in figures.listed():
        assert f"### {figure.number}: " in (tmp_path / "coverage.md").read_text()
    again = {path: path.read_bytes() for path in paths}
    markdown.write(digest.load_all(tmp_path / "data"), tmp_path)
    assert {path: path.read_bytes() for path in paths} == again


# ----------------------------------------------------------------------------------------- forms


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendBackend:
    monkeypatch.setenv("LBE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "agent").write_bytes(b"agent")
    return PretendBackend(tmp_path / "agent")


FORMS = """
[short]
runs = 1
set = { "experiment.duration_s" = 12, "experiment.measure_s" = [10, 12] }
vary = { background = ["polite"] }
[full]
runs = 4
"""


@pytest.fixture
def name(tmp_path: Path) -> str:
    """Write an experiment that has all forms and needs no module; return its path."""
    path = tmp_path / "made.toml"
    path.write_text(TWO_FLOWS + FORMS)
    return str(path)


def run_all(
    name: str, backend: PretendBackend, out: Path, forms: tuple[tuple[str, int | None], ...] = campaign.FORMS
) -> campaign.CampaignOutcome:
    """Run a campaign without a time limit, then write its files."""
    parts, failed = campaign.spend(campaign.ladders_of([name], backend, forms), backend, math.inf, 2)
    return campaign.carry_out(parts, backend, out, "run --out x", failed, draw=False)


def form(name: str, backend: PretendBackend, cpu_s: float, **keys: Any) -> tuple[str, int]:
    (part,) = campaign.choose([name], backend, cpu_s, **keys)
    return part.mode, len(part.jobs)


def test_no_time_is_the_cheapest_form_and_much_time_the_longest(name: str, backend: PretendBackend) -> None:
    assert form(name, backend, 0) == ("short", 1)
    assert form(name, backend, 1e9) == ("default", 6)
    assert form(name, backend, 1e9, forms=campaign.FULL) == ("full", 12)


def test_more_time_buys_longer_forms_and_what_is_planned_fits(name: str, backend: PretendBackend) -> None:
    (least,) = campaign.choose([name], backend, 0)
    seen = []
    for seconds in (least.cost_s, 2 * least.cost_s, 3 * least.cost_s, 4 * least.cost_s, 8 * least.cost_s):
        (part,) = campaign.choose([name], backend, seconds)
        assert part.cost_s <= seconds
        seen.append((len(part.jobs), part.jobs[0].setting.head.duration_s))
    assert seen == sorted(seen) and len(set(seen)) > 2


def test_what_the_cache_has_costs_nothing(name: str, backend: PretendBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "is_cached", lambda key: True)
    assert form(name, backend, 0) == ("default", 6)
    assert form(name, backend, 0, reuse=False) == ("short", 1)


def test_a_campaign_runs_saves_and_goes_on_from_there(name: str, backend: PretendBackend, tmp_path: Path) -> None:
    assert not run_all(name, backend, tmp_path / "out").failed
    assert set(campaign.load_saved(tmp_path / "out")) == {"made"}
    assert campaign.choose([name], backend, 0)[0].cost_s == 0
    assert campaign.choose([name], backend, 0, reuse=False)[0].cost_s > 0


def test_what_was_run_is_found_without_running(name: str, backend: PretendBackend, tmp_path: Path) -> None:
    assert campaign.from_cache([name], backend) == []
    run_all(name, backend, tmp_path / "out", forms=campaign.FORMS[:1])
    assert [part.mode for part in campaign.from_cache([name], backend)] == ["short"]


def test_of_what_is_there_most_cases_are_taken(name: str, backend: PretendBackend) -> None:
    ladders = campaign.ladders_of([name], backend)
    short, _, _, default = ladders[0]
    (best,) = campaign.best_of(ladders, {*short.keys, *default.keys[:2]})
    assert (best.mode, len(best.jobs), best.wanted) == ("short", 1, 1), "one case of three is no more than that"
    (best,) = campaign.best_of(ladders, {*short.keys, *default.keys[:4]})
    assert (best.mode, len(best.jobs), best.wanted) == ("default", 4, 6)


class Slow:
    """Does the runs one after the other; each advances a simulated clock by ``seconds``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, stop_after: int | None = None) -> None:
        self.now, self.seconds, self.stop_after, self.done = 0.0, seconds, stop_after, 0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def __call__(
        self, tasks: list[runner.Task], backend: Backend, count: int
    ) -> Generator[runner.Finished, None, None]:
        for task in tasks:
            if self.done == self.stop_after:
                raise KeyboardInterrupt
            self.now += self.seconds
            self.done += 1
            yield task.index, runner.run_one(task.job, backend), None


def test_a_slow_machine_ends_in_time_with_shorter_forms(
    name: str, backend: PretendBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    # from the planned 0.8 s for a run of the short form, the default form should take less than 60 s; it takes 600
    slow = Slow(monkeypatch, 100.0)
    ladders = campaign.ladders_of([name], backend)
    assert campaign.pick(ladders, set(), 60.0)[0].mode == "default"
    (part,), failed = campaign.spend(ladders, backend, 60.0, 1, slow)
    assert slow.done == 1 and not failed
    assert part.mode == "brief" or len(part.jobs) < part.wanted


def test_a_fast_machine_has_it_all(name: str, backend: PretendBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Slow(monkeypatch, 0.01)
    (part,), _ = campaign.spend(campaign.ladders_of([name], backend), backend, 60.0, 1, fast)
    assert (part.mode, len(part.jobs), fast.done) == ("default", 6, 6)


def test_after_ctrl_c_the_same_command_goes_on(
    name: str, backend: PretendBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    ladders = campaign.ladders_of([name], backend)
    with pytest.raises(KeyboardInterrupt):
        campaign.spend(ladders, backend, 60.0, 1, Slow(monkeypatch, 0.01, stop_after=4))
    again = Slow(monkeypatch, 0.01)
    (part,), _ = campaign.spend(ladders, backend, 60.0, 1, again)
    assert again.done == 2 and len(part.jobs) == 6


def test_what_is_run_first_can_be_compared() -> None:
    one = experiments.load("scoreboard")
    jobs = runner.plan(one, runner.Options("default", 2))
    part = campaign.PlannedForm(one, "default", 2, jobs, [str(index) for index in range(len(jobs))])
    todo = campaign._in_order([part], [[part]], set())
    first = [job.case for job in list(todo.values())[:12]]
    assert len({case["contender"] for case in first}) == 12 and len({case["scenario"] for case in first}) == 1


def test_a_failed_run_is_told_and_makes_no_page(name: str, backend: PretendBackend, tmp_path: Path) -> None:
    def spoil(out: Path) -> None:
        raise LbeError("broken")

    backend.spoil = spoil
    outcome = run_all(name, backend, tmp_path / "out")
    assert len(outcome.failed) == 6 and "broken" in outcome.failed[0][1]
    assert outcome.documents == {}


def test_a_long_run_costs_more(backend: PretendBackend) -> None:
    jobs = runner.plan(experiments.load("scoreboard"), runner.Options("default"))
    cost = {job.case["scenario"]: campaign.cost_s(job) for job in jobs}
    assert cost["rate_1000"] > cost["beside_cubic"] > cost["rate_1"] > 0.5
