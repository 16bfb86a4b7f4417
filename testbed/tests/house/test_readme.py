# SPDX-License-Identifier: GPL-2.0
"""README.md begins with what a visitor looks for: what the suite is, its picture, one table, two commands."""

from __future__ import annotations

import re

import pytest

from testbed.base.places import REPO
from testbed.present import quoting

#: what must be on the page, in this order
ORDER = (
    ("the title", r"^# "),
    ("prose that says what it is", r"^[A-Z][^|\n]{60,}"),
    ("the command that it is about", r"^    vulturectl run"),
    ("the picture of the demo", r"^!\[[^\]]+\]\(Documentation/results/demo\.svg\)"),
    ("the table of results", r"^<!--table "),
    ("the two commands", r"^## Try it\n(?:.+\n|\n)*?    make demo.*\n    make check"),
    ("how to install it", r"^## Install and use it$"),
    ("which part to choose", r"^## Which part to choose$"),
    ("where to read on", r"^## More$"),
)
#: the picture is in the first lines, and a table fits the width of a page
PICTURE_LINES, COLUMNS = 20, 5


def faults(page: str) -> list[str]:
    """Return what is missing, or is in another place than ORDER says."""
    found, at = [], 0
    for what, pattern in ORDER:
        match = re.compile(pattern, re.MULTILINE).search(page, at)
        if match is None:
            found.append(f"{what} is missing, or stands before what should precede it")
        else:
            at = match.start() + 1
    picture = page.find("![")
    if page.count("\n", 0, picture) >= PICTURE_LINES:
        found.append(f"the picture comes after line {PICTURE_LINES}")
    tables = list(quoting.TABLE.finditer(page))
    if len(tables) != 1 or quoting.QUOTE.search("\n".join(row for row in page.splitlines() if row.startswith("|"))):
        found.append("more than one table has results")
    if any(row.count("|") > COLUMNS + 1 for row in page.splitlines() if row.startswith("| ")):
        found.append(f"a table has more than {COLUMNS} columns")
    return found


def readme() -> str:
    return (REPO / "README.md").read_text(encoding="utf-8")


def test_the_readme_begins_with_what_a_visitor_looks_for() -> None:
    assert not faults(readme())


def moved(page: str, what: str, to: str) -> str:
    """Return the page with the line that contains ``what`` before the line that contains ``to``."""
    lines = page.splitlines(keepends=True)
    line = next(line for line in lines if what in line)
    lines.remove(line)
    lines.insert(next(index for index, other in enumerate(lines) if to in other), line)
    return "".join(lines)


@pytest.mark.parametrize(
    ("what", "to", "says"),
    [
        ("![", "## Try it", "the table of results is missing"),
        ("## Install and use it", "## More", "which part to choose is missing"),
        ("<!--/table-->", "| program |", "a table has"),
    ],
)
def test_another_order_is_found(what: str, to: str, says: str) -> None:
    page = readme()
    if says == "a table has":
        page = page.replace("| program |", "| program | one | two | three |")
    else:
        page = moved(page, what, to)
    assert any(says in fault for fault in faults(page)), faults(page)


def test_a_second_table_of_results_is_found() -> None:
    table = "| control | goodput |\n|---|---|\n| lbe | <!--= lbe_rows bg contender=lbe -->1<!--/--> |\n"
    assert faults(readme() + table) == ["more than one table has results"]
