# SPDX-License-Identifier: GPL-2.0
"""vulture/uapi/vulture.h against Documentation/vulture.yaml, by the kernel's own generator (tools/net/ynl)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.base.places import REPO
from testbed.kernels.mirror import ensure_part

pytestmark = pytest.mark.kunit

SERIES = "6.12"
#: the generator's own: the guard, the family's name and version, which our header calls otherwise
OWN = re.compile(r"_UAPI_|_FAMILY_")
PRINT = """
#include <stdio.h>
#include <linux/types.h>
#include "{header}"

int main(void)
{{
{lines}
	return 0;
}}
"""


def generated(folder: Path, spec: str, *mode: str) -> str:
    """What the kernel's generator makes of the spec; it looks for a kernel's tree around it."""
    place = folder / "Documentation/netlink/specs"
    place.mkdir(parents=True, exist_ok=True)
    (folder / "MAINTAINERS").touch()
    (place / "vulture.yaml").write_text(spec, encoding="utf-8")
    shutil.copy(ensure_part(SERIES, "Documentation/netlink/genetlink.yaml"), place.parent)
    generator = ensure_part(SERIES, "tools/net/ynl") / "ynl-gen-c.py"
    out = folder / ("out.h" if "--header" in mode else "out.c")
    words = ["/usr/bin/python3", str(generator), *mode, "--spec", str(place / "vulture.yaml"), "-o", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return out.read_text(encoding="utf-8")


def names(header: str) -> list[str]:
    """The enumerators that a generated header declares."""
    found = re.findall(r"^\t(_?_?VULTURE_\w+)(?= = |,|$)", header, re.MULTILINE)
    return [name for name in found if not OWN.search(name)]


def values(folder: Path, header: Path, wanted: list[str]) -> dict[str, int]:
    """What the compiler makes of each name."""
    lines = "\n".join(f'\tprintf("{name} %lld\\n", (long long)({name}));' for name in wanted)
    (folder / "print.c").write_text(PRINT.format(header=header, lines=lines), encoding="utf-8")
    words = ["cc", "-o", folder / "print", folder / "print.c"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([folder / "print"], capture_output=True, text=True, check=True).stdout
    return {name: int(value) for name, value in map(str.split, said.splitlines())}


def differences(folder: Path, spec: str) -> dict[str, tuple[int, int]]:
    """Name -> the spec's number and our header's, where they are not the same."""
    text = generated(folder, spec, "--mode", "uapi", "--header")
    (folder / "generated.h").write_text(text, encoding="utf-8")
    wanted = names(text)
    assert len(wanted) > 150, "the generated header has lost its enumerators"
    theirs = values(folder, folder / "generated.h", wanted)
    ours = values(folder, REPO / "vulture/uapi/vulture.h", wanted)
    return {name: (theirs[name], ours[name]) for name in wanted if theirs[name] != ours[name]}


SPEC = (REPO / "Documentation/vulture.yaml").read_text(encoding="utf-8")


def test_the_header_is_the_specs(tmp_path: Path) -> None:
    """Commands, attributes and values: every one that the kernel's generator makes has our header's number."""
    assert differences(tmp_path, SPEC) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("entries: [paper, credit, rledbat]", "entries: [credit, paper, rledbat]"),
        ("        name: escape-s\n", "        name: new\n        type: u32\n      -\n        name: escape-s\n"),
    ],
)
def test_a_spec_that_differs_is_seen(tmp_path: Path, before: str, after: str) -> None:
    """An order of its own, an attribute that the header lacks."""
    assert before in SPEC
    try:
        found = differences(tmp_path, SPEC.replace(before, after))
    except AssertionError as error:
        found = {"undeclared": (0, 0)} if "undeclared" in str(error) else {}
    assert found


def test_user_space_has_a_parser(tmp_path: Path) -> None:
    """The generator makes the C that parses each message, so the spec has all that a user's program needs."""
    header = generated(tmp_path, SPEC, "--mode", "user", "--header")
    source = generated(tmp_path, SPEC, "--mode", "user", "--source", "--user-header", "vulture-user.h")
    for message in ("start", "get", "rule_add", "get_defaults"):
        assert f"struct vulture_{message}_rsp" in header or f"vulture_{message}(" in header, message
        assert f"vulture_{message}(" in source, message
