# SPDX-License-Identifier: GPL-2.0
"""Which changes of a program change its hash, and which do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.content import c_program, hash_of_programs, python_program
from testbed.base.places import REPO
from testbed.kernels.modules import program_hash

C = 'int f(int a) /* sum */\n{\n\treturn a + 1; // one more\n}\nchar *s = "/* no comment */";\n'
PYTHON = '"""What it does."""\n\nimport math\n\n\ndef f(a):\n    """One more."""\n    return a + 1  # here\n'


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("/* sum */", "", True),
        ("// one more", "// two more\n", True),
        ("\treturn", "        return", True),
        ("return a", "return\n\t\ta", False),
        ("{\n", "{\n\n", True),
        ("a + 1", "a + 2", False),
        ("/* no comment */", "/* other */", False),
    ],
)
def test_c(old: str, new: str, same: bool) -> None:
    assert old in C
    assert (c_program(C) == c_program(C.replace(old, new))) is same


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("What it does", "Other words", True),
        ("One more", "Two more", True),
        ("import math", "from cmath import sqrt", True),
        ("  # here", "", True),
        ("a + 1", "(\n        a + 1\n    )", True),
        ("a + 1", "a - 1", False),
        ("def f", "def g", False),
    ],
)
def test_python(old: str, new: str, same: bool) -> None:
    assert (python_program(PYTHON) == python_program(PYTHON.replace(old, new))) is same


def test_a_folder_s_place_does_not_matter_but_a_line_does(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.sh").write_text("# comment\ntrue\n")
    (tmp_path / "b" / "x.sh").write_text("# another\ntrue\n")
    assert hash_of_programs([tmp_path / "a" / "x.sh"]) == hash_of_programs([tmp_path / "b" / "x.sh"])
    (tmp_path / "b" / "x.sh").write_text("false\n")
    assert hash_of_programs([tmp_path / "a" / "x.sh"]) != hash_of_programs([tmp_path / "b" / "x.sh"])


def copy_of(tmp_path: Path, folder: str) -> Path:
    for name in ("Kbuild", "Makefile", "VERSION"):
        (tmp_path / name).write_bytes((REPO / name).read_bytes())
    for path in [*(REPO / "include").rglob("*.h"), *(REPO / "scripts").iterdir(), *(REPO / folder).rglob("*")]:
        if path.is_file():
            target = tmp_path / path.relative_to(REPO)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return tmp_path


def test_a_module_is_known_by_what_it_is_compiled_from(tmp_path: Path) -> None:
    repo = copy_of(tmp_path, "tcp_lp")
    before = program_hash("tcp_lp", repo)
    assert before == program_hash("tcp_lp")

    def after(name: str, old: str, new: str) -> str:
        path = repo / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        try:
            return program_hash("tcp_lp", repo)
        finally:
            path.write_text(text)

    assert after("tcp_lp/lp.h", "/*", "/* more words */ /*") == before
    assert after("tcp_lp/tests/lp_kunit.c", "#include", "int changed;\n#include") == before
    assert after("tcp_lp/lp.h", "return ", "return 1 + ") != before
    assert after("include/lbe/arith.h", "#include", "int changed;\n#include") != before
    assert program_hash("tcp_vegas", repo) == ""
