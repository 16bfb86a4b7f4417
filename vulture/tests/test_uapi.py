# SPDX-License-Identifier: GPL-2.0
"""The committed files are what Documentation/vulture.yaml makes, and lint notices files that are not."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scripts import ynl
from testbed.base.places import REPO

pytestmark = pytest.mark.kunit


SPEC = (REPO / ynl.SPEC).read_text(encoding="utf-8")
EVERYTHING = ynl.everything
HEADER, SOURCE, USER = "vulture/uapi/vulture_gen.h", "vulture/netlink_gen.c", "tools/ynl/vulture-user.c"


@functools.cache
def made() -> dict[str, str]:
    """Return what the spec makes."""
    return dict(EVERYTHING(REPO))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Make a tree with the spec, with what is made from it, and with what makes it."""
    for name in (ynl.SPEC, *ynl.FILES, "scripts/ynl.py", "tools/python/make_spec.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, tmp_path / name)
    (tmp_path / "testbed").symlink_to(REPO / "testbed")
    return tmp_path


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, REPO / "scripts/lint.py", "--root", root, "ynl"]
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False)


def test_what_is_checked_in_is_what_the_generator_makes() -> None:
    assert ynl.differing(REPO) == []


@pytest.mark.parametrize(
    ("before", "after", "files"),
    [
        ("entries: [paper, credit, rledbat]", "entries: [credit, paper, rledbat]", {HEADER, ynl.LISTS, ynl.BINDING}),
        (
            "        name: escape-s\n",
            "        name: new\n        type: u32\n        checks: {max: 9}\n        doc: 'a; default 1'\n"
            "      -\n        name: escape-s\n",
            {HEADER, SOURCE, USER, ynl.LISTS, ynl.BINDING},
        ),
        ("max: 10000\n", "max: 20000\n", {SOURCE, ynl.LISTS}),
        ("clocks; default 4000", "clocks; default 5000", {ynl.LISTS}),
        ("attributes: [fd, addr, id]", "attributes: [fd, addr, id, pid]", {SOURCE, USER}),
    ],
)
def test_a_change_of_the_spec_alone_is_noticed(copy: Path, before: str, after: str, files: set[str]) -> None:
    """The spec changes in its order, an option, a range, a default, or an attribute of a request."""
    change(copy / ynl.SPEC, before, after)
    said = ynl.differing(copy)
    assert all(line.endswith("say make ynl, and commit what it writes") for line in said)
    assert files <= {line.split(":")[0] for line in said}, said


def test_lint_is_red_for_a_change_of_the_spec_alone(copy: Path) -> None:
    before = lint(copy)
    assert before.returncode == 0, before.stdout
    change(copy / ynl.SPEC, "max: 1000000\n", "max: 2000000\n")
    done = lint(copy)
    assert done.returncode == 1, done.stdout
    assert f"{SOURCE}: is not what {ynl.SPEC} makes: say make ynl" in done.stdout
    again = subprocess.run([sys.executable, copy / "scripts/ynl.py"], capture_output=True, text=True, check=True)
    assert f"wrote {SOURCE}\n" in again.stdout
    assert lint(copy).returncode == 0


@pytest.mark.parametrize("name", ynl.FILES)
def test_a_change_by_hand_is_noticed(copy: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ynl, "everything", lambda _root: made())  # once is enough
    with open(copy / name, "a", encoding="utf-8") as file:
        file.write("\n")
    assert [line.split(":")[0] for line in ynl.differing(copy)] == [name]
    (copy / name).unlink()
    assert [line.split(":")[0] for line in ynl.differing(copy)] == [name]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("clocks; default 4000", "clocks", "option tick-us does not end with '; default VALUE'"),
        ("clocks; default 4000", "clocks; default 0", "default 0 of option tick-us is not within 1 to 10000"),
        ("clocks; default 4000", "clocks; default four", "default 'four' of option tick-us is neither a number nor"),
        ("nested-attributes: addr", "nested-attributes: adder", "the kernel's generator refuses it"),
        ("definitions:", "definitions: :", "is no YAML"),
    ],
)
def test_a_spec_that_is_wrong_is_refused(copy: Path, before: str, after: str, said: str) -> None:
    """The program says what is wrong in a sentence, and writes nothing."""
    change(copy / ynl.SPEC, before, after)
    present = {name: (copy / name).read_bytes() for name in ynl.FILES}
    done = subprocess.run([sys.executable, copy / "scripts/ynl.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert {name: (copy / name).read_bytes() for name in ynl.FILES} == present


def test_the_prose_has_every_command_and_the_spec_explains_every_option() -> None:
    prose = (REPO / "vulture/uapi/vulture.h").read_text(encoding="utf-8")
    spec = yaml.safe_load(SPEC)
    commands = {"VULTURE_CMD_" + ynl.upper(op["name"]) for op in spec["operations"]["list"]}
    assert commands == set(re.findall(r"VULTURE_CMD_\w+", prose))
    for one in spec["attribute-sets"]:
        assert all(attribute.get("doc") for attribute in one["attributes"] if one["name"].endswith("-options"))
