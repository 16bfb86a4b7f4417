# SPDX-License-Identifier: GPL-2.0
"""Verdicts: each kind of check can fail. The report's text equals a stored one. Pictures are drawn."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import LbeError
from testbed.judge import checks
from testbed.measure.summary import summarise
from testbed.present import plots, text
from testbed.results import files as results
from testbed.spec.experiment import Experiment
from testbed.tests.made import TWO_FLOWS, experiment, result_set

GOLDEN = Path(__file__).parent / "logs" / "report.txt"
CHECK = (
    TWO_FLOWS[: TWO_FLOWS.index("[[check]]")]
    + '[[check]]\nmetric = "be"\nwhy = "w"\ncase = { background = "polite" }\n'
)


def status(keys: str, polite: list[float], alone: list[float] | None = None, mode: str = "default") -> list[str]:
    one = experiment(CHECK.replace("runs = 2", f"runs = {len(polite)}") + keys)
    values = {
        "alone": [{"be": value} for value in alone or [9.0] * len(polite)],
        "polite": [{"be": value, "bg": 2 * value} for value in polite],
    }
    return [verdict.status for verdict in checks.judge(one, result_set(one, values, mode))]


@pytest.mark.parametrize(
    ("keys", "good", "bad"),
    [
        ("min = 8", [8.5, 8.5], [7.5, 7.5]),
        ("max = 8", [7.5, 7.5], [8.5, 8.5]),
        ("min = 7\nmax = 8", [7.5], [8.5]),
        # the mean meets the bound, but one run does not
        ("min = 8\neach = true", [8.1, 8.9], [7.9, 9.9]),
        ('min = 95\nof = { background = "alone" }', [8.8, 8.8], [8.4, 8.4]),
        ('min = -0.5\nhow = "difference"\nof = { background = "alone" }', [8.6], [8.4]),
        ('max = 60\nmetric_of = "bg"', [8.0], []),
        ('min = 60\nmetric_of = "bg"', [], [8.0]),
        # a run without a value
        ("min = 8", [8.5], [8.5, math.nan]),
        ("min = 8\neach = true", [8.5], [8.5, math.nan]),
        ("min = 0", [8.5], [math.nan]),
    ],
)
def test_each_kind_of_check_passes_and_fails(keys: str, good: list[float], bad: list[float]) -> None:
    assert not good or status(keys, good) == ["pass"]
    assert not bad or status(keys, bad) == ["fail"]


def test_a_check_beside_ns2(monkeypatch: pytest.MonkeyPatch) -> None:
    one = experiment(CHECK + "ns2 = true\nmin = 95\nmax = 105")
    theirs = result_set(one, {"polite": [{"be": 8.0}, {"be": 10.0}], "alone": [{"be": 1.0}] * 2})
    simulated = checks.Table(theirs.results, theirs.asked_seeds)
    for ours, expected in ((9.1, "pass"), (8.4, "fail"), (9.9, "fail")):
        made = result_set(one, {"alone": [{"be": 9.0}] * 2, "polite": [{"be": ours}] * 2})
        with monkeypatch.context() as patch:
            patch.setattr(checks, "committed_ns2", lambda _: simulated)
            assert [verdict.status for verdict in checks.judge(one, made)] == [expected]
        assert [verdict.status for verdict in checks.judge(one, made)] == ["incomplete"]  # ns-2 has not run


def test_comparisons_are_made_seed_by_seed() -> None:
    # the means are equal, but in each seed the two differ by a fifth or more
    assert status('min = 95\neach = true\nof = { background = "alone" }', [8.0, 10.0], [10.0, 8.0]) == ["fail"]
    assert status('min = 95\nof = { background = "alone" }', [8.0], [0.0]) == ["fail"], "nothing to compare with"


def test_an_older_kernel_has_bounds_of_its_own() -> None:
    one = experiment(CHECK + 'min = 9\nshort = { min = 8.8, why = "shorter" }\n'
                     'older = { before = "6.7", min = 8, why = "it lacks something" }')  # fmt: skip
    made = result_set(one, {"alone": [{"be": 9.0}] * 2, "polite": [{"be": 8.5}] * 2})
    for release, mode, expected in (
        ("6.1.176", "default", ("pass", "it lacks something")), ("6.1.176", "short", ("pass", "it lacks something")),
        ("6.6.0", "default", ("pass", "it lacks something")), ("6.7.0-rc1", "default", ("fail", "w")),
        ("6.12.117", "short", ("fail", "shorter")), ("?", "default", ("fail", "w")),
    ):  # fmt: skip
        on_it = replace(made, mode=mode, provenance={**made.provenance, "kernel": {"release": release}})
        (verdict,) = checks.judge(one, on_it)
        assert (verdict.status, verdict.why) == expected, release
    with pytest.raises(LbeError, match="before is a series"):
        experiment(CHECK + 'min = 9\nolder = { before = "new", min = 8, why = "w" }')


def test_short_form_has_bounds_of_its_own() -> None:
    keys = 'min = 9\nshort = { min = 8, why = "shorter" }'
    assert status(keys, [8.5]) == ["fail"]
    assert status(keys, [8.5], mode="short") == ["pass"]
    assert status(keys, [7.5], mode="short") == ["fail"]
    assert status("min = 9\nshort = false", [1.0], mode="short") == ["shown"]


DIFFERS = 'min = 8\n[[check.differs]]\nmin = 7\nmax = 7.9\nwhy = "today\'s kernel has less"'
ABOVE = 'max = 8\n[[check.differs]]\nmin = 8.1\nmax = 9\nwhy = "today\'s kernel has less"'


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([7.5, 7.5], "differs"),
        ([7.0, 7.0], "differs"),
        ([7.9, 7.9], "differs"),
        ([6.9], "fail"),
        ([0.1], "fail"),
        ([8.5], "fail"),
        ([7.5, math.nan], "fail"),
    ],
)
def test_an_explained_miss_has_a_floor_and_a_ceiling(values: list[float], said: str) -> None:
    assert status(DIFFERS, values) == [said]


@pytest.mark.parametrize(
    ("values", "said"),
    [([9.0, 7.5], "differs"), ([7.0, 7.9], "differs"), ([9.0, 6.9], "fail"), ([9.0, 9.0], "fail")],
)
def test_where_each_run_is_judged_so_is_each_that_misses(values: list[float], said: str) -> None:
    each = DIFFERS.replace("min = 8", "min = 8\neach = true", 1)
    assert status(each, values) == [said]
    # an explanation of single runs of the longer form does not apply to the short form
    assert status(each, values, mode="short") == ["pass" if min(values) >= 8 else "fail"]


def test_an_explanation_says_what_it_says_and_of_its_cases_alone() -> None:
    one = experiment(CHECK.replace("runs = 2", "runs = 1") + DIFFERS)
    made = result_set(one, {"alone": [{"be": 9.0}], "polite": [{"be": 7.5, "bg": 1.0}]})
    assert not checks.failures(checks.judge(one, made))
    words = " ".join(text.text(one, made).split())  # undo the folding of long lines
    assert "0 of 1 bounds met, 1 not reached, as explained" in words
    assert "bound >= 8: w. today's kernel has less" in words
    everywhere = CHECK.replace('case = { background = "polite" }\n', "").replace("runs = 2", "runs = 1")
    of_polite = DIFFERS + '\ncase = { background = "polite" }'
    one = experiment(everywhere + of_polite)
    made = result_set(one, {"alone": [{"be": 7.5}], "polite": [{"be": 7.5, "bg": 1.0}]})
    assert [verdict.status for verdict in checks.judge(one, made)] == ["fail", "differs"]
    # a short run cannot tell whether the range still holds
    assert status(DIFFERS, [7.5], mode="short") == ["shown"]


@pytest.mark.parametrize(
    ("keys", "values", "said"),
    [
        # missed, and the interval contains the bound
        (DIFFERS, [7.1, 7.5, 8.2], "unsettled"),
        # the interval does not reach the bound
        (DIFFERS, [7.4, 7.5, 7.6], "differs"),
        # met, but perhaps by chance: the explanation goes only when the whole interval meets the bound
        (DIFFERS, [7.5, 8.5, 9.5], "unsettled"),
        (DIFFERS, [8.4, 8.5, 8.6], "fail"),
        # missed by less than the range, which contains no such value
        (DIFFERS, [7.8, 7.95, 8.1], "unsettled"),
        (DIFFERS, [7.94, 7.95, 7.96], "fail"),
        # missed by more than the range: red, however wide the interval is
        (DIFFERS, [5.9, 6.9, 7.9], "fail"),
        # the other end of the bound lies in the interval: this says nothing about the explained miss
        (DIFFERS.replace("min = 8", "min = 8\nmax = 10", 1), [9.7, 9.9, 10.1], "fail"),
        (DIFFERS.replace("min = 8", "min = 8\nmax = 10", 1), [7.5, 8.5, 9.5], "unsettled"),
        # the same for an upper bound
        (ABOVE, [8.4, 8.5, 8.6], "differs"),
        (ABOVE, [7.5, 8.5, 9.5], "unsettled"),
        (ABOVE, [7.0, 7.9, 8.8], "unsettled"),
        (ABOVE, [7.4, 7.5, 7.6], "fail"),
        (ABOVE, [7.2, 9.2, 11.2], "fail"),
        # each run is judged by itself: no interval
        (DIFFERS.replace("min = 8", "min = 8\neach = true", 1), [7.1, 7.5, 8.2], "differs"),
    ],
)
def test_an_explained_miss_is_undecided_while_the_interval_contains_the_bound(
    keys: str, values: list[float], said: str
) -> None:
    one = experiment(CHECK.replace("runs = 2", f"runs = {len(values)}") + keys)
    made = result_set(one, {"alone": [{"be": 9.0}] * len(values), "polite": [{"be": v, "bg": 1.0} for v in values]})
    (verdict,) = checks.judge(one, made)
    assert (verdict.status, verdict.red) == (said, said == "fail"), verdict.note
    if said == "unsettled":
        assert verdict.note == "the interval contains the bound, of 3 runs; explained: today's kernel has less"
        page = " ".join(text.text(one, made).split())
        assert "0 of 1 bounds met, 1 undecided (explained): more seeds" in page and "w. the interval contains" in page


def test_an_undecided_explained_miss_says_of_how_many_seeds_it_is() -> None:
    one = experiment(CHECK.replace("runs = 2", "runs = 5") + DIFFERS)
    made = result_set(one, {"alone": [{"be": 9.0}] * 3, "polite": [{"be": v, "bg": 1.0} for v in (7.1, 7.5, 8.2)]})
    (verdict,) = checks.judge(one, made)
    assert verdict.status == "unsettled" and verdict.note.endswith("; 3 of 5 seeds")


@pytest.mark.parametrize("span", ["min = 7\nmax = 8.5", "min = 7.5\nmax = 7"])
def test_a_range_that_explains_what_meets_the_bound_is_refused(span: str) -> None:
    with pytest.raises(LbeError, match="must be a range of values that all miss the bound"):
        experiment(CHECK + f'min = 8\n[[check.differs]]\n{span}\nwhy = "w"')


@pytest.mark.parametrize(
    ("values", "said", "red"),
    [
        ([8.5, 8.6, 8.7], "pass", False),
        ([7.5, 8.5, 9.5], "undecided", False),
        ([6.9, 7.9, 8.9], "undecided", True),
        ([7.5, 7.6, 7.7], "fail", True),
        # a single run has no interval
        ([8.1], "pass", False),
    ],
)
def test_an_interval_that_contains_the_bound_decides_nothing(values: list[float], said: str, red: bool) -> None:
    one = experiment(CHECK.replace("runs = 2", f"runs = {len(values)}") + "min = 8")
    made = result_set(one, {"alone": [{"be": 9.0}] * len(values), "polite": [{"be": v, "bg": 1.0} for v in values]})
    (verdict,) = checks.judge(one, made)
    assert (verdict.status, verdict.red) == (said, red)


@pytest.mark.parametrize(
    ("keys", "values", "said", "note", "red"),
    [
        ("min = 8", [8.5], "few", "1 of 5 seeds, so far: holds", False),
        ("min = 8", [8.5, 8.6, 8.7, 8.6], "few", "4 of 5 seeds, so far: holds", False),
        ("min = 8", [8.5, 8.6, 8.7, 8.6, 8.7], "pass", "", False),
        ("min = 8\neach = true", [8.5], "few", "1 of 5 seeds, so far: holds", False),
        (DIFFERS, [7.5], "few", "1 of 5 seeds, so far: not reached, as explained: today's kernel has less", False),
        # a miss is a miss; what is undecided needs more seeds anyway
        ("min = 8", [7.5], "fail", "1 of 5 seeds", True),
        ("min = 8", [8.5, math.nan], "fail", "no value in 1 of 2 runs; 2 of 5 seeds", True),
        ("min = 8", [7.5, 8.9], "undecided", "the interval contains the bound, of 2 runs; 2 of 5 seeds", False),
        # without a bound nothing is judged
        ('paper = 9\npaper_at = "Table 9"', [8.5], "shown", "", False),
    ],
)
def test_fewer_seeds_than_the_experiment_has_are_a_state_of_its_own(
    keys: str, values: list[float], said: str, note: str, red: bool
) -> None:
    one = experiment(CHECK.replace("runs = 2", "runs = 5") + keys)
    made = result_set(one, {"alone": [{"be": 9.0}] * len(values), "polite": [{"be": v, "bg": 1.0} for v in values]})
    (verdict,) = checks.judge(one, made)
    assert (verdict.status, verdict.note, verdict.red) == (said, note, red)
    if said == "few":
        page = " ".join(text.text(one, made).split())
        assert "0 of 1 bounds met, 1 judged by few seeds" in page and f"few seeds: {len(values)} of 5 seeds" in page


def test_seeds_beyond_the_requested_ones_count_in_the_cases_that_have_them() -> None:
    one = experiment(CHECK.replace("runs = 2", "runs = 3") + "min = 8")
    made = result_set(one, {"polite": [{"be": 8.5, "bg": 1.0}] * 3})
    made.asked_seeds = [1]
    assert [verdict.status for verdict in checks.judge(one, made)] == ["pass"]


def test_a_check_whose_case_was_not_asked_for_is_not_green() -> None:
    one = experiment()
    made = result_set(one, {"alone": [{"be": 9.0}]})
    verdicts = checks.judge(one, made)
    assert {verdict.status for verdict in verdicts} == {"absent"}
    assert checks.is_red(one, made, verdicts) and "NOTHING WAS JUDGED" in text.text(one, made)


def test_what_was_asked_for_and_is_missing_is_incomplete() -> None:
    one = experiment()
    for missing in ("polite", "alone"):
        made = full_set(one)
        made.results = [result for result in made.results if result.case["background"] != missing]
        verdict = checks.judge(one, made)[0]
        assert (verdict.status, verdict.red, verdict.ours.missing) == ("incomplete", True, 2)
        assert checks.is_red(one, made, []) and "INCOMPLETE" in text.text(one, made)
    made = full_set(one)
    made.results = [result for result in made.results if (result.case["background"], result.seed) != ("polite", 2)]
    verdict = checks.judge(one, made)[0]
    assert (verdict.status, verdict.ours.n, verdict.ours.missing) == ("incomplete", 1, 1)
    assert "(1 of 2 runs)" in text.text(one, made)


def test_a_case_that_is_newer_than_the_results_is_neither_held_nor_lost() -> None:
    one = experiment()
    for newer in ("polite", "alone"):  # the case itself, or the one that it is compared with
        made = full_set(one)
        made.results = [result for result in made.results if result.case["background"] != newer]
        made.new_cases = [{"background": newer}]
        verdict = checks.judge(one, made)[0]
        assert (verdict.status, verdict.red) == ("new", False) and verdict not in checks.judged([verdict])
        assert not made.lost() and len(made.missing()) == 2
    made = full_set(one)
    for result in made.results:
        del result.metrics["be"]
    assert checks.judge(one, made)[0].status == "incomplete", "the file is the same: the metric cannot be new"
    made.outgrown = True
    assert checks.judge(one, made)[0].status == "new"
    # a lost run of the other case is red, even if the case compared with is new
    made.results = [result for result in made.results if result.case["background"] != "polite"][1:]
    made.new_cases = [{"background": "polite"}]
    assert len(made.lost()) == 1 and checks.judge(one, made)[0].status == "incomplete"


def full_set(one: Experiment) -> results.ResultSet:
    return result_set(
        one,
        {
            "alone": [{"be": 9.41, "bg": math.nan}, {"be": 9.40, "bg": math.nan}],
            "polite": [{"be": 9.1, "bg": 0.25}, {"be": 8.5, "bg": 0.75}],
            "strict": [{"be": 9.41, "bg": 0.0}, {"be": 9.40, "bg": 0.0}],
        },
    )


def test_text_is_the_stored_one() -> None:
    one = experiment()
    assert text.text(one, full_set(one)) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "words"),
    [([99.81, 99.87], "99.84 ±0.38"), ([0.05, 0.07], "0.0600 ±0.1271"), ([1234.0], "1234"), ([], "-")],
)
def test_an_interval_has_as_many_decimals_as_its_mean(values: list[float], words: str) -> None:
    assert text.interval(summarise(values)) == words


def test_json_has_verdicts_reference_and_intervals() -> None:
    one = experiment()
    document = json.loads(json.dumps(results.plain(text.as_json(one, full_set(one)))))
    first = document["checks"][0]
    assert first["status"] == "undecided" and first["red"] and first["min"] == 95 and first["paper"] == 96.8
    assert first["ours"]["mean"] == pytest.approx((100 * 9.1 / 9.41 + 100 * 8.5 / 9.40) / 2)
    assert first["reference"]["mean"] == pytest.approx(100)
    assert document["cases"][0]["metrics"]["bg"]["mean"] is None


PLOTS = """
[sweep.rate]
key = "topology.rate_mbit"
values = [5, 10]
[[plot]]
name = "a"
kind = "time"
case = { background = "polite", rate = "10" }
[[plot]]
name = "b"
kind = "panels"
case = { rate = "10" }
[[plot]]
name = "c"
kind = "sweep"
x = "rate"
metric = ["be", "bg"]
paper = { TCP = [[5, 4.5], [10, 9]] }
[[plot]]
name = "d"
kind = "bars"
metric = ["be", "bg"]
[[plot]]
name = "e"
kind = "spread"
metric = ["be"]
"""


def test_pictures_of_every_kind_are_drawn_twice_alike(tmp_path: Path) -> None:
    one = experiment(TWO_FLOWS + PLOTS)
    made = full_set(one)
    for result in made.results:
        result.case = {**result.case, "rate": "10"}
    paths = plots.draw(one, made, tmp_path / "a")
    assert sorted(path.name for path in paths) == sorted(
        f"made-{name}.{kind}" for name in ("a-polite-10", "b", "c", "d", "e") for kind in ("png", "svg")
    )
    assert all(path.stat().st_size > 5000 for path in paths)
    for path in plots.draw(one, made, tmp_path / "b"):
        assert path.read_bytes() == (tmp_path / "a" / path.name).read_bytes(), path.name
