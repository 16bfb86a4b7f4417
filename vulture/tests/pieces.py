# SPDX-License-Identifier: GPL-2.0
"""Functions of the module, cut out of its sources and compiled on this machine in a world that a test makes."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from testbed.support import hostc

FOLDER = Path(__file__).resolve().parent.parent


def cut(name: str, file: str) -> str:
    """A function's text, from the line that has its name to the brace that ends it."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    begin = rf"^(?:static|void|int) [^\n;]*\b{name}\((?:[^;{{]|\n)*"
    found = re.search(rf"{begin}\n{{\n.*?^}}\n", text, re.MULTILINE | re.DOTALL)
    assert found, f"{file} has no {name}()"
    return found[0]


def cut_table(name: str, file: str) -> str:
    """The text of a struct with its values."""
    return hostc.table(name, (FOLDER / file).read_text(encoding="utf-8"))


def compiled(world: str, name: str, file: str, folder: Path) -> ctypes.CDLL:
    """The function in its world. What it does not use of that is no fault."""
    words = ("unused", "unused-function", "unused-parameter", "empty-body")
    calm = "".join(f'#pragma GCC diagnostic ignored "-W{word}"\n' for word in words)
    return hostc.load(calm + world % cut(name, file), folder, FOLDER, name)
