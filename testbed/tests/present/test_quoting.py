# SPDX-License-Identifier: GPL-2.0
"""Numbers quoted in written pages are those of the results."""

from __future__ import annotations

import copy
import dataclasses
import re
from pathlib import Path

import pytest

from testbed.base.errors import LbeError
from testbed.base.places import REPO
from testbed.judge import checks, figures
from testbed.present import quoting
from testbed.results import digest
from testbed.spec import experiment as experiments
from testbed.tests.made_digests import made

RESULTS = REPO / "Documentation" / "results"
DOCUMENTS = {"demo": made("demo")}


def a_metric() -> str:
    return str(next(iter(DOCUMENTS["demo"]["cases"][0]["metrics"])))


def words() -> str:
    case = DOCUMENTS["demo"]["cases"][0]["case"]
    return " ".join(["demo", a_metric(), *(f"{key}={value}" for key, value in case.items())])


def test_the_trees_pages_quote_what_the_results_say() -> None:
    differ = quoting.differing(digest.load_all(RESULTS / "data"))
    assert not differ, f"python3 -m testbed evaluate --pages makes them anew: {', '.join(map(str, differ))}"


def test_a_quote_is_filled_and_another_number_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"so <!--= {words()} -->9999<!--/--> it is\n")
    (tmp_path / "Documentation").mkdir()
    assert quoting.differing(DOCUMENTS, tmp_path), "a wrong number was not seen"
    assert quoting.write(DOCUMENTS, tmp_path) == [page]
    assert "9999" not in page.read_text() and re.search(r"-->[\d.]+", page.read_text())
    assert not quoting.differing(DOCUMENTS, tmp_path), "the second time nothing changes"


def test_a_number_of_a_stale_result_has_an_asterisk_and_a_missing_one_says_so() -> None:
    old = {"demo": {**DOCUMENTS["demo"], "stale": ["module tcp_lp"]}}
    assert quoting.said(words(), old).endswith("*")
    assert not quoting.said(words(), DOCUMENTS).endswith("*")
    assert quoting.said("nowhere metric", DOCUMENTS) == "(not run)"


def test_a_metric_that_is_newer_than_the_results_is_not_run_and_one_of_no_experiment_is_refused() -> None:
    document = copy.deepcopy(DOCUMENTS["demo"])
    for case in document["cases"]:
        del case["metrics"][a_metric()]
    assert quoting.said(words(), {"demo": document}) == "(not run)"
    with pytest.raises(LbeError, match="no metric 'no_such'"):
        quoting.said("demo no_such", {"demo": document})


def test_a_number_of_fewer_seeds_than_the_experiment_has_says_how_many() -> None:
    wanted = experiments.load("lp_table1").runs()
    assert wanted > 2
    few = {"lp_table1": made("lp_table1", {"tcp": 40.0}, seeds=2) | {"mode": "default"}}
    assert quoting.said("lp_table1 tcp link=10M background=lp", few) == f"40.00 ±0.00 (2 of {wanted} seeds)"
    assert quoting.said("lp_table1 @commit", few) == "v1", "versions are those of all runs"
    assert quoting.said("lp_table1 @seconds", few) == "a time that is not recorded"
    assert quoting.said("lp_table1 @seconds", {"lp_table1": few["lp_table1"] | {"seconds": 432}}) == "432 s"
    few["lp_table1"]["stale"] = ["module tcp_lp"]
    assert quoting.said("lp_table1 tcp link=10M background=lp", few) == f"40.00 ±0.00* (2 of {wanted} seeds)"
    page = "<!--table lp_table1 by background link=10M\ntcp | %\n-->\n<!--/table-->\n"
    assert f"| %* (2 of {wanted} seeds) |" in quoting.filled(page, few, "page.md")
    assert f"(From few seeds: lp_table1, 2 of {wanted} seeds.)" in quoting.papers(few)["tcp_lp"][1]
    # more seeds than the requested ones count, and a lost run is incomplete instead
    more = made("lp_table1", {"tcp": 40.0}, seeds=wanted) | {"mode": "default", "asked_seeds": [1]}
    assert quoting.said("lp_table1 tcp link=10M background=lp", {"lp_table1": more}) == "40.00 ±0.00"
    lost = made("lp_table1", {"tcp": 40.0}, seeds=wanted) | {"mode": "default"}
    for case in lost["cases"]:
        case["seeds"] = case["seeds"][:1]
    assert quoting.said("lp_table1 tcp link=10M background=lp", {"lp_table1": lost}) == "(incomplete)"


def test_a_quote_without_an_end_or_of_nothing_is_refused() -> None:
    with pytest.raises(LbeError, match=r"page\.md: a quote"):
        quoting.filled(f"<!--= {words()} -->1.0", DOCUMENTS, "page.md")
    with pytest.raises(LbeError, match=r"page\.md: .*no metric 'altitude'"):
        quoting.filled("<!--= demo altitude -->1.0<!--/-->", DOCUMENTS, "page.md")


TABLE = "<!--table demo by background\n{column} | Mbit/s\n-->\n{said}<!--/table-->\n"


def test_a_table_has_a_row_for_each_variant_and_its_numbers_are_the_quotes() -> None:
    page = TABLE.format(column=a_metric(), said="| 9999 |\n")
    made_new = quoting.filled(page, DOCUMENTS, "page.md")
    variants = [case["case"]["background"] for case in DOCUMENTS["demo"]["cases"]]
    rows = [line.split(" | ") for line in made_new.splitlines() if line.startswith("| ")]
    assert [row[0].strip("| ") for row in rows] == ["background", *variants] and "9999" not in made_new
    for row, variant in zip(rows[1:], variants):
        assert row[1].strip("| ") == quoting.said(f"demo {a_metric()} background={variant}", DOCUMENTS)
    assert quoting.filled(made_new, DOCUMENTS, "page.md") == made_new, "the second time nothing changes"


