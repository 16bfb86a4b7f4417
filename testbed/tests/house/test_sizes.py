# SPDX-License-Identifier: GPL-2.0
"""The code lines that Documentation/tcp_lbe.md gives for lbe's files are those of the files."""

from __future__ import annotations

import re

from testbed.base.content import c_program
from testbed.base.places import REPO

FOLDERS = ("include/lbe", "tcp_lbe")
SECTION = (REPO / "Documentation" / "tcp_lbe.md").read_text(encoding="utf-8").split("\n## Size\n")[1].split("\n## ")[0]


def code_lines(name: str) -> int:
    """Lines of the file without comments and blank lines."""
    (path,) = [REPO / folder / name for folder in FOLDERS if (REPO / folder / name).exists()]
    return len(c_program(path.read_text(encoding="utf-8")).splitlines())


def test_the_page_has_the_size_of_each_file() -> None:
    words = " ".join(SECTION.split())
    told = {name: int(lines) for name, lines in re.findall(r"`(\w+\.[ch])` (?:has )?(\d+)(?: lines)?(?=,| and)", words)}
    assert len(told) == 8
    assert told == {name: code_lines(name) for name in told}
    assert f"together {sum(told.values())}." in words
