# SPDX-License-Identifier: GPL-2.0
"""Numbers in written pages are those of the results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.base.errors import LbeError
from testbed.base.places import REPO
from testbed.present import quoting
from testbed.results import digest
from testbed.tests.made_digests import made

RESULTS = REPO / "Documentation" / "results"
DOCUMENTS = {"demo": made("demo")}


def a_metric() -> str:
    return next(iter(DOCUMENTS["demo"]["cases"][0]["metrics"]))


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


def test_a_quote_without_an_end_or_of_nothing_is_refused() -> None:
    with pytest.raises(LbeError, match=r"page\.md: a quote"):
        quoting.filled(f"<!--= {words()} -->1.0", DOCUMENTS, "page.md")
    with pytest.raises(LbeError, match=r"page\.md: .*no metric 'altitude'"):
        quoting.filled("<!--= demo altitude -->1.0<!--/-->", DOCUMENTS, "page.md")


def test_the_readmes_tables_have_no_typed_decimals() -> None:
    for line in (REPO / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            typed = re.findall(r"\d+\.\d+", re.sub(r"`[^`]*`|\b[67]\.\d+\b", "", quoting.QUOTE.sub("", line)))
            assert not typed, f"typed, not quoted: {typed} in {line}"
