# SPDX-License-Identifier: GPL-2.0
"""The files of vulture.ko are in layers: each calls by name only functions of files below it in vulture.h's list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

FOLDER = Path(__file__).resolve().parent.parent
HEADER = (FOLDER / "vulture.h").read_text(encoding="utf-8")
#: what controllers call of the module is declared in headers of theirs
OTHERS = {"rwnd_wake": "update.c", "vulture_trace_round": "update.c"}


def bare(text: str) -> str:
    """Without comments and strings."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', " ", text, flags=re.DOTALL)


def listed() -> list[str]:
    """Return the files from top to bottom. The entry with dots stands for all files without an entry of their own."""
    entries = re.findall(r"^ \*\t(\w+\.c)( \.\.\.)?", HEADER, re.MULTILINE)
    named = [name for name, dots in entries if not dots]
    rest = sorted(path.name for path in FOLDER.glob("*.c") if path.name not in named)
    return [one for name, dots in entries for one in (rest if dots else [name])]


def declared() -> dict[str, str]:
    """Function -> the file under whose name vulture.h declares it."""
    owners = dict(OTHERS)
    for file, block in re.findall(
        r"^/\* (\w+\.c) \*/\n(.*?)(?=^/\* \w+\.c \*/|^#endif)", HEADER, re.MULTILINE | re.DOTALL
    ):
        owners |= dict.fromkeys(re.findall(r"^[^\s#][^(;]*?(\w+)\(", block, re.MULTILINE), file)
    return owners


FILES = listed()
TEXTS = {name: bare((FOLDER / name).read_text(encoding="utf-8")) for name in FILES}


def test_each_file_is_listed_once() -> None:
    assert sorted(FILES) == sorted(path.name for path in FOLDER.glob("*.c"))


@pytest.mark.parametrize("file", FILES)
def test_it_defines_what_is_declared_under_its_name(file: str) -> None:
    for function in (name for name, owner in declared().items() if owner == file):
        found = rf"^(?!static)\w[^\n;]*\b{function}\([^;{{]*\)\n{{"
        assert re.search(found, TEXTS[file], re.MULTILINE), f"{function}() is not in {file}"


@pytest.mark.parametrize("file", FILES)
def test_it_calls_nothing_above_it(file: str) -> None:
    above = FILES[: FILES.index(file)]
    calls = {name for name, owner in declared().items() if owner in above and re.search(rf"\b{name}\(", TEXTS[file])}
    assert not calls, f"{file} calls {sorted(calls)}"
