# SPDX-License-Identifier: GPL-2.0
"""No source file has more than 500 lines, except those for which Documentation/design.md gives a reason."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from testbed.base.places import REPO

MOST = 500
PAGE = REPO / "Documentation" / "design.md"
ROW = re.compile(r"^\| `([^`]+\.(?:c|h|py|bash|tcl))` \| (.+) \|$", re.MULTILINE)
#: programs only; tests, and data such as experiments and tables of claims, may be longer
SOURCES = ("*.c", "*.h", "*.py", "*.bash", "*.tcl", "scripts/*", ".ci/*")


def reasons(page: str) -> dict[str, str]:
    """Map each file that the page names to the reason that it gives."""
    return dict(ROW.findall(page[page.index("## Long files") :].split("\n## ")[0]))


def long_files(root: Path) -> set[str]:
    """Return the source files, tracked by git, that have more than MOST lines."""
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=root, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if "tests" not in Path(name).parts]
    assert names
    return {name for name in names if len((root / name).read_text(encoding="utf-8").splitlines()) > MOST}


def differing(root: Path, page: str) -> list[str]:
    """Return a complaint for each long file without a reason and for each reason that is not needed."""
    known, found = reasons(page), long_files(root)
    lacking = sorted(found - set(known))
    needless = sorted(set(known) - found)
    return [
        *(f"{name}: more than {MOST} lines, and {PAGE.name} gives no reason" for name in lacking),
        *(f"{name}: {PAGE.name} gives a reason that it needs no more" for name in needless),
    ]


def test_each_long_file_has_a_reason() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(len(reason.split()) >= 6 for reason in reasons(page).values())
    wrong = differing(REPO, page)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("lines", "row", "said"),
    [
        (501, "", "no reason"),
        (501, "| `new.c` | one law, and its tables |\n", ""),
        (500, "| `new.c` | one law, and its tables |\n", "needs no more"),
        (500, "", ""),
    ],
)
def test_a_new_long_file_is_found(tmp_path: Path, lines: int, row: str, said: str) -> None:
    (tmp_path / "new.c").write_text("int x;\n" * lines, encoding="utf-8")
    for words in (["init", "-q"], ["add", "new.c"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    wrong = "\n".join(differing(tmp_path, f"## Long files\n\n{row}\n## Tests\n"))
    assert said in wrong and bool(wrong) is bool(said)
