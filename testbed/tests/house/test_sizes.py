# SPDX-License-Identifier: GPL-2.0
"""The numbers of lines that tcp_lbe.md, tcp_ledbat.md and sch_shred.md give for files are those of the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.base.content import c_program
from testbed.base.places import REPO

LAW = REPO / "include" / "lbe" / "ledbat_law.h"
LP = [REPO / "tcp_lp" / name for name in ("tcp_lp.c", "lp.h", "lp_trace.h")]
LEDBAT = [REPO / "tcp_ledbat" / name for name in ("main.c", "ledbat.h", "ledbat_trace.h")]


def section(page: str) -> str:
    """Return the words of the page's section "Size"."""
    text = (REPO / "Documentation" / page).read_text(encoding="utf-8")
    return " ".join(text.split("\n## Size\n")[1].split("\n## ")[0].split())


def code_lines(paths: list[Path]) -> int:
    """Return the number of lines of the files without comments and blank lines."""
    return sum(len(c_program(path.read_text(encoding="utf-8")).splitlines()) for path in paths)


def shared(paths: list[Path]) -> set[Path]:
    """Return the headers of include/lbe that the files include, directly or through each other."""
    found: set[Path] = set()
    left = list(paths)
    while left:
        names = re.findall(r"^#include <(lbe/\S+)>", left.pop().read_text(encoding="utf-8"), re.MULTILINE)
        new = {REPO / "include" / name for name in names} - found
        found |= new
        left += new
    return found


def test_lbes_page_has_the_size_of_each_file() -> None:
    words = section("tcp_lbe.md")
    told = {name: int(lines) for name, lines in re.findall(r"`(\w+\.[ch])` (?:has )?(\d+)(?: lines)?(?=,| and)", words)}
    assert len(told) == 10
    paths = [
        path for name in told for folder in ("include/lbe", "tcp_lbe") if (path := REPO / folder / name).exists()
    ]
    assert told == {path.name: code_lines([path]) for path in paths}
    assert f"together {sum(told.values())}." in words


def test_ledbats_page_has_the_sizes_of_both_modules() -> None:
    words = section("tcp_ledbat.md")
    both = sorted((shared(LP) & shared(LEDBAT)) - {LAW})
    told = [int(lines) for lines in re.findall(r" \| \d+ \| (\d+) \|", words)]
    assert told == [code_lines(paths) for paths in (LP, LEDBAT, [LAW], both)]
    assert f"`tcp_lp/` and `tcp_ledbat/` have {told[0] + told[1]}." in words
    assert f"they have {sum(told[:3])}." in words


@pytest.mark.parametrize(
    ("part", "files"),
    [
        ("queue", ("queue.c", "queue.h", "config.c")),
        ("writer", ("writer.c", "host.c", "edge.c", "flows.c", "packet.c", "settings.c", "writer.h")),
    ],
)
def test_the_page_of_shred_has_the_sizes_of_its_parts(part: str, files: tuple[str, ...]) -> None:
    page = (REPO / "Documentation" / "sch_shred.md").read_text(encoding="utf-8").split("\n### Size\n")[1]
    (row,) = re.findall(rf"^\| {part} \| \d+ \| (\d+) \| \d+ \| (\d+) \|$", page, flags=re.MULTILINE)
    texts = [(REPO / "sch_shred" / name).read_text(encoding="utf-8") for name in files]
    lines = sum(len(text.splitlines()) for text in texts)
    assert tuple(map(int, row)) == (lines, sum(len(c_program(text).splitlines()) for text in texts))
