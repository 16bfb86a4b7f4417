# SPDX-License-Identifier: GPL-2.0
"""The names that the library has for values of enums are those of the netlink specification."""

from __future__ import annotations

import ctypes
import subprocess

import pytest
import yaml

from testbed.base.places import REPO

pytestmark = pytest.mark.host

SPEC = yaml.safe_load((REPO / "Documentation" / "vulture.yaml").read_text(encoding="utf-8"))
ENUMS = {one["name"]: one["entries"] for one in SPEC["definitions"]}
#: an option of the controller paper, which has no names for its values
NUMBERS = {"pairing"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("names")
    subprocess.run(["make", "-s", "-C", REPO / "tools/libvulture", f"O={folder}", folder / "libvulture.so"], check=True)
    return ctypes.CDLL(str(folder / "libvulture.so"))


@pytest.mark.parametrize("enum", sorted(set(ENUMS) - NUMBERS))
def test_each_value_has_the_name_of_the_specification(library: ctypes.CDLL, enum: str) -> None:
    name_of = getattr(library, f"vulture_{enum.replace('-', '_')}_name")
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.c_uint32]
    entries = ENUMS[enum]
    assert [name_of(value).decode() for value in range(len(entries))] == entries
    assert {name_of(value) for value in (len(entries), 2**32 - 1)} == {b"unknown"}


def test_every_statistic_that_is_an_enum_says_which_one() -> None:
    for one in SPEC["attribute-sets"]:
        if not one["name"].endswith("-stats"):
            continue
        for attribute in one["attributes"]:
            named = attribute.get("doc", "").startswith("enum vulture_")
            assert named == (attribute.get("enum") in ENUMS), (one["name"], attribute)
