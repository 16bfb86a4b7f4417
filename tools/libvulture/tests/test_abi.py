# SPDX-License-Identifier: GPL-2.0
"""The library's ABI is the committed one, and what would break programs is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.base.places import REPO

pytestmark = pytest.mark.host

LIBRARY = REPO / "tools" / "libvulture"
#: a change, in which file, and what is said of it
CHANGES = [
    ("libvulture.map", "\tvulture_stop;\n", "", "gone or changed: symbol vulture_stop@@VULTURE_1"),
    ("libvulture.map", "VULTURE_1 {", "VULTURE_2 {", "gone or changed: symbol vulture_open@@VULTURE_1"),
    ("vulture.h", "int vulture_stop(struct vulture *v, int fd)", "int vulture_stop(struct vulture *v, long fd)",
     "gone or changed: prototype int vulture_stop (struct vulture *, int);"),
    ("vulture.h", "VULTURE_EVENT_END\t2", "VULTURE_EVENT_END\t3", "gone or changed: constant VULTURE_EVENT_END 2"),
    ("vulture.h", "\t\tstruct sockaddr_in6 in6;\n", "\t\tstruct sockaddr_in6 in6;\n\t\tchar more[99];\n",
     "gone or changed: struct vulture_address: 56 bytes"),
    ("Makefile", "libvulture.so.1", "libvulture.so.2", "gone or changed: soname libvulture.so.1"),
    ("libvulture.abi", "symbol vulture_get@@VULTURE_1\n", "", "new, not in libvulture.abi: symbol vulture_get@@"),
]  # fmt: skip


def check(folder: Path) -> tuple[int, str]:
    """Build the library there and hold it against the file there: status and what was said."""
    subprocess.run(["make", "-s", "-C", folder], check=True, capture_output=True)
    words = [str(folder / "abi.py"), str(folder / "libvulture.so"), "--check"]
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The library's source, where its Makefile finds what it reads."""
    for name in ("tools/libvulture", "vulture/uapi"):
        shutil.copytree(REPO / name, tmp_path / name, ignore=shutil.ignore_patterns("*.o", "*.a", "*.so", "*.pc"))
    shutil.copy(REPO / "VERSION", tmp_path)
    shutil.copy(REPO / "vulture/lists_gen.h", tmp_path / "vulture")
    return tmp_path / "tools" / "libvulture"


def test_the_abi_is_the_committed_one(copy: Path) -> None:
    assert check(copy) == (0, "")


@pytest.mark.parametrize(("name", "old", "new", "said"), CHANGES)
def test_what_breaks_programs_is_noticed(copy: Path, name: str, old: str, new: str, said: str) -> None:
    text = (copy / name).read_text()
    assert old in text
    (copy / name).write_text(text.replace(old, new))
    if name == "vulture.h" and "long fd" in new:
        source = copy / "requests.c"
        source.write_text(source.read_text().replace("int vulture_stop(struct vulture *v, int fd)", new))
    status, text = check(copy)
    assert status == 1 and said in text, text


def test_the_package_lists_every_symbol() -> None:
    """dpkg-gensymbols would refuse the package otherwise."""
    listed = (REPO / "debian" / "libvulture1.symbols").read_text()
    for line in (LIBRARY / "libvulture.abi").read_text().splitlines():
        if line.startswith("symbol "):
            assert f" {line.removeprefix('symbol ').replace('@@', '@')} " in listed, line