def test_a_tables_column_compares_with_another_case() -> None:
    page = quoting.filled(TABLE.format(column=f"{a_metric()} of background=cubic", said=""), DOCUMENTS, "page.md")
    assert re.search(r"\| cubic \| 100\.0 ", page)


def test_a_quote_gives_the_part_of_the_way_from_one_case_to_another() -> None:
    demo = {**DOCUMENTS["demo"], "cases": copy.deepcopy(DOCUMENTS["demo"]["cases"])}
    first, between, last, *_ = (case["case"]["background"] for case in demo["cases"])
    for case, value in zip(demo["cases"], (8.0, 6.0, 4.0)):
        case["metrics"][a_metric()] = [value]
    way = f"from background={first} to background={last}"
    for variant, part in ((first, "0.00"), (between, "50.00"), (last, "100.0")):
        assert quoting.said(f"demo {a_metric()} background={variant} {way}", {"demo": demo}) == part
    demo["cases"][2]["metrics"][a_metric()] = [8.0]
    assert quoting.said(f"demo {a_metric()} background={between} {way}", {"demo": demo}) == quoting.NO_VALUE


@pytest.mark.parametrize("other", ["from background=lp", "to background=lp", "of background=lp to background=lp"])
def test_a_quote_with_half_a_way_is_refused(other: str) -> None:
    with pytest.raises(LbeError, match="from dim=variant"):
        quoting.said(f"demo {a_metric()} background=cubic {other}", DOCUMENTS)


def test_missed_bounds_are_listed_with_their_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "<!--missed demo-->\n9999\n<!--/missed-->\n"
    verdicts = checks.judge(digest.experiment_of(DOCUMENTS["demo"]), digest.result_set(DOCUMENTS["demo"]))
    one = next(verdict for verdict in verdicts if verdict.case)
    missed = dataclasses.replace(one, status="differs", note="a cause | of some kind")
    monkeypatch.setattr(checks, "judge", lambda *_: [missed, *verdicts])
    listed = quoting.filled(page, DOCUMENTS, "page.md")
    assert "9999" not in listed and "| a cause \\| of some kind |" in listed
    assert len([line for line in listed.splitlines() if line.startswith("| `demo`")]) == 1
    assert quoting.filled(listed, DOCUMENTS, "page.md") == listed, "the second time nothing changes"
    perhaps = dataclasses.replace(one, status="unsettled", note="the interval contains the bound")
    monkeypatch.setattr(checks, "judge", lambda *_: [perhaps, *verdicts])
    listed = quoting.filled(page, DOCUMENTS, "page.md")
    assert "| undecided: the interval contains the bound |" in listed
    monkeypatch.setattr(checks, "judge", lambda *_: verdicts)
    assert "None." in quoting.filled(page, DOCUMENTS, "page.md")
    assert "(not run): demo" in quoting.filled(page, {}, "page.md")
    with pytest.raises(LbeError, match="has no end"):
        quoting.filled("<!--missed demo-->\n", DOCUMENTS, "page.md")


def test_a_table_of_a_stale_result_says_so_and_one_of_none_too() -> None:
    page = TABLE.format(column=a_metric(), said="")
    old = {"demo": {**DOCUMENTS["demo"], "stale": ["module tcp_lp"]}}
    assert "| Mbit/s* |" in quoting.filled(page, old, "page.md")
    assert "(not run)" in quoting.filled(page, {}, "page.md")


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("<!--table demo by background\nbg | x\n-->\n", "has no end"),
        ("<!--table demo by altitude\nbg | x\n-->\n<!--/table-->", "no dimension 'altitude'"),
        ("<!--table demo by background\naltitude | x\n-->\n<!--/table-->", "no metric 'altitude'"),
        ("<!--table demo\nbg | x\n-->\n<!--/table-->", "expected EXPERIMENT by"),
        ("<!--table demo by background\nbg\n-->\n<!--/table-->", "expected EXPERIMENT by"),
    ],
)
def test_a_table_without_an_end_or_of_nothing_is_refused(page: str, says: str) -> None:
    with pytest.raises(LbeError, match=says):
        quoting.filled(page, DOCUMENTS, "page.md")


def test_the_readmes_tables_have_no_typed_decimals() -> None:
    text = (REPO / "README.md").read_text(encoding="utf-8")
    for line in quoting.TABLE.sub("", text).splitlines():  # the lines of a table directive are made from results
        if line.startswith("|"):
            typed = re.findall(r"\d+\.\d+", re.sub(r"`[^`]*`|\b[67]\.\d+\b", "", quoting.QUOTE.sub("", line)))
            assert not typed, f"typed, not quoted: {typed} in {line}"


def test_the_figures_by_verdict_are_all_of_them_and_each_once() -> None:
    page = "<!--figures-->\nold\n<!--/figures-->\n"
    text = quoting.filled(page, {"ledbat_windows": made("ledbat_windows")}, "page.md")
    assert "old" not in text and quoting.filled(text, {"ledbat_windows": made("ledbat_windows")}, "page.md") == text
    counts = {row.split(" | ")[0].strip("| "): int(row.split(" | ")[1]) for row in text.splitlines()[3:-1]}
    assert counts.pop("all") == sum(counts.values()) == len(figures.listed())
    (line,) = (row for row in text.splitlines() if row.startswith("| no number |"))
    assert "tcp_lp: Table I, Figure 6" in line
