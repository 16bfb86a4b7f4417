# SPDX-License-Identifier: GPL-2.0
"""No measured number is typed by hand (testbed/support/typed_numbers.py); the rule tells such numbers from others."""

from __future__ import annotations

import re

import pytest

from testbed.base.places import REPO
from testbed.present import quoting
from testbed.support.typed_numbers import ALLOWED, in_page, in_reasons, prose, reasons, typed

PAGES = [path.relative_to(REPO).as_posix() for path in quoting.written_pages()]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_quotes_its_measured_numbers(name: str) -> None:
    lines = in_page(name, (REPO / name).read_text(encoding="utf-8"))
    assert not lines, "quote a result (testbed/present/quoting.py):\n" + "\n".join(lines)


def test_no_reason_types_a_measured_number() -> None:
    lines = in_reasons()
    assert len(set(reasons())) > 400
    assert not lines, "\n".join(lines)


def test_a_bound_says_more_than_that_it_is_an_aim() -> None:
    """A reader must learn why the bound is this number: a paper's statement, an RFC, a limit of the path or the law, or
    what the number means for a user if the project set it."""
    aim = re.compile(r"(?:the |suite's )*aims?\b", re.IGNORECASE)
    bare = [f"{name}: {why}" for name, why in dict.fromkeys(reasons()) if aim.match(why)]
    assert not bare, "says no source:\n" + "\n".join(bare)


def test_each_pattern_is_needed() -> None:
    """A pattern of ALLOWED that matches no page must go: it could hide a number that is typed later."""
    pages = [prose((REPO / name).read_text(encoding="utf-8")).replace("\n", " ") for name in PAGES]
    for pattern, why in ALLOWED:
        assert any(re.search(pattern, page) for page in pages), f"{why}: {pattern} covers nothing"


@pytest.mark.parametrize(
    "line",
    [
        "| path | ours |\n|---|---|\n| 10 Mbit/s | 98.7 |\n",
        "| path | cubic, Mbit/s |\n|---|---|\n| 10 Mbit/s | 98 % |\n",
        "| design | what was seen |\n|---|---|\n| no pairs | best effort loses 3 to 10 % |\n",
        "Beside lp cubic keeps 98.7 ±0.2 % of the link.",
        "Reno alone has 97 % of the link.",
        "It takes 3.25 Mbit/s, at\n1.5 Mbit/s.",
        "- In the model four hosts use 93 % of it.",
        "Beside lbe the share of cubic is 98.7 %.",
        "With 64 flows it rises from 9.41 to 9.53 Mbit/s.",
        "All three miss the bound, at 67 %.",
    ],
)
def test_a_typed_number_is_found(line: str) -> None:
    assert typed(line)


@pytest.mark.parametrize(
    "line",
    [
        "<!--= lbe_rows be contender=lbe scenario=greedy -->9.53 ±0.00<!--/--> are left by RFC 7323 section 2.4.",
        "| option | default |\n|---|---|\n| weight | 0.002 |\n",
        "| what | paper |\n|---|---|\n| pauses | 0.56 |\n",
        "Kernel 6.12 has a window of 10; mean and half of the 95 % interval.",
        "A packet takes 5.3 ms, so the window has 2 packets at least.".replace("A packet", "There a packet"),
        "    make demo     # takes 98.7 s",
        "<!--made by make bench-->\n| a | b |\n|---|---|\n| hot | 0.91 |\n<!--/made-->",
    ],
)
def test_what_nobody_measured_is_not_found(line: str) -> None:
    assert not typed(line)
